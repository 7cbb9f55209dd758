"""Cells whose kernels torch.compile generated, each as several: one per part of its work.

A part has its share of the time, FLOPs and bytes (`profile.compiled.parts`), its own operator,
layers and source lines, and the other columns of the kernel. Shares of integers are rounded such
that they sum to the kernel's. Counts of kernels and calls, and times of single kernels, are those
of the largest part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.threads import computed_once
from fastprof.analysis.cells import Ideals, ReportCells
from fastprof.analysis.grouping import Floats64, texts
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.markers import SourceLines
from fastprof.model.numbers import quantity
from fastprof.profile.annotated import inner_layers
from fastprof.profile.cells import SUMS
from fastprof.profile.compiled.parts import Share
from fastprof.profile.compiled.sites import CompiledWork


class SplitCells(ReportCells):
    """Cells of which some are parts of kernels; see the module docstring."""

    def __init__(self, whole: ReportCells, work: CompiledWork) -> None:
        """Split cells whose kernels have one site."""
        site = work.site[whole.first]
        n_parts = np.array([*map(len, work.shares), 1], np.int64)[site]
        row = np.repeat(np.arange(len(whole), dtype=np.int32), n_parts)
        begin = np.cumsum(n_parts) - n_parts
        rank = np.arange(len(row)) - begin[row]
        super().__init__(
            whole.profile, begin.astype(np.int32)[whole.of_kernel], whole.first[row], whole._keys
        )
        self._whole, self._row, self._is_main = whole, row, rank == 0
        shares: list[Share | None] = [None]
        first = []
        for own in work.shares:
            first.append(len(shares))
            shares += own
        number = np.array([*first, 0], np.int64)[site][row]
        self._share = np.where(site[row] >= 0, number + rank, 0).astype(np.int32)
        self._shares = shares
        weight = np.array([1.0, *(share.weight for share in shares if share is not None)])
        # The share of a part and of those before it in its kernel, exactly 1 for the last.
        sums = np.cumsum(weight[self._share])
        before = (sums - weight[self._share])[begin] if len(row) else sums
        self._until = sums - before[row]
        self._until[(begin + n_parts - 1)[: len(whole)]] = 1.0
        self._work = work

    @property
    def is_coarsest(self) -> bool:
        """False: the profile has no such cells."""
        return False

    def _make(self, name: str) -> Column:
        whole = self._whole.column(name)
        if name in SUMS:
            return Ints(self._shared(np.asarray(whole.values)))
        if name in _CHANGED and isinstance(whole, Values):
            return self._changed(name, whole)
        if isinstance(whole, Values):
            return whole.take(self._row)
        if isinstance(whole, Ints):
            return Ints(whole.values[self._row], whole.none)
        raise TypeError("expected numbers or texts, found lists of numbers")

    def _changed(self, name: str, whole: Values) -> Values:
        """A column with the values of the parts, where they have any."""
        lines = self.profile.source.lines
        shares = self._shares
        around = texts(self._whole, "trace") if name in ("line", "library_line") else whole
        ids = around.ids[self._row]
        pairs, back = np.unique(np.stack([self._share, ids]), axis=1, return_inverse=True)
        values: dict[Any, int] = {}
        of_pair = []
        for share_id, value_id in pairs.T.tolist():
            share = shares[share_id]
            value = around.values[value_id] if value_id >= 0 else None
            if share is None and around is not whole:
                value = None if value is None else _line_of(name, lines, value)
            elif share is not None:
                value = _value(name, share, value, lines)
            of_pair.append(-1 if value is None else values.setdefault(value, len(values)))
        return Values(np.array(of_pair, np.int32)[back.reshape(-1)], list(values))

    def _shared(self, totals: npt.NDArray[Any]) -> Int64:
        """[cells] The shares of totals of whole cells, which they sum to; -1 stays unknown."""
        number = totals.astype(np.int64)[self._row]
        until = np.rint(number * self._until).astype(np.int64)
        # Large integers exceed the precision of floats; the last part ends at the total itself.
        is_last = np.append(self._is_main[1:], True)[: len(number)]
        until = np.where(is_last, number, np.minimum(until, number))
        before = np.where(self._is_main, 0, np.append(0, until)[: len(number)])
        return np.where(number < 0, number, until - before)

    @computed_once
    def kernels(self) -> Int64:
        """[cells] The number of kernels; of parts, at the largest."""
        return np.where(self._is_main, self._whole.kernels[self._row], 0)

    def refined(self, factors: Iterable[Int32]) -> ReportCells:
        """As in ReportCells."""
        return SplitCells(self._whole.refined(factors), self._work)

    def flags(self, of_cells: Bools) -> Bools:
        """[kernels] Whether any part of each kernel has the flag."""
        of_whole = np.zeros(len(self._whole), bool)
        of_whole[self._row[of_cells]] = True
        return take(of_whole, self._whole.of_kernel, False)

    def sum_where(self, values: npt.NDArray[Any], mask: Bools) -> Int64:
        """As in ReportCells, shared among parts."""
        return self._shared(self._whole.sum_where(values, mask))

    def launched(self, times: Int64) -> Int64:
        """As in ReportCells."""
        return self._whole.launched(times)[self._row]

    def with_ideals(self, ideals_of: Callable[[ReportCells], Ideals]) -> Ideals:
        """As in ReportCells, shared among parts."""
        row, weight = self._row, self._weights
        ideals = ideals_of(self._whole)
        return type(ideals)(
            **{
                name: values[row] * weight if name in _SHARED else values[row]
                for name, values in vars(ideals).items()
            }
        )

    @computed_once
    def _weights(self) -> Floats64:
        """[cells] The share of each part."""
        before = np.where(self._is_main, 0.0, np.append(0.0, self._until)[: len(self._until)])
        weights: Floats64 = np.maximum(self._until - before, 0.0)
        return weights

    def notes_on_parts(self, rows: Bools | None = None) -> list[str]:
        """As in ReportCells."""
        is_shared = self._share > 0
        chosen = is_shared if rows is None else is_shared & rows
        if not chosen.any():
            return []
        time = np.maximum(np.asarray(self.column("sil").values), 0)
        ambiguous = np.array([*self._work.ambiguous, False])[self._work.site[self.first]] & chosen
        lines = [
            f"torch.compile: {quantity(int(time[chosen].sum()), 'ns')} of its kernels are shared "
            "among source nodes by the bytes of each (FLOPs with a product): estimates"
        ]
        if ambiguous.any():
            lines.append(
                f"torch.compile: {quantity(int(time[ambiguous].sum()), 'ns')} of kernels whose "
                "name several calls have are shared among these alike"
            )
        return lines


_CHANGED: Final = ("op", "layer", "trace", "line", "library_line")
_SHARED: Final = ("ideal", "lost", "at_peak")


def _line_of(name: str, lines: SourceLines, frames: Sequence[str]) -> str | None:
    return lines.line(frames) if name == "line" else lines.library_line(frames)


def _value(name: str, share: Share, value: Any, lines: SourceLines) -> Any:
    """The value of a part in a column, from that of its kernel."""
    if name == "op":
        return share.op or value
    if name == "layer":
        return inner_layers(value or (), share.layers) or None
    frames = lines.trace((*(value or ()), *share.frames))
    return frames if name == "trace" else _line_of(name, lines, frames)
