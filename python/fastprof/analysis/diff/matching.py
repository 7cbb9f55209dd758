"""The groups of two captures that do the same work, by the longest common subsequence.

Groups match by call path and call, never by the kernel's name where the call is known. Each pass
matches what the passes before left over, by less: first all keys, at last the position among the
calls of a layer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.diff.side import COMPUTE, UNIT_KEYS, Side
from fastprof.analysis.keys import without_types
from fastprof.model.arrays import Int64

TYPES: Final = "types"  # of tensors: the part of shapes that not all recorders write
_SELDOM: Final = 0.1  # a side does not record a key that is known for so much less of its time
_LEAST_VOTES: Final = 0.5  # share of the calls of a layer that must align with a renamed one


class Unit(NamedTuple):
    """What is compared: a call at a place; where the operator is unknown, a kernel at a place."""

    phase: str | None
    dir: str | None
    layer: str | None
    range: str | None
    op: str | None
    shape: str | None
    line: str | None
    part: str | None
    kind: str | None
    kernel: str | None


@dataclass(frozen=True)
class Matched:
    """The rows of a comparison.

    Parameters
    ----------
    before, after : int64 [groups], the row of each group
    how : [rows], how it was matched: `same` by all keys; `line`, `layer`, `phase`, `op`, `shape` or
        `kernel`: this key differs; `position`: other calls at its place; `only` one side has it
    layers : layers of BEFORE with another name in AFTER
    ignored : keys that only one side records
    """

    before: Int64
    after: Int64
    how: list[str]
    layers: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def matched(before: Side, after: Side) -> Matched:
    """Match the groups of two sides; with the sides swapped, the rows are the same."""
    ignored = _recorded_once(before, after)
    sides = [_units(side, ignored) for side in (before, after)]
    is_swapped = [side.units for side in sides] != sorted(
        (side.units for side in sides), key=lambda units: list(map(repr, units))
    )
    if is_swapped:
        sides.reverse()
    matching = _Matching(sides[0].units, sides[1].units)
    matching.run()
    layers = matching.layers
    left, right = (
        np.array([*rows, -1])[side.of_group]
        for rows, side in zip(matching.rows, sides, strict=True)
    )
    if is_swapped:
        left, right, layers = right, left, {new: old for old, new in layers.items()}
    return Matched(left, right, matching.how, layers, ignored)


class _Units(NamedTuple):
    """The distinct units of a side, in order of their first kernel, and the unit of each group."""

    units: list[Unit]
    of_group: Int64


def _recorded_once(before: Side, after: Side) -> tuple[str, ...]:
    """The keys that only one side records; types are a part of shapes."""
    results = []
    for key in UNIT_KEYS:
        less, more = sorted(side.known_share(key) for side in (before, after))
        if less < _SELDOM * more:
            results.append(key)
    if "shape" not in results and _has_types(before) != _has_types(after):
        results.append(TYPES)
    return tuple(results)


def _has_types(side: Side) -> bool:
    return any(without_types(text) != text for text in side.keys["shape"].values)


def _units(side: Side, ignored: Sequence[str]) -> _Units:
    """The units of a side.

    Without operators on one side, kernels match by name.
    """
    n = side.n_groups
    columns: dict[str, Sequence[str | None]] = {
        name: [None] * n if name in ignored else side.texts(name)
        for name in (*UNIT_KEYS, "kind", "kernel")
    }
    if TYPES in ignored:
        columns["shape"] = [text and without_types(text) for text in columns["shape"]]
    ids: dict[Unit, int] = {}
    numbers = []
    for values in zip(*(columns[name] for name in Unit._fields), strict=True):
        unit = Unit(*values)
        if unit.op is not None:
            unit = unit._replace(kind=None, kernel=None)
        numbers.append(ids.setdefault(unit, len(ids)))
    return _Units(list(ids), np.array(numbers, np.int64))


class _Matching:
    """The rows of the units of two sides, pass by pass.

    Attributes
    ----------
    rows : the row of each unit on both sides, -1 for none yet
    how : [rows]
    layers : renamed layers, left to right
    """

    def __init__(self, left: list[Unit], right: list[Unit]) -> None:
        self.units = (left, right)
        self.rows = ([-1] * len(left), [-1] * len(right))
        self.how: list[str] = []
        self.layers: dict[str, str] = {}
        self._lines: dict[str, str] = {}

    def run(self) -> None:
        self._lines = _moved(*self.units)
        self._by("same", lambda unit: unit)
        self._by("line", lambda unit: unit._replace(line=None))
        self.layers = _renamed(*self.units, *self.rows)
        self._by("layer", lambda unit: unit._replace(line=None))
        self._by("phase", lambda unit: unit._replace(line=None, phase=None))
        self._by("op", _of_compiler)
        self._by("shape", lambda unit: unit._replace(line=None, phase=None, shape=None))
        self._by("kernel", _of_kind)
        for side in (0, 1):
            self._compiled(side)
        self._by_position()
        for side in (0, 1):
            for i, row in enumerate(self.rows[side]):
                if row < 0:
                    self._add("only", *(([i], []) if side == 0 else ([], [i])))

    def _add(self, how: str, left: Sequence[int], right: Sequence[int]) -> None:
        for rows, places in zip(self.rows, (left, right), strict=True):
            for i in places:
                rows[i] = len(self.how)
        self.how.append(how)

    def _free(self, side: int) -> Iterator[tuple[int, Unit]]:
        """The units of a side without a row; layers and lines by their name on the right."""
        for i, unit in enumerate(self.units[side]):
            if self.rows[side][i] < 0:
                yield i, self._named(side, unit)

    def _named(self, side: int, unit: Unit) -> Unit:
        if side:
            return unit
        layer, line = unit.layer or "", unit.line or ""
        return unit._replace(
            layer=self.layers.get(layer, unit.layer), line=self._lines.get(line, unit.line)
        )

    def _by(self, how: str, key: Callable[[Unit], Unit | None]) -> None:
        """Match units with equal keys, unless None; several of a side are one row."""
        left, right = (_listed((key(unit), i) for i, unit in self._free(side)) for side in (0, 1))
        for each, places in left.items():
            if each is not None and each in right:
                self._add(how, places, right[each])

    def _compiled(self, side: int) -> None:
        """Match code of a compiler on one side with the calls that only the other side has.

        They are those of its layer; of its direction, if the compiler dropped the layers.
        """
        for parts in ((0, 1, 2, 3), (0, 3)):
            free = [
                _listed(
                    (tuple(self._place(number, unit)[i] for i in parts), place)
                    for place, unit in self._free(number)
                    if _is_compiled(unit) == (number == side)
                    and (number != side or (unit.layer is None) == (len(parts) == 2))
                )
                for number in (0, 1)
            ]
            for place, lefts in free[0].items():
                if place in free[1] and place[-1] == COMPUTE:
                    self._add("position", lefts, free[1][place])

    def _by_position(self) -> None:
        """Match what is left between the same matched calls of a layer."""
        left, right = (
            _listed((self._place(side, unit), i) for i, unit in enumerate(self.units[side]))
            for side in (0, 1)
        )
        for place, lefts in left.items():
            rights = right.get(place, [])
            anchors = aligned(
                *(
                    [_token(self.rows[side][i]) for i in members]
                    for side, members in _both(lefts, rights)
                )
            )
            is_same_layer = place[1] is not None
            if is_same_layer or 2 * len(anchors) >= min(len(lefts), len(rights)):
                self._between(lefts, rights, [*anchors, (len(lefts), len(rights))])

    def _place(self, side: int, unit: Unit) -> tuple[str | None, ...]:
        unit = self._named(side, unit)
        return unit.dir, unit.layer, unit.range, unit.part

    def _between(self, lefts: list[int], rights: list[int], anchors: list[tuple[int, int]]) -> None:
        begin = (0, 0)
        for end in anchors:
            free = [
                [i for i in members[begin[side] : end[side]] if self.rows[side][i] < 0]
                for side, members in _both(lefts, rights)
            ]
            if all(free):
                self._add("position", *free)
            begin = end


# Calls that a compiler makes of several operators: torch.compile, Inductor's kernels.
_COMPILED: Final = re.compile(r"Compiled(?:Function|FxGraph)|triton_|Torch-Compiled")
_INDEX: Final = re.compile(r"_\d+\Z")


def _is_compiled(unit: Unit) -> bool:
    return unit.op is not None and _COMPILED.match(unit.op) is not None


def _of_compiler(unit: Unit) -> Unit | None:
    """Inductor numbers its kernels in order of compilation."""
    if unit.op is None or not _is_compiled(unit):
        return None
    return unit._replace(line=None, phase=None, op=without_number(unit.op))


def without_number(name: str) -> str:
    """`triton_poi_fused_relu_3` as `triton_poi_fused_relu`; other names as they are."""
    return _INDEX.sub("", name) if _COMPILED.match(name) else name


def _of_kind(unit: Unit) -> Unit | None:
    """Kernels without operator of one kind, if their range or kind is known."""
    if unit.range is None and unit.kind in (None, "other"):
        return None
    return unit._replace(line=None, phase=None, kernel=None)


def _both(left: list[int], right: list[int]) -> Iterator[tuple[int, list[int]]]:
    return enumerate((left, right))


def _token(row: int) -> int | None:
    return row if row >= 0 else None


def _listed(pairs: Any) -> dict[Any, list[int]]:
    """The places of each key."""
    result: dict[Any, list[int]] = {}
    for key, place in pairs:
        result.setdefault(key, []).append(place)
    return result


def _moved(left: list[Unit], right: list[Unit]) -> dict[str, str]:
    """Source lines on the left, with those of the aligned calls on the right.

    Without it, a line that moves to the place of another one would be taken for it.
    """
    calls = ([unit._replace(line=None) for unit in units] for units in (left, right))
    votes: Counter[tuple[str | None, str | None]] = Counter(
        (left[i].line, right[j].line) for i, j in aligned(*calls)
    )
    return _elected(votes, Counter())


def _renamed(
    left: list[Unit], right: list[Unit], left_rows: list[int], right_rows: list[int]
) -> dict[str, str]:
    """Layers that only one side has, and those of the other side whose calls align with theirs.

    The longest common subsequence of the calls without their layers decides, by majority: of calls
    with their shapes, then of operators.
    """
    result: dict[str, str] = {}
    new = _only_in(right, left)
    for function in (_call, _operator):
        pairs = aligned([function(unit) for unit in left], [function(unit) for unit in right])
        old = _only_in(left, right) - result.keys()
        votes: Counter[tuple[str | None, str | None]] = Counter(
            (before, after)
            for i, j in pairs
            if left_rows[i] < 0 and right_rows[j] < 0
            for before, after in [(left[i].layer, right[j].layer)]
            if before in old and after in new
        )
        result |= _elected(votes, Counter(unit.layer for unit in (*left, *right)))
        new -= set(result.values())
    return result


def _only_in(units: list[Unit], others: list[Unit]) -> set[str]:
    """The layers that only one side has."""
    layers = {unit.layer for unit in units} - {unit.layer for unit in others}
    return {layer for layer in layers if layer is not None}


def _elected(
    votes: Counter[tuple[str | None, str | None]], sizes: Counter[str | None]
) -> dict[str, str]:
    """The pairs with most votes; each layer is in one pair at most."""
    result: dict[str, str] = {}
    for (old, new), count in sorted(
        votes.items(), key=lambda vote: (-vote[1], vote[0][0] != vote[0][1], repr(vote[0]))
    ):
        is_free = old not in result and new not in result.values()
        enough = count >= _LEAST_VOTES * max(sizes[old], sizes[new])
        if old is not None and new is not None and is_free and enough:
            result[old] = new
    return result


def _call(unit: Unit) -> Hashable:
    return unit._replace(layer=None, line=None, range=None)


def _operator(unit: Unit) -> Hashable:
    return unit._replace(layer=None, line=None, range=None, shape=None, phase=None)


_MOST: Final = 1 << 24  # cells of the table; longer sequences align at both ends only


def aligned(
    left: Sequence[Hashable | None], right: Sequence[Hashable | None]
) -> list[tuple[int, int]]:
    """The pairs of indices of a longest common subsequence, ascending; None equals nothing."""
    n = min(len(left), len(right))
    equal = [a == b and a is not None for a, b in zip(left, right, strict=False)]
    head = equal.index(False) if False in equal else n
    tail = 0
    while tail < n - head and left[-1 - tail] == right[-1 - tail] is not None:
        tail += 1
    middle = _middle(left[head : len(left) - tail], right[head : len(right) - tail])
    return [
        *((i, i) for i in range(head)),
        *((head + i, head + j) for i, j in middle),
        *((len(left) - k, len(right) - k) for k in range(tail, 0, -1)),
    ]


def _middle(
    left: Sequence[Hashable | None], right: Sequence[Hashable | None]
) -> list[tuple[int, int]]:
    if not left or not right or len(left) * len(right) > _MOST:
        return []
    numbers = {hashable: i for i, hashable in enumerate(dict.fromkeys([*left, *right]))}
    own = [-1 if hashable is None else numbers[hashable] for hashable in left]
    other = np.array([-2 if hashable is None else numbers[hashable] for hashable in right])
    length = np.zeros((len(left) + 1, len(right) + 1), np.int32)
    for i, number in enumerate(own):
        taken = np.maximum(length[i, 1:], length[i, :-1] + (other == number))
        np.maximum.accumulate(taken, out=length[i + 1, 1:])
    return _traced(length, own, other.tolist())


def _traced(
    length: np.ndarray[tuple[int, int], np.dtype[np.int32]], left: list[int], right: list[int]
) -> list[tuple[int, int]]:
    """The pairs that a table of lengths contains, from its end."""
    i, j, results = len(left), len(right), []
    while i and j:
        if left[i - 1] == right[j - 1]:
            i, j = i - 1, j - 1
            results.append((i, j))
        elif length[i - 1, j] >= length[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return results[::-1]
