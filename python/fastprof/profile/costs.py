"""The cost of each kernel's call, and the kernel's share of it.

The cost is computed once per distinct (call, direction). Kernels share the cost of their call: the
sum over kernels equals the sum over calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _parts, _share
from fastprof._core._parts import ALL_PARTS, BESIDE, VARIANTS
from fastprof._core._take import take
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Ints, SharedValues, Values
from fastprof.profile import checks
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.cost_tables import TENSOR_CORE_CELLS, UNDECIDED, Key, Tables, Texts


class Costs:
    """The cost columns of all kernels; -1, or id -1, if unknown.

    Columns are computed on access, from the cell of each kernel: a row of the tables, a part of the
    call, and a tensor core cell.
    """

    def __init__(
        self,
        tables: Tables,
        cell: Int32,
        calls: CallsOfKernels,
        names: SharedValues,
        duration: Int64,
        gpus: Iterable[str],
    ) -> None:
        self._tables, self._cell, self._calls = tables, cell, calls
        self._names, self._duration, self._gpus = names, duration, list(gpus)

    def helper(self, auxiliary: npt.NDArray[np.bool_]) -> Ints:
        """1 for kernels without a share of their call's cost, else 0; unknown without a call.

        auxiliary : bool [names + 1], decides for calls of unknown cost; the last without a name
        """
        found = _of_cells(np.array(self._tables.helper, np.int8), self._cell)
        rows = np.flatnonzero(found == UNDECIDED)
        if len(rows):
            found[rows] = auxiliary[self._name(rows)]
        return Ints(found)

    def compute_types(self, of_name: Int32, types: Sequence[str]) -> SharedValues:
        """The compute type of each kernel, by its name and the type of its operands.

        types : the distinct types
        of_name : [names + 1, types + 1] index into `types`, -1 for unknown; the last row without a
            name, the first column for unknown operands
        """
        number = {each: i for i, each in enumerate(types, 1)} | {None: 0}
        operands = np.array([number[each] for each in self._tables.operand_types], np.int32)
        first = np.arange(len(of_name), dtype=np.int32) * np.int32(of_name.shape[1])
        names = self._names
        place = take(take(first[:-1], names.id_of_row, first[-1]), names.rows, first[-1])
        place += take(np.repeat(operands, ALL_PARTS * VARIANTS), self._cell)
        return SharedValues(place, of_name.reshape(-1), list(types))

    def _name(self, rows: npt.NDArray[np.intp]) -> Int32:
        """The ids of the names of some kernels."""
        return take(self._names.id_of_row, self._names.rows[rows])

    @property
    def mod(self) -> SharedValues:
        return self._texts(self._tables.mod)

    @property
    def op(self) -> Values:
        return self._texts(self._tables.op)

    @property
    def params(self) -> Values:
        return self._texts(self._tables.params)

    def _texts(self, table: Texts) -> SharedValues:
        return SharedValues(self._cell, np.repeat(table.cells, VARIANTS), table.values)

    @property
    def tc(self) -> SharedValues:
        variant = np.arange(VARIANTS, dtype=np.int32) - np.int32(1)
        of_cell = np.tile(variant, len(self._tables.flops))
        return SharedValues(self._cell, of_cell, TENSOR_CORE_CELLS)

    @property
    def tc_reason(self) -> Values:
        """Why tensor cores were not used; "-" if they were used or cannot apply."""
        reasons, of_cell = self._tables.reason, self.tc.id_of_row
        rows = np.flatnonzero(take(of_cell == TENSOR_CORE_CELLS.index("0"), self._cell))
        own: dict[str, int] = {}
        of_name = [
            own.setdefault(ops.reason_of_name(name), len(own)) for name in (*self._names.values, "")
        ]
        found = reasons.cells[self._cell[rows] // VARIANTS]
        own_ids = np.array(of_name, np.int32)[self._name(rows)]
        ids = np.where(found < 0, own_ids + np.int32(len(reasons.values)), found)
        place: dict[str, int] = {}
        texts = [*reasons.values, *own]
        adapted = [*(ops.tensor_cores.for_gpus(each, self._gpus) for each in texts), "-"]
        new = np.array([place.setdefault(each, len(place)) for each in adapted], np.int32)
        column = take(np.where(of_cell >= 0, new[-1], np.int32(-1)), self._cell)
        column[rows] = new[ids]
        return Values(column, list(place))

    @property
    def exact(self) -> Ints:
        """0 if flops or bytes are estimates."""
        return Ints(_of_cells(np.array(self._tables.exact, np.int8), self._cell))

    @property
    def flops(self) -> Ints:
        return self._shares[0]

    @property
    def bytes(self) -> Ints:
        return self._shares[1]

    @property
    def known(self) -> tuple[Bools, Bools]:
        """[kernels] Whether flops and bytes are known, without computing the shares.

        Kernels without a call's instance have only what is theirs alone.
        """
        part = np.arange(len(self._tables.flops)) % ALL_PARTS
        has_group = self._calls.group >= 0
        flops, moved = (
            _of_cells(total, self._cell) & (has_group | _of_cells(part == BESIDE, self._cell))
            for total in (np.array(self._tables.flops) >= 0, np.array(self._tables.bytes) >= 0)
        )
        return flops, moved

    @computed_once
    def _shares(self) -> tuple[Ints, Ints]:
        flops, moved = _shared(self._tables, self._cell, self._calls, self._duration)
        return Ints(flops), Ints(moved)

    @property
    def cell(self) -> Int32:
        """[kernels] The cell; with the kernel's name, it determines all but shares."""
        return self._cell

    def at(self, rows: Int32) -> Costs:
        """The costs of some kernels, without their shares `flops` and `bytes`."""
        found, names = copy(self), self._names
        found.__dict__.pop("_shares", None)
        found._cell = self._cell[rows]
        found._names = SharedValues(names.rows[rows], names.id_of_row, names.values)
        return found


