"""What torch.compile did in a capture: autotuning, recorded CUDA graphs, recompilations, breaks.

The time of compilers is a cause of idle time, `JIT compilation`, whatever they do. Their ranges
tell what takes it (`dynamo_timed` in torch/_dynamo/utils.py and torch/_inductor); its artefacts
tell why it compiled again: the guards that failed, and where a graph ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._take import where
from fastprof._system.regex import regex
from fastprof.model.arrays import Int64
from fastprof.model.numbers import quantity
from fastprof.model.trace import NEVER
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import RangeInstances

# Names of the ranges of a kind of work, without the suffix.
_KINDS: Final = {
    "autotuning": regex(
        r"CachingAutotuner\.(?:benchmark_all_configs|coordinate_descent_tuning|combo_sequential"
        r"_autotune)|\w+_template_autotuning|benchmark_fused_nodes|benchmark_codegened_module"
        r"|collective_compute_do_bench"
    ),
    "recording CUDA graphs": regex(r"CUDAGraphNode\.record"),
}
_TIMED: Final = " (dynamo_timed)"
_MOST: Final = 3  # lines of recompilations and of graph breaks


def compilation_lines(profile: ProfileData) -> tuple[str, ...]:
    """Lines below a table of idle time; none without such ranges and artefacts."""
    return (*_times(profile.ranges), *why_compiled(profile))


def why_compiled(profile: ProfileData) -> tuple[str, ...]:
    """Lines on recompilations and graph breaks; none without artefacts."""
    return (*_again(profile), *_breaks(profile))


def _times(ranges: RangeInstances) -> list[str]:
    """How long threads did each kind of work."""
    lines = []
    for kind, pattern in _KINDS.items():
        names = [meaning.name for meaning in ranges.meanings]
        fits = [
            name.endswith(_TIMED) and bool(pattern.fullmatch(name.removesuffix(_TIMED)))
            for name in names
        ]
        rows = where(np.array(fits, bool), ranges.label)
        rows = rows[ranges.end[rows] != NEVER]
        if len(rows):
            ns = quantity(_covered(ranges, rows), "ns")
            lines.append(f"JIT compilation: {kind} takes {ns}, {len(rows)} times")
    return lines


def _covered(ranges: RangeInstances, rows: Int64) -> int:
    """The time in which any of some ranges is open, ns, summed over threads."""
    total = 0
    for thread in np.unique(ranges.thread[rows]).tolist():
        own = rows[ranges.thread[rows] == thread]
        own = own[np.argsort(ranges.start[own], kind="stable")]
        until = np.maximum.accumulate(ranges.end[own])
        begin = np.maximum(ranges.start[own][1:], until[:-1])
        total += int(until[0] - ranges.start[own[0]])
        total += int(np.maximum(ranges.end[own][1:] - begin, 0).sum())
    return total


def _again(profile: ProfileData) -> list[str]:
    """The functions that were compiled again, with the guards that failed."""
    compiled = profile.source.compiled
    again = () if compiled is None else compiled.recompilations
    lines = [
        f"compiled again as {each.compile_id}: {'; '.join(each.reasons)}" for each in again[:_MOST]
    ]
    return _with_rest(lines, len(again), "recompilations")


def _breaks(profile: ProfileData) -> list[str]:
    """The places that end a graph, each once."""
    compiled = profile.source.compiled
    places = (
        {} if compiled is None else {(each.line, each.reason): each for each in compiled.breaks}
    )
    lines = [
        f"graph break at {line or 'an unknown line'}: {reason or 'unknown reason'}"
        for line, reason in list(places)[:_MOST]
    ]
    return _with_rest(lines, len(places), "graph breaks")


def _with_rest(lines: list[str], n: int, what: str) -> list[str]:
    return [*lines, f"and {n - _MOST} more {what}"] if n > _MOST else lines
