"""The notes below the table of a comparison: what limits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.diff.waterfall import STEPS, Half, Waterfall

_MOST: Final = 3  # renamed layers
_UNIFORM: Final = 0.8  # share of the GPU time


def _named(found: Waterfall) -> Iterator[tuple[str, Half]]:
    return zip(("BEFORE", "AFTER"), found.halves, strict=True)


def notes(found: Waterfall) -> tuple[str, ...]:
    """What limits the comparison, one line each."""
    return tuple(_notes(found))


def _notes(found: Waterfall) -> Iterator[str]:
    matched = found.matched
    if matched.ignored:
        yield f"not compared, as only one side records them: {', '.join(matched.ignored)}"
    if matched.layers:
        pairs = [f"{old} -> {new}" for old, new in sorted(matched.layers.items())]
        more = f" and {len(pairs) - _MOST} more" if len(pairs) > _MOST else ""
        yield f"renamed layers: {', '.join(pairs[:_MOST])}{more}"
    if found.clocks is not None:
        yield (
            f"kernels with {found.clocks.share:.0%} of the GPU time changed by one factor, "
            f"{found.clocks.factor:.3f}: the GPU's clock; rows show what else changed"
        )
    ratio = calls_ratio(found) if found.unit == STEPS else None
    if ratio is not None:
        yield (
            f"a step after has {ratio:.4g} times the calls of a step before: set --steps if the "
            "steps differ"
        )
    gpus = [half.side.gpus for half in found.halves]
    if gpus[0] != gpus[1] and all(gpus):
        yield f"the GPUs differ: {gpus[0]} -> {gpus[1]}"
    for name, half in _named(found):
        yield from (f"{name}: {note}" for note in half.side.notes)


def calls_ratio(found: Waterfall) -> float | None:
    """Calls a step after, divided by those before, if they differ by one factor."""
    before, after = found.halves
    n = found.n_rows
    calls = [half.sums(half.side.calls, n) / half.side.n_windows for half in found.halves]
    time = before.sums(before.gpu_ns, n) + after.sums(after.gpu_ns, n)
    rows = np.flatnonzero((calls[0] > 0) & (calls[1] > 0))
    times: Counter[float] = Counter()
    for row in rows.tolist():
        times[round(float(calls[1][row] / calls[0][row]), 4)] += int(time[row])
    ratio, most = max(times.items(), key=lambda item: item[1], default=(1.0, 0))
    return ratio if ratio != 1 and most >= _UNIFORM * time.sum() else None
