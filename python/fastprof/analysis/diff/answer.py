"""The answer of a comparison, above its table, and the notes below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.analysis.diff.confidence import LEVEL, NOT_JUDGED
from fastprof.analysis.diff.side import Side
from fastprof.analysis.diff.waterfall import CALLS, STEPS, Waterfall
from fastprof.analysis.steps.windows import OTHER_CLOCK
from fastprof.model.numbers import quantity, scale_of

_TIMES: Final = {
    "busy_ns": "GPU busy",
    "idle_ns": "idle",
    "exposed_communication_ns": "exposed communication",
    "exposed_copy_ns": "exposed copies",
    "sync_ns": "host in synchronisation",
}
_MOST_NAMES: Final = 3


def lines(waterfall: Waterfall) -> tuple[str, ...]:
    """Both captures, and what their steps consist of."""
    return tuple(_lines(waterfall))


def _lines(waterfall: Waterfall) -> Iterator[str]:
    yield from capture_lines(waterfall)
    if waterfall.unit != CALLS:
        yield work_line(waterfall)
        pairs = {name: _pair(before, after) for name, before, after in times_of(waterfall)}
        if starved := starved_of(waterfall):
            pairs["starved kernels"] = "{:.1%} -> {:.1%}".format(*starved)
        if clocks := clocks_of(waterfall):
            pairs["SM clock"] = clock_text(*clocks)
        width = max(map(len, pairs), default=0)
        yield from (f"{name.ljust(width)}  {pair}" for name, pair in pairs.items())
    yield ""


def capture_lines(waterfall: Waterfall) -> list[str]:
    """Files, GPUs and steps of both captures, one line each."""
    return [
        f"{name}: {_capture(half.side)}"
        for name, half in zip(("before", "after"), waterfall.halves, strict=True)
    ]


def _capture(side: Side) -> str:
    names = ", ".join(side.names[:_MOST_NAMES])
    if len(side.names) > _MOST_NAMES:
        names += f" and {len(side.names) - _MOST_NAMES} more"
    return ", ".join(filter(None, [names, side.gpus, side.steps]))


def answer(waterfall: Waterfall, wall: Mapping[str, Any]) -> str:
    """The change of the step, and whether it is more than noise: one line."""
    pair = _numbers(wall["before_ns"], wall["after_ns"])
    if waterfall.unit != STEPS:
        sides = zip(("BEFORE", "AFTER"), waterfall.halves, strict=True)
        lacking = [name for name, half in sides if not half.side.has_steps]
        text = f"not judged: no steps in {' and '.join(lacking)}; captures of {pair}"
        if waterfall.unit != CALLS:
            return f"{text} do the same work; --steps compares steps"
        return f"{text} do different work; compared are as many calls as both have"
    text = f"step {pair}, {wall['change']:+.1%}"
    if wall["verdict"] == NOT_JUDGED:
        return f"{text}: not judged; {wall['because']}"
    high = "unbounded" if wall["high"] is None else f"{wall['high']:+.1%}"
    interval = f"{LEVEL:.0%} interval {wall['low']:+.1%} to {high} from {wall['samples']}"
    text += f" ({interval}): {wall['verdict']}"
    medians = _numbers(wall["before_median_ns"], wall["after_median_ns"])
    return f"{text}; medians {medians}"


def work_line(waterfall: Waterfall) -> str:
    """Whether both do the same work, and the kernels of a step."""
    before, after = (
        int(half.side.kernels.sum()) / half.side.n_windows for half in waterfall.halves
    )
    work = "same work" if waterfall.same_work else "the work differs"
    counts = f"{before:.6g}" if before == after else f"{before:.6g} -> {after:.6g}"
    return f"{work}: {counts} kernels a {waterfall.unit} and GPU"


def times_of(waterfall: Waterfall) -> list[tuple[str, float, float]]:
    """What a step consists of: name, ns before and ns after, of all times that a side has."""
    times: list[tuple[str, float, float]] = []
    slowest = [float(_lanes(half.side).max()) for half in waterfall.halves]
    if waterfall.unit == STEPS and _pair(*slowest) != _pair(*waterfall.wall_ns):
        times.append(("slowest GPU", slowest[0], slowest[1]))
    for key, name in _TIMES.items():
        before, after = (_mean(half.side, key) for half in waterfall.halves)
        if before is not None and after is not None and before + after:
            times.append((name, before, after))
    call = [_ratio(half.side, "launch_ns", "launches") for half in waterfall.halves]
    if all(call):
        times.append(("launch call", call[0], call[1]))
    return times


def starved_of(waterfall: Waterfall) -> tuple[float, float] | None:
    """The share of starved kernels before and after; None if there are none."""
    before, after = (_ratio(half.side, "starved", "launched") for half in waterfall.halves)
    return (before, after) if before or after else None


def clocks_of(waterfall: Waterfall) -> tuple[float, float] | None:
    """The mean clock of the SMs before and after, Hz; None if a side has no samples of it."""
    before, after = (_known_mean(half.side, "sm_clock_hz") for half in waterfall.halves)
    return None if before is None or after is None else (before, after)


def clock_text(before: float, after: float) -> str:
    """Both clocks, and what that means for the time of kernels."""
    change = after / before - 1
    text = f"{quantity(before, 'hz')} -> {quantity(after, 'hz')} ({change:+.1%})"
    if abs(change) < OTHER_CLOCK:
        return text
    return f"{text}: compute-bound kernels take {before / after - 1:+.0%} time from the clock alone"


def _known_mean(side: Side, name: str) -> float | None:
    values = side.windows.get(name)
    known = None if values is None else values[values > 0]
    return None if known is None or not len(known) else float(known.mean())


def _ratio(side: Side, name: str, of: str) -> float:
    """A total over another, 0 if that is 0."""
    total = int(side.windows[of].sum())
    return int(side.windows[name].sum()) / total if total else 0.0


def _mean(side: Side, name: str) -> float | None:
    """The mean over windows, ns; None if unknown."""
    values = side.windows[name]
    return float(values.mean()) if (values >= 0).all() else None


def _lanes(side: Side) -> npt.NDArray[np.float64]:
    """The mean step of each GPU of each rank, ns."""
    gpus = np.stack([side.windows[name] for name in ("rank", "pid", "device")], axis=1)
    _, place = np.unique(gpus, axis=0, return_inverse=True)
    place = place.reshape(-1)
    return np.bincount(place, side.windows["wall_ns"]) / np.bincount(place)


def _pair(before: float, after: float) -> str:
    change = f" ({after / before - 1:+.1%})" if before else ""
    return f"{_numbers(before, after)}{change}"


def _numbers(before: float, after: float) -> str:
    """Both times in one unit."""
    scale = scale_of("ns", max(before, after))
    return f"{before / scale.size:.4g} -> {after / scale.size:.4g} {scale.name}"


_MOST: Final = 3  # renamed layers
_UNIFORM: Final = 0.8  # share of the GPU time


def notes(waterfall: Waterfall) -> tuple[str, ...]:
    """What limits the comparison, one line each."""
    return tuple(_notes(waterfall))


def _notes(waterfall: Waterfall) -> Iterator[str]:
    matched = waterfall.matched
    if matched.ignored:
        yield f"not compared, as only one side records them: {', '.join(matched.ignored)}"
    if matched.layers:
        pairs = [f"{old} -> {new}" for old, new in sorted(matched.layers.items())]
        more = f" and {len(pairs) - _MOST} more" if len(pairs) > _MOST else ""
        yield f"renamed layers: {', '.join(pairs[:_MOST])}{more}"
    if waterfall.clocks is not None:
        yield (
            f"kernels with {waterfall.clocks.share:.0%} of the GPU time changed by one factor, "
            f"{waterfall.clocks.factor:.3f}: the GPU's clock; rows show what else changed"
        )
    ratio = calls_ratio(waterfall) if waterfall.unit == STEPS else None
    if ratio is not None:
        yield (
            f"a step after has {ratio:.4g} times the calls of a step before: set --steps if the "
            "steps differ"
        )
    gpus = [half.side.gpus for half in waterfall.halves]
    if gpus[0] != gpus[1] and all(gpus):
        yield f"the GPUs differ: {gpus[0]} -> {gpus[1]}"
    for name, half in zip(("BEFORE", "AFTER"), waterfall.halves, strict=True):
        yield from (f"{name}: {note}" for note in half.side.notes)


def calls_ratio(waterfall: Waterfall) -> float | None:
    """Calls a step after, divided by those before, if they differ by one factor."""
    before, after = waterfall.halves
    n = waterfall.n_rows
    calls = [half.sums(half.side.calls, n) / half.side.n_windows for half in waterfall.halves]
    time = before.sums(before.gpu_ns, n) + after.sums(after.gpu_ns, n)
    rows = np.flatnonzero((calls[0] > 0) & (calls[1] > 0))
    times: Counter[float] = Counter()
    for row in rows.tolist():
        times[round(float(calls[1][row] / calls[0][row]), 4)] += int(time[row])
    ratio, most = max(times.items(), key=lambda item: item[1], default=(1.0, 0))
    return ratio if ratio != 1 and most >= _UNIFORM * time.sum() else None
