"""The cost of each kernel's call, and the kernel's share of it.

The cost is computed once per distinct (call, direction). Kernels share the cost of their call: the
sum over kernels equals the sum over calls.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _share
from fastprof._core._calls import BESIDE, MOST_PARTS
from fastprof._core._pools import pairs
from fastprof._core._take import distinct, take
from fastprof.model.arrays import Int32, Int64
from fastprof.model.call import Call
from fastprof.model.columns import Ints, SharedValues, Values
from fastprof.profile import checks
from fastprof.profile.calls import CallsOfKernels, Named, typed_like

NO_CALL = "na=na,"
_UNDECIDED: Final = 2
TENSOR_CORE_CELLS = ["0", "1", "-"]


class Costs:
    """The cost columns of all kernels; -1, or id -1, if unknown.

    Columns are computed on access, from the table cell of each kernel.
    """

    def __init__(
        self, tables: _Tables, row: Int32, info: Int32, calls: CallsOfKernels, duration: Int64
    ) -> None:
        self._tables, self._calls, self._duration = tables, calls, duration
        self.gpus: list[str] = []
        self.own_reason = SharedValues(np.zeros(len(row), np.int32), np.zeros(1, np.int32), [""])
        self._part = _calls.parts(
            row,
            info,
            calls.group,
            calls.taken,
            tables.part_of,
            tables.sure,
            tables.main,
            tables.costed,
            tables.whole_always,
            tables.other,
        )
        self._cell = row * np.int32(BESIDE + 1) + self._part
        self._row, self._info = row, info

    def helper(self, auxiliary: npt.NDArray[np.bool_]) -> Ints:
        """1 for kernels without a share of their call's cost, else 0; unknown without a call.

        auxiliary : bool [kernels], decides for calls of unknown cost
        """
        found = np.array(self._tables.helper, np.int8)[self._cell]
        undecided = found == _UNDECIDED
        if undecided.any():
            found[undecided] = auxiliary[undecided]
        return Ints(found)

    @property
    def operand_types(self) -> list[str | None]:
        """The compute type of each row's operator, for `by_row`; None if unknown."""
        return self._tables.operand_types

    def by_row(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The value of each kernel's row. table : [rows]"""
        return table[self._row]

    @property
    def mod(self) -> SharedValues:
        return self._tables.mod.column(self._cell)

    @property
    def op(self) -> Values:
        return self._tables.op.column(self._cell)

    @property
    def params(self) -> Values:
        return self._tables.params.column(self._cell)

    @cached_property
    def tc(self) -> SharedValues:
        tc = self._tables.tc
        place = self._row * np.int32(tc.shape[1]) + self._info
        return SharedValues(place, tc.reshape(-1).astype(np.int32), TENSOR_CORE_CELLS)

    @property
    def tc_reason(self) -> Values:
        """Why tensor cores were not used; "-" if they were used or cannot apply."""
        not_used = TENSOR_CORE_CELLS.index("0")
        rows = np.flatnonzero(take(self.tc.id_of_row == not_used, self.tc.rows))
        reasons = self._tables.reason.column(self._cell[rows])
        # Without a call, only the kernel's name is known.
        of_name = self.own_reason.id_of_row  # the last is that of kernels without a name
        own = take(of_name, self.own_reason.rows[rows], int(of_name[-1]))
        ids = np.where(reasons.ids < 0, own + np.int32(len(reasons.values)), reasons.ids)
        place: dict[str, int] = {}
        texts = [*reasons.values, *self.own_reason.values]
        adapted = [*(ops.tensor_cores.for_gpus(each, self.gpus) for each in texts), "-"]
        new = np.array([place.setdefault(each, len(place)) for each in adapted], np.int32)
        of_row = np.where(self.tc.id_of_row >= 0, new[-1], np.int32(-1))
        column = take(of_row, self.tc.rows)
        column[rows] = new[ids]
        return Values(column, list(place))

    @property
    def exact(self) -> Ints:
        """0 if flops or bytes are estimates."""
        return Ints(take(np.array(self._tables.exact, np.int8), self._cell))

    @cached_property
    def flops(self) -> Ints:
        return self._shared("FLOPs", self._tables.flops)

    @property
    def bytes(self) -> Ints:
        return self._shared("bytes", self._tables.bytes)

    def _shared(self, what: str, table: list[int]) -> Ints:
        """Each kernel's share of its part's total."""
        total = np.array(table, np.int64)
        groups, alone = self._groups
        share = take(total, alone)
        groups.share(total, share)
        checks.shares(what, *groups.add_up(total, share))
        return Ints(share)

    @cached_property
    def _groups(self) -> tuple[_share.Groups, Int32]:
        """The kernels that share a cost; the cells of those that do not: -1 for all others."""
        calls, tables = self._calls, self._tables
        n_parts = BESIDE + 1 if tables.has_helpers else BESIDE
        group, n_groups = _share.pairs(calls.group, calls.n_groups, self._part, n_parts)
        groups = _share.Groups(group, n_groups, self._cell, self._duration, len(tables.flops))
        return groups, np.where(self._part == BESIDE, self._cell, np.int32(-1))

    @property
    def cell(self) -> Int32:
        """[kernels] The row of the tables; with the kernel's name, it determines all but shares."""
        cell: Int32 = self._cell
        return cell

    def at(self, rows: Int32) -> Costs:
        """The costs of some kernels, without their shares `flops` and `bytes`."""
        found = copy(self)
        for name in ("tc", "flops", "_groups"):
            found.__dict__.pop(name, None)
        found._cell, found._part = self._cell[rows], self._part[rows]
        found._row, found._info = self._row[rows], self._info[rows]
        own = self.own_reason
        found.own_reason = SharedValues(own.rows[rows], own.id_of_row, own.values)
        return found


def cost(
    calls: CallsOfKernels,
    names: Sequence[str],
    name_of_kernel: Int32,
    duration: Int64,
    gpus: Iterable[str] = (),
) -> Costs:
    """Compute the cost of every distinct call, to be shared among its kernels.

    Parameters
    ----------
    names, name_of_kernel : distinct kernel names, and the index of each kernel's name (-1: none)
    duration : ns; kernels of the same part of a call share its cost in proportion to their time
    gpus : names of the GPUs, for advice on tensor cores
    """
    infos: dict[ops.KernelInfo, int] = {}
    info_of_name = [infos.setdefault(ops.classify(name), len(infos)) for name in names]
    unknown = infos.setdefault(ops.KernelInfo("other"), len(infos))
    info = take(np.array(info_of_name, np.int32), name_of_kernel, unknown)
    used, row = _work_of_kernels(calls)
    found = Costs(_Tables(list(infos), calls.named, used), row, info, calls, duration)
    found.gpus = list(gpus)
    texts: dict[str, int] = {}
    ids = [texts.setdefault(ops.reason_of_name(name), len(texts)) for name in (*names, "")]
    found.own_reason = SharedValues(name_of_kernel, np.array(ids, np.int32), list(texts))
    return found


class _Key(NamedTuple):
    """Kernels with the same key have the same cost table row; see CallsOfKernels."""

    call: int
    work: int
    gradient: bool
    helper: int


def _work_of_kernels(calls: CallsOfKernels) -> tuple[list[_Key], Int32]:
    """The distinct keys, and the index of each kernel's key."""
    if (calls.helper < 0).all() and (calls.call == calls.work).all():
        key = np.where(calls.work >= 0, calls.work * 2 + calls.gradient, np.int32(-1))
        used, row = distinct(key, 2 * len(calls.named))
        return [_Key(key // 2, key // 2, key % 2 == 1, -1) for key in used], row
    left, _ = pairs(calls.call, calls.helper)
    row, first = pairs(left, calls.work * 2 + calls.gradient)
    columns = (calls.call, calls.work, calls.gradient, calls.helper)
    return [_Key(*key) for key in zip(*(c[first].tolist() for c in columns), strict=True)], row


class _Texts:
    """A table column of texts, stored as ids of distinct texts."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._cells: list[int] = []

    def add(self, text: str | None) -> None:
        self._cells.append(-1 if text is None else self._ids.setdefault(text, len(self._ids)))

    def column(self, cell: Int32) -> SharedValues:
        """The text of each cell; unknown for cell -1."""
        return SharedValues(cell, np.array(self._cells, np.int32), list(self._ids))


class _Tables:
    """Report cells for each (key, part of the call); rows in the order of `used`.

    `part_of[row, info]` is the part that a kernel of that kind runs, -1 for none; `sure[row, info]`
    is whether its name identifies the part; `tc[row, info]` is the tensor core cell.
    """

    def __init__(self, infos: list[ops.KernelInfo], named: list[Named], used: list[_Key]) -> None:
        self.mod, self.op, self.params, self.reason = _Texts(), _Texts(), _Texts(), _Texts()
        self.operand_types: list[str | None] = []
        self.helper: list[int] = []
        self.flops: list[int] = []
        self.bytes: list[int] = []
        self.exact: list[int] = []
        self.part_of = np.full((len(used), len(infos)), -1, np.int8)
        self.sure = np.zeros((len(used), len(infos)), bool)
        self.main = np.zeros((len(used), MOST_PARTS), bool)
        self.whole_always = np.zeros(len(used), bool)
        self.costed = np.zeros(len(used), bool)
        self.other = np.array([info.kind == "other" for info in infos])
        self.tc = np.full((len(used), len(infos)), -1, np.int8)
        self.has_helpers = any(key.helper >= 0 for key in used)
        by_form: dict[Hashable, tuple[list[int], list[bool], list[int]]] = {}
        for row, key in enumerate(used):
            name = named[key.call] if key.call >= 0 else Named(None, None, None)
            self.operand_types.append(_operand_type(key, named))
            work = _work(key, named)
            if key.helper < 0:
                self._add(row, name, work)
            else:
                self._add_helper(name, work, named[key.helper])
                work = None
            self.helper += _helper_cells(key, bool(self.costed[row]))
            # Most calls differ in sizes only. So parts are assigned once per form.
            form = (name.call is None, work and tuple(map(_form, work.parts)))
            if form not in by_form:
                claims = [_claim(work, info) if work else (-1, True) for info in infos]
                parts = [part for part, _ in claims]
                cells = [
                    _tensor_core(name.call, work, *both) for both in zip(infos, parts, strict=True)
                ]
                by_form[form] = parts, [sure for _, sure in claims], cells
            self.part_of[row], self.sure[row], self.tc[row] = by_form[form]

    def _add(self, row: int, name: Named, work: ops.Work | None) -> None:
        if work is None:
            params = ops.tensors_text(name.call) if name.call else NO_CALL
            reason = ops.reason_of_types(name.call) if name.call else ""
            cells = [(name.op, params, ops.Cost(None, None), reason)] * (BESIDE + 1)
        else:
            parts = work.parts[:MOST_PARTS]
            mains = [part for part in parts if part.role != "bias"]
            self.costed[row] = True
            self.main[row, : len(parts)] = [part.role != "bias" for part in parts]
            self.whole_always[row] = any(not part.optional for part in mains)
            params = parts[0].params
            cells = [
                (part.op or name.op, part.params, part.cost, part.no_tensor_cores) for part in parts
            ]
            reason = next((part.no_tensor_cores for part in parts if part.no_tensor_cores), "")
            cells += [(name.op, params, ops.Cost(0, 0), "")] * (MOST_PARTS - len(parts))
            whole = ops.Cost(0, 0)
            for part in mains:
                whole += part.cost
            cells += [(name.op, params, whole, reason), (name.op, params, ops.Cost(0, 0), reason)]
        self._add_cells(name, cells, work is not None)

    def _add_helper(self, name: Named, work: ops.Work | None, helper: Named) -> None:
        """Cells of an operator in addition to the products of a call: its bytes and no FLOPs."""
        own = ops.work(helper.call, "fprop") if helper.call else None
        params = work.parts[0].params if work else NO_CALL
        cost = ops.Cost(0, own.cost.bytes, own.cost.exact) if own else ops.Cost(None, None)
        self._add_cells(name, [(name.op, params, cost, "")] * (BESIDE + 1), True)

    def _add_cells(
        self, name: Named, cells: list[tuple[str | None, str, ops.Cost, str]], has_cost: bool
    ) -> None:
        for op, text, cost_of_cell, reason in cells:
            self.mod.add(name.mod)
            self.op.add(op)
            self.params.add(text)
            self.reason.add(reason or None)
            self.flops.append(_known(cost_of_cell.flops))
            self.bytes.append(_known(cost_of_cell.bytes))
            self.exact.append(int(cost_of_cell.exact) if has_cost else -1)


def _work(key: _Key, named: list[Named]) -> ops.Work | None:
    call = named[key.work].call if key.work >= 0 else None
    if call is None:
        return None
    outer = named[key.call].call
    if outer is not None and key.work != key.call and key.helper < 0:
        call = typed_like(call, outer)
    work = ops.work(call, "bprop" if key.gradient else "fprop")
    return work if work is None or named[key.work].exact else _estimated(work)


def _helper_cells(key: _Key, costed: bool) -> list[int]:
    """The column helper for each part of a call."""
    if key.call < 0:
        return [-1] * (BESIDE + 1)
    if key.helper >= 0 or not costed:
        return [1 if key.helper >= 0 else _UNDECIDED] * (BESIDE + 1)
    return [0] * BESIDE + [1]


def _operand_type(key: _Key, named: list[Named]) -> str | None:
    """The compute type of the innermost of helper, work and call that records one."""
    calls = (named[i].call for i in (key.helper, key.work, key.call) if i >= 0)
    types = (ops.compute_types.of_call(call) for call in calls if call)
    return next((each for each in types if each), None)


def _estimated(work: ops.Work) -> ops.Work:
    parts = (replace(part, cost=replace(part.cost, exact=False)) for part in work.parts)
    return ops.Work(tuple(parts))


def _known(count: int | None) -> int:
    """The count, -1 if it is unknown or exceeds 63 bits."""
    return -1 if count is None or count >= 1 << 63 else count


def _form(part: ops.Part) -> Hashable:
    """The attributes of a part that determine its kernels."""
    return part.role, part.kernels, part.layout, not part.no_tensor_cores


def _claim(work: ops.Work, info: ops.KernelInfo) -> tuple[int, bool]:
    """The part that a kernel runs, by kind, then by layout; and whether it is unambiguous.

    -1 for none and for auxiliary kernels.
    """
    fitting = [
        (i, part)
        for i, part in enumerate(work.parts[:MOST_PARTS])
        if not part.kernels or info.kind in part.kernels
    ]
    if not fitting or info.auxiliary:
        return -1, True
    exact = [i for i, part in fitting if part.layout is not None and part.layout == info.layout]
    guessed = len(fitting) > 1 and any(part.layout is None for _, part in fitting)
    sure = len(fitting) == 1 or (bool(exact) and not guessed)
    return (exact or [i for i, _ in fitting])[0], sure


def _tensor_core(call: Call | None, work: ops.Work | None, info: ops.KernelInfo, part: int) -> int:
    """Index into TENSOR_CORE_CELLS: used, possible but not used, not applicable; -1 unknown."""
    used, not_used, not_applicable, unknown = 1, 0, 2, -1
    if info.tensor_core is not None:  # by the kernel's name; known for products only
        return used if info.tensor_core else not_used
    if call is None:
        return unknown
    if work is None or part < 0 or not work.parts[part].no_tensor_cores:
        return not_applicable
    return unknown
