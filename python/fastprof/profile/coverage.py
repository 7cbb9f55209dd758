"""Coverage: the share of the GPU time with a known launch, range, operator, shapes, cost, line."""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core._take import distinct
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Ints, Values
from fastprof.profile.calls import ANNOUNCED, CallsOfKernels, Named

NO_SHAPES = "its range has no shapes (record_shapes=True records them)"
SHAPES_MISSING = "its range has no shapes, though record_shapes was on"
NEVER_HAS_SHAPES = "such a range never has shapes, and no operator inside it launched these kernels"


class RowCalls(NamedTuple):
    """The calls of rows: those of `CallsOfKernels`."""

    named: list[Named]
    call: Int32
    backward: Bools

    @classmethod
    def of(cls, calls: CallsOfKernels, rows: Int32 | slice = slice(None)) -> RowCalls:
        """The calls of some kernels."""
        return cls(calls.named, calls.call[rows], calls.backward[rows])


class Without(enum.Enum):
    """Why the operator of a kernel is unknown."""

    LAUNCH = "launched before the recording began"
    RANGE = "launched outside all ranges; fastprof info says what to record"
    OPERATOR = "launched inside ranges that are not operators; fastprof info says what to record"
    CAPTURE = (
        "replayed from a graph: the trace of the graph's capture contains its operators "
        "(--graph-capture TRACE)"
    )
    NODES = "a graph recorded as a whole (nsys profile --cuda-graph-trace=node records its kernels)"


@dataclass(frozen=True)
class UnknownCost:
    """An operator whose FLOPs are unknown.

    Parameters
    ----------
    op : its name with its module, None for kernels outside all operators
    direction : "fprop", "bprop", or "na" outside all operators
    kernels : number of its kernels
    time : their GPU time, ns
    reason : why its cost is unknown
    """

    op: str | None
    direction: str
    kernels: int
    time: int
    reason: str


@dataclass(frozen=True)
class Coverage:
    """How much of the GPU time is known, by depth.

    Parameters
    ----------
    total : GPU time of all kernels, ns
    known : GPU time by depth, ns: of kernels with a launch, a range, an op, shapes, a known cost, a
        source line
    kernels : number of kernels
    record_shapes : whether torch recorded the shapes of any call
    """

    total: int
    known: dict[str, int]
    kernels: int
    record_shapes: bool
    _unknown: list[tuple[Named | Without, str, int, int]]

    def __str__(self) -> str:
        parts = (f"{name} {self._percent(time)}" for name, time in self.known.items())
        text = f"GPU time {self.total / 1e6:.3f} ms, known: {', '.join(parts)}"
        names = {_qualified(name) for name, *_ in self._unknown} - {None}
        if names:
            time = sum(time for name, _, _, time in self._unknown if isinstance(name, Named))
            one = "1 operator has" if len(names) == 1 else f"{len(names)} operators have"
            text += f"; {one} no known cost, {self._percent(time)}: --unknown lists them"
        return text

    def _percent(self, time: int) -> str:
        return f"{100 * time / self.total if self.total else 0:.1f} %"

    def unknown(self) -> list[UnknownCost]:
        """The operators whose FLOPs are unknown, longest GPU time first.

        Calls of one operator with the same reason are one entry.
        """
        merged: dict[tuple[str | None, str, str], tuple[int, int]] = {}
        for name, direction, kernels, time in self._unknown:
            key = _qualified(name), direction, self._reason(name, direction)
            before = merged.get(key, (0, 0))
            merged[key] = before[0] + kernels, before[1] + time
        entries = [
            UnknownCost(op, direction, kernels, time, reason)
            for (op, direction, reason), (kernels, time) in merged.items()
        ]
        return sorted(entries, key=lambda each: (-each.time, each.op or "", each.reason))

    def without(self, why: Without) -> int:
        """GPU time, ns, of kernels whose operator is unknown for this reason."""
        return sum(time for name, _, _, time in self._unknown if name is why)

    def _reason(self, name: Named | Without, direction: str) -> str:
        if isinstance(name, Without):
            return name.value
        if name.call is None:
            if name.mod is None and ANNOUNCED.match(name.op or ""):
                return NEVER_HAS_SHAPES
            return SHAPES_MISSING if self.record_shapes else NO_SHAPES
        return ops.why_unknown(name.call, direction) or "its formula gives no FLOPs"

    def unknown_text(self) -> str:
        """The entries of `unknown` as lines, with their shares of the GPU time."""
        if not self.kernels:
            return "no kernels, no costs; fastprof info says what to record"
        lines = [
            f"{self._percent(each.time):>8} {each.kernels:>9} kernels  {each.direction:<5}"
            f"  {each.op or '(no operator)'}: {each.reason}"
            for each in self.unknown()
        ]
        return "\n".join(["no known cost:", *lines] if lines else ["every cost is known"])


