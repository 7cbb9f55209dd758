"""Steps that begin at each launch of one kernel or operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.trace import Trace
from fastprof.profile.steps import labels
from fastprof.profile.steps.kernel_steps import StepsOfKernels, steps_of_kernels
from fastprof.profile.steps.repetition import consecutive

_LONGER: Final = regex(r"(.+)>\s*(\d+(?:\.\d*)?)\s*(ns|us|ms|s)")
_NS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def find(
    trace: Trace, names: tuple[Values, Values], op: Callable[[], Values], pattern: str
) -> StepsOfKernels:
    """Steps that begin where a kernel is launched whose name, or else operator, matches.

    Successive launches of matching kernels begin one step.

    names : [kernels] long and short names
    op : computes the operator of each kernel
    pattern : regular expression, optionally with `>5ms`: only kernels that take longer

    Raises
    ------
    StepsError
        The expression is invalid, or no launched kernel matches.
    """
    longer = _LONGER.fullmatch(pattern)
    text = longer[1] if longer else pattern
    wanted = labels.compiled(text)
    matches = _matching(names[0], wanted)
    if not matches.any():
        matches = _matching(op(), wanted)
    if not matches.any():
        known = [*names[1].values, *op().values]
        raise StepsError(
            f"{trace.name}: no kernel or operator matches {text!r}; "
            + (f"nearest: {labels.nearest(text, known)}" if known else "the trace has no kernels")
        )
    if longer:
        limit = float(longer[2]) * _NS[longer[3]]
        longest = int(trace.kernels.duration[matches].max())
        matches &= trace.kernels.duration > limit
        if not matches.any():
            raise StepsError(
                f"{trace.name}: no kernel that matches {text!r} takes over {longer[2]} "
                f"{longer[3]}; the longest takes {longest} ns"
            )
    return _steps(trace, matches, pattern)


def _matching(column: Values, pattern: re.Pattern[str]) -> Bools:
    """[kernels] Whether the pattern is found in each value."""
    return column.fits(lambda value: pattern.search(value) is not None)


def _steps(trace: Trace, matches: Bools, pattern: str) -> StepsOfKernels:
    launch_start = take(trace.launches.start, trace.kernels.launch)
    known = trace.kernels.launch >= 0
    found = []
    for process, pid in enumerate(trace.processes.tolist()):
        rows = np.flatnonzero(known & (trace.kernels.process == process))
        rows = rows[np.argsort(launch_start[rows], kind="stable")]
        begins = matches[rows] & ~np.append(False, matches[rows[:-1]])
        if begins.any():
            found.append((pid, launch_start[rows[begins]]))
    if not found:
        raise StepsError(
            f"{trace.name}: the launches of the kernels that match {pattern!r} are not recorded"
        )
    steps = consecutive(found)
    n_processes = len(found)
    where = f" in {n_processes} processes" if n_processes > 1 else ""
    description = f"{len(steps)} steps{where}, each from a launch of {labels.shown(pattern)!r}"
    return steps_of_kernels(
        trace, steps, f"anchor:{pattern}", description, ends_known=False, may_be_cut=-1
    )
