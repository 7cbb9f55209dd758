"""The cost of each kernel's call, and the kernel's share of it.

The cost is computed once per distinct (call, direction). Kernels share the cost of their call: the
sum over kernels equals the sum over calls.

The cost of every distinct call and direction, and the parts that kinds of kernels run.

Python code runs once per distinct call.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _parts, _share
from fastprof._core._parts import ALL_PARTS, BESIDE, MOST_PARTS, VARIANTS
from fastprof._core._pools import pairs
from fastprof._core._take import distinct, take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once, forget
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.call import Call
from fastprof.model.columns import Ints, SharedValues, Values
from fastprof.profile import checks
from fastprof.profile.calls import CallsOfKernels, Named, typed_like


class Costs:
    """The cost columns of all kernels; -1, or id -1, if unknown.

    Columns are computed on access, from the cell of each kernel: a row of the tables, a part of the
    call, and a tensor core cell.

    cell : int32 [kernels], as `_parts.find` returns it
    """

    def __init__(
        self,
        tables: CostTables,
        cell: Int32,
        calls: CallsOfKernels,
        names: SharedValues,
        duration: Int64,
        gpus: Iterable[str],
    ) -> None:
        self._calls = calls
        self._names, self._duration, self._gpus = names, duration, list(gpus)
        # Few of all cells have kernels: columns have only these.
        used, self._cell = distinct(cell, len(tables.flops) * VARIANTS)
        cells = np.array(used, np.int32)
        self._of, self._variant = tables.at(cells // VARIANTS), cells % np.int32(VARIANTS)

    def helper(self, auxiliary: npt.NDArray[np.bool_]) -> Ints:
        """1 for kernels without a share of their call's cost, else 0; unknown without a call.

        auxiliary : bool [names + 1], decides for calls of unknown cost; the last without a name
        """
        of_cells = self._of_kernels(self._of.helper)
        rows = np.flatnonzero(of_cells == UNDECIDED)
        if len(rows):
            of_cells[rows] = auxiliary[self._name(rows)]
        return Ints(of_cells)

    def compute_types(self, of_name: Int32, types: Sequence[str]) -> SharedValues:
        """The compute type of each kernel, by its name and the type of its operands.

        types : the distinct types
        of_name : [names + 1, types + 1] index into `types`, -1 for unknown; the last row without a
            name, the first column for unknown operands
        """
        number = {type_: i for i, type_ in enumerate(types, 1)}
        numbers = [number[operand_type] for operand_type in self._of.operand_type.values]
        operands = take(np.array(numbers, np.int32), self._of.operand_type.ids, 0)
        first = np.arange(len(of_name), dtype=np.int32) * np.int32(of_name.shape[1])
        names = self._names
        place = take(take(first[:-1], names.id_of_row, first[-1]), names.rows, first[-1])
        place += self._of_kernels(operands)
        return SharedValues(place, of_name.reshape(-1), list(types))

    def _name(self, rows: npt.NDArray[np.intp]) -> Int32:
        """The ids of the names of some kernels."""
        return take(self._names.id_of_row, self._names.rows[rows])

    @property
    def mod(self) -> SharedValues:
        return self._texts(self._of.mod)

    @property
    def op(self) -> Values:
        return self._texts(self._of.op)

    @property
    def params(self) -> Values:
        return self._texts(self._of.params)

    def _texts(self, of_cells: Values) -> SharedValues:
        return SharedValues(self._cell, of_cells.ids, of_cells.values)

    @property
    def tc(self) -> SharedValues:
        return SharedValues(self._cell, self._variant - np.int32(1), TENSOR_CORE_CELLS)

    @property
    def tc_reason(self) -> Values:
        """Why tensor cores were not used; "-" if they were used or cannot apply."""
        reasons, of_cell = self._of.reason, self.tc.id_of_row
        rows = np.flatnonzero(take(of_cell == TENSOR_CORE_CELLS.index("0"), self._cell))
        own: dict[str, int] = {}
        of_name = [
            own.setdefault(ops.reason_of_name(name), len(own)) for name in (*self._names.values, "")
        ]
        result = reasons.ids[self._cell[rows]]
        own_ids = np.array(of_name, np.int32)[self._name(rows)]
        ids = np.where(result < 0, own_ids + np.int32(len(reasons.values)), result)
        place: dict[str, int] = {}
        texts = [*reasons.values, *own]
        adapted = [*(ops.tensor_cores.for_gpus(text, self._gpus) for text in texts), "-"]
        new = np.array([place.setdefault(text, len(place)) for text in adapted], np.int32)
        column = take(np.where(of_cell >= 0, new[-1], np.int32(-1)), self._cell)
        column[rows] = new[ids]
        return Values(column, list(place))

    @property
    def exact(self) -> Ints:
        """0 if flops or bytes are estimates."""
        return Ints(self._of_kernels(self._of.exact))

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
        of_cells = self._of
        has_cost = (self._calls.group >= 0) | self._of_kernels(of_cells.part == BESIDE)
        flops, moved = (
            self._of_kernels(total >= 0) & has_cost for total in (of_cells.flops, of_cells.bytes)
        )
        return flops, moved

    def _of_kernels(self, of_cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """[kernels] The value of each kernel's cell."""
        return take(of_cells, self._cell)

    @computed_once
    def _shares(self) -> tuple[Ints, Ints]:
        flops, moved = _shared(self._of, self._cell, self._calls, self._duration)
        return Ints(flops), Ints(moved)

    @property
    def cell(self) -> Int32:
        """[kernels] The cell; with the kernel's name, it determines all but shares."""
        return self._cell

    def at(self, rows: Int32) -> Costs:
        """The costs of some kernels, without their shares `flops` and `bytes`."""
        costs, names = copy(self), self._names
        forget(costs, "_shares")
        costs._cell = self._cell[rows]
        costs._names = SharedValues(names.rows[rows], names.id_of_row, names.values)
        return costs