def _of_cells(table: npt.NDArray[Any], cell: Int32) -> npt.NDArray[Any]:
    """The value of each kernel's cell. table : [rows * parts]"""
    return take(np.repeat(table, VARIANTS), cell)


def _shared(tables: Tables, cell: Int32, calls: CallsOfKernels, duration: Int64) -> list[Int64]:
    """Each kernel's share of its part's FLOPs and bytes."""
    part = np.arange(len(tables.flops)) % ALL_PARTS
    group, n_groups = _share.pairs(
        calls.group,
        calls.n_groups,
        cell,
        np.repeat(part.astype(np.int8), VARIANTS),
        BESIDE + 1 if tables.has_helpers else BESIDE,
    )
    groups = _share.Groups(group, n_groups, cell, duration, len(part) * VARIANTS)
    shares = []
    for what, table in (("FLOPs", tables.flops), ("bytes", tables.bytes)):
        total = np.array(table, np.int64)
        share = _of_cells(np.where(part == BESIDE, total, -1), cell)
        total = np.repeat(total, VARIANTS)
        groups.share(total, share)
        checks.shares(what, *groups.add_up(total, share))
        shares.append(_left(calls, share))
    return shares


def _left(calls: CallsOfKernels, share: Int64) -> Int64:
    """The shares, where operators inside of a call have some of its cost: the others do the rest.

    Costs of parts inside are those of their own sizes, so they may exceed that of the call.
    """
    some = calls.taken == _calls.SOME_TAKEN
    if not some.any():
        return share
    rest = take(some, calls.group, False) & (share > 0)
    inside = take(np.array([each.is_inside for each in calls.kinds], bool), calls.kind)
    inside &= ~rest & (calls.instance >= 0) & (share > 0)
    n = int(calls.instance.max(initial=-1)) + 1
    taken, all_rest = (np.bincount(calls.instance[rows], share[rows], n) for rows in (inside, rest))
    at = calls.instance[rest]
    left = 1 - np.minimum(taken[at] / all_rest[at], 1)
    share[rest] = np.rint(share[rest] * left).astype(np.int64)
    return share


def cost(calls: CallsOfKernels, names: Values, duration: Int64, gpus: Iterable[str] = ()) -> Costs:
    """Compute the cost of every distinct call, to be shared among its kernels.

    Parameters
    ----------
    names : the name of each kernel
    duration : ns; kernels of the same part of a call share its cost in proportion to their time
    gpus : names of the GPUs, for advice on tensor cores
    """
    infos: dict[ops.KernelInfo, int] = {}
    info_of_name = [infos.setdefault(ops.classify(name), len(infos)) for name in names.values]
    without_name = infos.setdefault(ops.KernelInfo("other"), len(infos))
    shared = names.shared()
    info = take(np.array(info_of_name, np.int32), shared.id_of_row, without_name)
    used: dict[Key, int] = {}
    row = [used.setdefault(Key(*each.calls, each.gradient), len(used)) for each in calls.kinds]
    tables = Tables(list(infos), calls.named, list(used))
    cell = _parts.find(
        (
            calls.kind,
            np.array(row, np.int32),
            shared.rows,
            np.append(info, np.int32(without_name)),
            calls.group,
            calls.taken,
        ),
        tables.of_parts(),
    )
    return Costs(tables, cell, calls, shared, duration, gpus)
