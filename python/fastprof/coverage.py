"""How much of the GPU time of a capture is known, and to which depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._take import distinct
from fastprof.calls import Bools, CallsOfKernels, Named
from fastprof.columns import Ints, Values
from fastprof.trace import Int64

NO_OPERATOR = "no range of an operator around the launch"
NO_SHAPES = "the capture has no shapes of it (record_shapes=True records them)"


@dataclass(frozen=True)
class UnknownCost:
    """An operator whose FLOPs are not known.

    Parameters
    ----------
    op : its name with its module, None for kernels outside of all operators
    direction : "fprop" or "bprop"
    kernels : how many it launched
    time : ns of them on the GPU
    reason : why its cost is not known
    """

    op: str | None
    direction: str
    kernels: int
    time: int
    reason: str


@dataclass(frozen=True)
class Coverage:
    """How much of the GPU time is known to which depth.

    Parameters
    ----------
    total : ns of all kernels
    known : ns of the kernels that have a launch, a range, an op, shapes, a known cost, a source
        line
    """

    total: int
    known: dict[str, int]
    _unknown: list[tuple[Named | None, str, int, int]]

    def __str__(self) -> str:
        parts = (f"{name} {self._percent(time)}" for name, time in self.known.items())
        text = f"GPU time {self.total / 1e6:.3f} ms, known of it: {', '.join(parts)}"
        names = {_qualified(name) for name, *_ in self._unknown} - {None}
        if names:
            time = sum(time for name, _, _, time in self._unknown if name is not None)
            one = "1 operator has" if len(names) == 1 else f"{len(names)} operators have"
            text += f"; {one} no known cost, {self._percent(time)}: --unknown lists them"
        return text

    def _percent(self, time: int) -> str:
        return f"{100 * time / self.total if self.total else 0:.1f} %"

    def unknown(self) -> list[UnknownCost]:
        """The operators whose FLOPs are not known, by their time on the GPU, the longest first.

        Calls of one operator that are unknown for the same reason are one entry.
        """
        merged: dict[tuple[str | None, str, str], tuple[int, int]] = {}
        for name, direction, kernels, time in self._unknown:
            key = _qualified(name), direction, _reason(name, direction)
            before = merged.get(key, (0, 0))
            merged[key] = before[0] + kernels, before[1] + time
        found = [
            UnknownCost(op, direction, kernels, time, reason)
            for (op, direction, reason), (kernels, time) in merged.items()
        ]
        return sorted(found, key=lambda each: (-each.time, each.op or "", each.reason))

    def unknown_text(self) -> str:
        """The operators of `unknown` as lines, with their share of the GPU time."""
        lines = [
            f"{self._percent(each.time):>8} {each.kernels:>9} kernels  {each.direction}"
            f"  {each.op or '(no operator)'}: {each.reason}"
            for each in self.unknown()
        ]
        return "\n".join(["no known cost:", *lines] if lines else ["every cost is known"])


def _qualified(name: Named | None) -> str | None:
    if name is None or name.op is None:
        return None
    return f"{name.mod}.{name.op}" if name.mod else name.op


def _reason(name: Named | None, direction: str) -> str:
    if name is None:
        return NO_OPERATOR
    if name.call is None:
        return NO_SHAPES
    return ops.why_unknown(name.call, direction) or "its formula gives no FLOPs"


def cover(
    duration: Int64,
    launched: Bools,
    inside: Bools,
    lines: Values,
    calls: CallsOfKernels,
    flops: Ints,
    counted: Bools | None = None,
) -> Coverage:
    """Add up the time that is known to each depth.

    Parameters
    ----------
    duration : ns [kernels]; one that is not known counts as none
    launched, inside : [kernels] whether a launch, a range is known
    lines : tuples [kernels], the source lines of each
    counted : [kernels] which rows count; all without it
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
    uncosted = ~costed if counted is None else ~costed & counted
    return Coverage(int(time.sum()), known, _unknown(np.flatnonzero(uncosted), calls, time))


def _unknown(
    rows: npt.NDArray[np.intp], calls: CallsOfKernels, time: Int64
) -> list[tuple[Named | None, str, int, int]]:
    """Each distinct call among the kernels, its direction, how many of them, their time."""
    backward = calls.backward[rows]
    used, place = distinct((calls.call[rows] + 1) * 2 + backward, 2 * len(calls.named) + 2)
    kernels = np.bincount(place, minlength=len(used)).tolist()
    times = np.zeros(len(used), np.int64)
    np.add.at(times, place, time[rows])
    return [
        (calls.named[key // 2 - 1] if key > 1 else None, ("fprop", "bprop")[key % 2], *counts)
        for key, *counts in zip(used, kernels, times.tolist(), strict=True)
    ]