def _shared(
    of_cells: CostCells, cell: Int32, calls: CallsOfKernels, duration: Int64
) -> list[Int64]:
    """Each kernel's share of its part's FLOPs and bytes.

    cell : int32 [kernels]
    """
    part = of_cells.part
    group, n_groups = _share.pairs(
        calls.group,
        calls.n_groups,
        cell,
        part,
        BESIDE + 1 if of_cells.has_helpers else BESIDE,
    )
    groups = _share.Groups(group, n_groups, cell, duration, len(part))
    shares = []
    for what, total in (("FLOPs", of_cells.flops), ("bytes", of_cells.bytes)):
        share = take(np.where(part == BESIDE, total, -1), cell)
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
    inside = take(calls.kinds.is_inside, calls.kind)
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
    row, keys = _distinct_keys(calls)
    tables = CostTables(list(infos), calls.named, keys)
    cell = _parts.find(
        (
            calls.kind,
            row,
            shared.rows,
            np.append(info, np.int32(without_name)),
            calls.group,
            calls.taken,
        ),
        tables.part_tables(),
    )
    return Costs(tables, cell, calls, shared, duration, gpus)


NO_CALL = "na=na,"
UNDECIDED: Final = 2
TENSOR_CORE_CELLS = ["0", "1", "-"]


class CostKey(NamedTuple):
    """Kernels with the same key have the same row of the cost tables; see CallKinds."""

    call: int
    work: int
    helper: int
    gradient: int


def _distinct_keys(calls: CallsOfKernels) -> tuple[Int32, Int32]:
    """The index of each kind's key, and the distinct keys, int32 [keys, 4], of CostKey's fields."""
    gradient = calls.kinds.gradient.astype(np.int32)
    columns = [*calls.kinds.calls.T, gradient]
    row = gradient
    for column in columns[:-1]:
        row, firsts = pairs(row, np.ascontiguousarray(column))
    return row, np.stack(columns, axis=1)[firsts]


