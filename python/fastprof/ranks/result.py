"""Batch: what all files of a run come to, as tables over ranks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from fastprof.model.columns import Ints
from fastprof.ranks import collectives, lacking, totals
from fastprof.ranks.rank import named
from fastprof.ranks.summary import Summary
from fastprof.ranks.table import Floats, Table, texts
from fastprof.ranks.together import Together, together
from fastprof.ranks.work import Failure, Result

if TYPE_CHECKING:
    import pandas

__all__ = ["Batch"]

# What an overview says of each rule of `fastprof.ranks.rank`.
_NUMBERED: Final = {
    "told": "ranks are as the files say",
    "name": "ranks are as the names of the files say",
    "digits": "ranks are the numbers in which the names differ",
    "order": "ranks are numbered in order of name",
}


class Batch:
    """What all files of a run come to.

    All tables are mappings of name to numpy array with `rows`, `to_pandas`, `to_arrow`, `write_csv`
    and `text`. Times are ns. Rows, and what they say, do not depend on the order in which files
    were read.

    Parameters
    ----------
    results : a summary or a failure of each file, in order of name

    Attributes
    ----------
    summaries : list of Summary
    failures : list of Failure
        Files without a summary, and why.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.summaries = [each for each in results if isinstance(each, Summary)]
        self.failures = [each for each in results if isinstance(each, Failure)]

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} files failed" if self.failures else ""
        return f"<fastprof.Batch of {len(self.together.ranks)} ranks{failed}>"

    @cached_property
    def together(self) -> Together:
        """The groups of all ranks as columns."""
        return together(self.summaries)

    def overview(self) -> str:
        """A line: how many ranks and files, and the GPU time of the ranks."""
        ranks = self.together.ranks
        files = len(self.summaries) + len(self.failures)
        text = f"{len(ranks)} ranks in {files} files"
        if self.failures:
            text += f", {len(self.failures)} of which could not be read"
        text += f"; {_NUMBERED[self.together.rule]}"
        times = [(rank.process.time, rank.number) for rank in ranks if rank.process is not None]
        if times:
            least, most = min(times), max(times, key=lambda each: (each[0], -each[1]))
            mean = sum(time for time, _ in times) / len(times)
            text += (
                f". GPU time of a rank {mean / 1e6:.3f} ms, from {least[0] / 1e6:.3f} "
                f"(rank {least[1]}) to {most[0] / 1e6:.3f} (rank {most[1]})"
            )
        return text

    @cached_property
    def ranks(self) -> Table:
        """A row a rank, then a row for each file that failed.

        rank; file; pid; devices; kernels; gpu_time; span (from the first to the end of the last);
        busy (gpu_time / span; kernels that overlap count both); steps; launch, range, op, shapes,
        cost, source line (the share of the file's GPU time that is known to that depth); warnings
        (how many); seconds (to read it); error.
        """
        return _ranks(self.together, self.failures)

    def table(self, by: str | Sequence[str] = totals.BY) -> Table:
        """Time, FLOPs and bytes by some of mod, op, layer, dir, class, and their spread over ranks.

        See `fastprof.ranks.totals.totals` for the columns.

        Raises
        ------
        UnknownColumnError
        """
        return totals.totals(self.together, [by] if isinstance(by, str) else list(by))

    def collectives(self) -> Table:
        """How long ranks wait for each other, by collective.

        See `fastprof.ranks.collectives.collectives` for the columns, and for how far to trust them.
        """
        return collectives.collectives(self.together)

    def lacking(self) -> Table:
        """What ranks lack that the others have: rank, file, lacks, detail."""
        return lacking.lacking(self.together, self.failures, self.missing)

    @property
    def missing(self) -> list[int]:
        """Ranks that the run had, as its files say, and that no file is of."""
        if self.together.rule != "told":
            return []
        there = {rank.number for rank in self.together.ranks}
        there |= {number for each in self.failures if (number := named(each.path)) is not None}
        size = max((rank.summary.world_size or 0 for rank in self.together.ranks), default=0)
        return sorted(set(range(size)) - there)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each rank and group of kernels that are alike.

        rank, file, mod, op, layer, dir, class, collective; kernels, time, flops, flops_kernels,
        bytes, bytes_kernels.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        return totals.groups_of_ranks(self.together).to_pandas()

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write what `to_pandas` has as CSV."""
        with open(path, "w", encoding="utf-8", errors="replace", newline="") as file:
            totals.groups_of_ranks(self.together).write_csv(file)

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write what `to_pandas` has as one Parquet file.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        table = totals.groups_of_ranks(self.together).to_arrow()
        from pyarrow import parquet

        parquet.write_table(table, path)


def _ranks(all_ranks: Together, failures: Sequence[Failure]) -> Table:
    """See Batch.ranks."""
    ranks = all_ranks.ranks
    none = [-1] * len(failures)
    unknown = [np.nan] * len(failures)
    processes = [rank.process for rank in ranks]
    summaries = [rank.summary for rank in ranks]
    spans = [None if each is None or each.span is None else each.span for each in processes]
    spans_ns = [-1 if each is None else each[1] - each[0] for each in spans]
    times = [0 if each is None else each.time for each in processes]
    depths = dict.fromkeys(depth for each in summaries for depth in each.coverage)
    no_devices = ["-"] * len(failures)
    devices = [",".join(map(str, each.devices)) or "-" if each else "-" for each in processes]

    def numbers(values: Sequence[int | None]) -> Ints:
        return Ints(np.array([-1 if v is None else v for v in [*values, *none]], np.int64))

    def floats(values: Sequence[float]) -> Floats:
        return Floats(np.array([*values, *unknown], np.float64))

    return Table(
        {
            "rank": numbers([rank.number for rank in ranks]),
            "file": texts([each.path for each in summaries] + [f.path for f in failures]),
            "pid": numbers([None if each is None else each.pid for each in processes]),
            "devices": texts([*devices, *no_devices]),
            "kernels": numbers([0 if each is None else each.kernels for each in processes]),
            "gpu_time": numbers(times),
            "span": numbers(spans_ns),
            "busy": floats(
                [t / s if s > 0 else np.nan for t, s in zip(times, spans_ns, strict=True)]
            ),
            "steps": numbers([each.steps for each in summaries]),
            **{
                depth: floats(
                    [
                        each.coverage.get(depth, 0) / each.gpu_time if each.gpu_time else np.nan
                        for each in summaries
                    ]
                )
                for depth in depths
            },
            "warnings": numbers([len(each.warnings) for each in summaries]),
            "seconds": floats([each.seconds for each in summaries]),
            "error": texts([None] * len(ranks) + [each.error for each in failures]),
        },
        totals.TIMES,
        totals.SHARES | set(depths),
    )
