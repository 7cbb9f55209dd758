"""The cost of every distinct call and direction, and the parts that kinds of kernels run.

Python code runs once per distinct call.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core._parts import BESIDE, MOST_PARTS
from fastprof.model.arrays import Int32
from fastprof.model.call import Call
from fastprof.profile.calls import Named, typed_like

NO_CALL = "na=na,"
UNDECIDED: Final = 2
TENSOR_CORE_CELLS = ["0", "1", "-"]


class Key(NamedTuple):
    """Kernels with the same key have the same row of the cost tables; see CallKind."""

    call: int
    work: int
    helper: int
    gradient: bool


class Texts:
    """A table column of texts, stored as ids of distinct texts."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._cells: list[int] = []

    def add(self, text: str | None) -> None:
        self._cells.append(-1 if text is None else self._ids.setdefault(text, len(self._ids)))

    @property
    def cells(self) -> Int32:
        """The index into `values` of each cell, -1 for unknown."""
        return np.array(self._cells, np.int32)

    @property
    def values(self) -> list[str]:
        """The distinct texts."""
        return list(self._ids)


class Tables:
    """Report cells for each (key, part of the call); rows in the order of `used`."""

    def __init__(self, infos: list[ops.KernelInfo], named: list[Named], used: list[Key]) -> None:
        self.mod, self.op, self.params, self.reason = Texts(), Texts(), Texts(), Texts()
        self.operand_types: list[str | None] = []
        self.helper: list[int] = []
        self.flops: list[int] = []
        self.bytes: list[int] = []
        self.exact: list[int] = []
        self._infos = infos
        self._form: list[int] = []
        self._forms: list[_Form] = []
        self.has_helpers = any(key.helper >= 0 for key in used)
        numbers: dict[Hashable, int] = {}
        for key in used:
            name = named[key.call] if key.call >= 0 else Named(None, None, None)
            self.operand_types.append(_operand_type(key, named))
            work = _work(key, named)
            if key.helper < 0:
                self._add(name, work)
            else:
                self._add_helper(name, work, named[key.helper])
                work = None
            self.helper += _helper_cells(key, work is not None)
            # Most calls differ in sizes only. So parts are assigned once per form.
            form = (name.call is None, work and tuple(map(_form, work.parts)))
            if form not in numbers:
                numbers[form] = len(numbers)
                self._forms.append(_Form(infos, name.call, work))
            self._form.append(numbers[form])

    def of_parts(self) -> tuple[npt.NDArray[Any], ...]:
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


def _work(key: Key, named: list[Named]) -> ops.Work | None:
    call = named[key.work].call if key.work >= 0 else None
    if call is None:
        return None
    outer = named[key.call].call
    if outer is not None and key.work != key.call and key.helper < 0:
        call = typed_like(call, outer)
    work = ops.work(call, "bprop" if key.gradient else "fprop")
    return work if work is None or named[key.work].exact else _estimated(work)


def _helper_cells(key: Key, costed: bool) -> list[int]:
    """The column helper for each part of a call."""
    if key.call < 0:
        return [-1] * (BESIDE + 1)
    if key.helper >= 0 or not costed:
        return [1 if key.helper >= 0 else UNDECIDED] * (BESIDE + 1)
    return [0] * BESIDE + [1]


def _operand_type(key: Key, named: list[Named]) -> str | None:
    """The compute type of the innermost of helper, work and call that records one."""
    calls = (named[i].call for i in (key.helper, key.work, key.call) if i >= 0)
    types = (ops.compute_types.call_type(call) for call in calls if call)
    return next((each for each in types if each), None)


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