class CostTexts:
    """A table column of texts, stored as ids of distinct texts."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._cells = array("i")

    def add(self, text: str | None) -> None:
        self._cells.append(-1 if text is None else self._ids.setdefault(text, len(self._ids)))

    def at(self, rows: Int32) -> Values:
        """The texts of some rows."""
        return Values(np.array(self._cells, np.int32)[rows], list(self._ids))


class CostCells(NamedTuple):
    """Rows of the cost tables that have kernels; see `CostTables`."""

    mod: Values
    op: Values
    params: Values
    reason: Values
    operand_type: Values
    helper: npt.NDArray[np.int8]
    flops: Int64
    bytes: Int64
    exact: npt.NDArray[np.int8]
    part: npt.NDArray[np.int8]
    has_helpers: bool


class CostTables:
    """Report cells for each (key, part of the call); rows in the order of `keys`.

    Columns hold one row for each of ALL_PARTS parts of a key, few of which have kernels.

    keys : int32 [keys, 4], of CostKey's fields
    """

    def __init__(self, infos: list[ops.KernelInfo], named: Sequence[Named], keys: Int32) -> None:
        self.mod, self.op = CostTexts(), CostTexts()
        self.params, self.reason = CostTexts(), CostTexts()
        self.operand_type = CostTexts()  # of each key
        self.helper = array("b")
        self.flops = array("q")
        self.bytes = array("q")
        self.exact = array("b")
        self._infos = infos
        self._form = array("i")
        self._forms: list[_Form] = []
        self.has_helpers = bool((keys[:, 2] >= 0).any())
        numbers: dict[Hashable, int] = {}
        for row in keys:
            key = CostKey(*row.tolist())
            name = _named(named, key.call)
            inner = name if key.work == key.call else _named(named, key.work)
            helper = _named(named, key.helper)
            self.operand_type.add(_operand_type(helper, inner, name))
            work = _work(key, name, inner)
            if key.helper < 0:
                self._add(name, work)
            else:
                self._add_helper(name, work, helper)
                work = None
            self.helper.extend(_helper_cells(key, work is not None))
            # Most calls differ in sizes only. So parts are assigned once per form.
            form = (name.call is None, work and tuple(map(_form, work.parts)))
            if form not in numbers:
                numbers[form] = len(numbers)
                self._forms.append(_Form(infos, name.call, work))
            self._form.append(numbers[form])

    def at(self, rows: Int32) -> CostCells:
        """Some rows of all columns."""
        return CostCells(
            mod=self.mod.at(rows),
            op=self.op.at(rows),
            params=self.params.at(rows),
            reason=self.reason.at(rows),
            operand_type=self.operand_type.at(rows // ALL_PARTS),
            helper=np.array(self.helper)[rows],
            flops=np.array(self.flops)[rows],
            bytes=np.array(self.bytes)[rows],
            exact=np.array(self.exact)[rows],
            part=(rows % ALL_PARTS).astype(np.int8),
            has_helpers=self.has_helpers,
        )

    def part_tables(self) -> tuple[npt.NDArray[Any], ...]:
        """The tables of `_parts.find`; variants are tensor core cells plus 1."""
        forms = self._forms
        return (
            np.array(self._form, np.int32),
            np.array([form.part_of for form in forms], np.int8),
            np.array([form.sure for form in forms], bool),
            (np.array([form.tc for form in forms]) + 1).astype(np.uint8),
            np.array([form.main for form in forms], bool),
            np.array([form.costed for form in forms], bool),
            np.array([form.whole_always for form in forms], bool),
            np.array([info.kind == "other" for info in self._infos]),
        )

    def _add(self, name: Named, work: ops.Work | None) -> None:
        if work is None:
            params = ops.tensors_text(name.call) if name.call else NO_CALL
            reason = ops.reason_of_types(name.call) if name.call else ""
            cells = [(name.op, params, ops.Cost(None, None), reason)] * (BESIDE + 1)
        else:
            parts = work.parts[:MOST_PARTS]
            mains = [part for part in parts if part.role != "bias"]
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


_NO_CALL: Final = Named(None, None, None)


def _named(named: Sequence[Named], call: int) -> Named:
    return named[call] if call >= 0 else _NO_CALL


def _work(key: CostKey, name: Named, inner: Named) -> ops.Work | None:
    """The work of a key.

    name, inner : the calls `call` and `work` of the key
    """
    call, outer = inner.call, name.call
    if call is None:
        return None
    if outer is not None and inner is not name and key.helper < 0:
        call = typed_like(call, outer)
    work = ops.work(call, "bprop" if key.gradient else "fprop")
    return work if work is None or inner.exact else _estimated(work)


def _helper_cells(key: CostKey, costed: bool) -> list[int]:
    """The column helper for each part of a call."""
    if key.call < 0:
        return [-1] * (BESIDE + 1)
    if key.helper >= 0 or not costed:
        return [1 if key.helper >= 0 else UNDECIDED] * (BESIDE + 1)
    return [0] * BESIDE + [1]


def _operand_type(*named: Named) -> str | None:
    """The compute type of the first call that records one."""
    types = (ops.compute_types.call_type(name.call) for name in named if name.call)
    return next((type_ for type_ in types if type_), None)


def _estimated(work: ops.Work) -> ops.Work:
    parts = (replace(part, cost=replace(part.cost, exact=False)) for part in work.parts)
    return ops.Work(tuple(parts))


def _known(count: int | None) -> int:
    """The count, -1 if it is unknown or exceeds 63 bits."""
    return -1 if count is None or count >= 1 << 63 else count


class _Form:
    """The parts of calls that differ in sizes only.

    Parameters
    ----------
    part_of : [infos] the part that a kernel runs, -1 for none
    sure : [infos] whether its name identifies the part
    tc : [infos] index into TENSOR_CORE_CELLS, -1 for unknown
    main : [MOST_PARTS] whether the part is one of the products
    costed : whether the cost is known
    whole_always : whether kernels without a part run the entire call
    """

    def __init__(
        self, infos: list[ops.KernelInfo], call: Call | None, work: ops.Work | None
    ) -> None:
        claims = [_claim(work, info) if work else (-1, True) for info in infos]
        self.part_of, self.sure = [part for part, _ in claims], [sure for _, sure in claims]
        self.tc = [
            _tensor_core(call, work, info, part)
            for info, part in zip(infos, self.part_of, strict=True)
        ]
        parts = work.parts[:MOST_PARTS] if work else ()
        self.main = [part.role != "bias" for part in parts] + [False] * (MOST_PARTS - len(parts))
        self.costed = work is not None
        self.whole_always = any(part.role != "bias" and not part.optional for part in parts)


def _form(part: ops.Part) -> Hashable:
    """The attributes of a part that determine its kernels."""
    return part.role, part.kernels, part.layout, part.optional, not part.no_tensor_cores


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