def _qualified(name: Named | Without) -> str | None:
    if isinstance(name, Without) or name.op is None:
        return None
    return f"{name.mod}.{name.op}" if name.mod else name.op


def cover(
    duration: Int64,
    launched: Bools,
    inside: Bools,
    lines: Values,
    calls: RowCalls,
    flops: Ints,
    record_shapes: bool,
    kernels: Int64 | None = None,
    counted: Bools | None = None,
    graphs: Callable[[], tuple[Bools, Bools]] | None = None,
) -> Coverage:
    """Sum the known GPU time, by depth.

    Parameters
    ----------
    duration : ns [rows]; -1: unknown, counts as 0
    launched, inside : [rows] whether a launch, a range is known
    lines : tuples [rows], the source lines of each
    calls : [rows]
    flops : [rows] -1: unknown
    record_shapes : whether torch recorded the shapes of any call
    kernels : [rows] the kernels that each row stands for; default: one
    counted : [rows] which rows count; default: all
    graphs : returns two flags [rows]: replayed by a graph launch; a graph recorded as a whole
    """
    time = duration if duration.min(initial=0) >= 0 else np.maximum(duration, 0)
    if counted is not None:
        time = np.where(counted, time, 0)
    has_lines = np.array([bool(value) for value in lines.values] + [False])
    has_arguments = np.array([name.call is not None for name in calls.named] + [False])
    costed = flops.values >= 0
    depths = {
        "launch": launched,
        "range": inside,
        "op": calls.call >= 0,
        "shapes": has_arguments[calls.call],
        "cost": costed,
        "source line": has_lines[lines.ids],
    }
    known = {name: int(time[rows].sum()) for name, rows in depths.items()}
    rows = np.flatnonzero(~costed if counted is None else ~costed & counted)
    why = np.where(launched, np.where(inside, _OPERATOR, _RANGE), _LAUNCH).astype(np.int32)
    if graphs is not None and np.any(calls.call[rows] < 0):
        for flags, number in zip(graphs(), (_CAPTURE, _NODES), strict=True):
            why[flags] = number
    if kernels is None:
        kernels = np.ones(len(time), np.int64)
    n = int(kernels.sum() if counted is None else kernels[counted].sum())
    unknown = _unknown(rows, calls, time, kernels, why)
    return Coverage(int(time.sum()), known, n, record_shapes, unknown)


_WHYS = list(Without)
_LAUNCH, _RANGE, _OPERATOR, _CAPTURE, _NODES = range(len(_WHYS))


def _unknown(
    rows: npt.NDArray[np.intp], calls: RowCalls, time: Int64, kernels: Int64, why: Int32
) -> list[tuple[Named | Without, str, int, int]]:
    """By call (or reason for having none) and direction: number of kernels and their time."""
    call = calls.call[rows]
    name = np.where(call >= 0, call + len(_WHYS), why[rows]).astype(np.int32)
    names: list[Named | Without] = [*_WHYS, *calls.named]
    used, place = distinct(name * 2 + calls.backward[rows], 2 * len(names))
    sums = np.zeros((2, len(used)), np.int64)
    np.add.at(sums[0], place, kernels[rows])
    np.add.at(sums[1], place, time[rows])
    return [
        (names[key // 2], _direction(names[key // 2], key % 2), *counts)
        for key, *counts in zip(used, *sums.tolist(), strict=True)
    ]


def _direction(name: Named | Without, backward: int) -> str:
    if backward:
        return "bprop"
    return "na" if isinstance(name, Without) else "fprop"
