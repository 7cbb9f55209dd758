"""Python's profile statistics: GPU time by function, for `python -m pstats`, snakeviz, gprof2dot.

A file is a marshalled dict, as `pstats.Stats.dump_stats` writes it: (file, line, function) ->
(primitive calls, calls, own time, cumulative time, {caller: the same four}), times in s.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from itertools import pairwise
from typing import BinaryIO

from fastprof.analysis.lines.report import NO_LINE
from fastprof.analysis.registry import Where
from fastprof.analysis.stacks.tree import Stacks, stacks
from fastprof.errors import ReportError
from fastprof.exports.events import paths_of
from fastprof.model.markers.frames import FramePlace, place_of
from fastprof.profile.data import ProfileData

FunctionKey = tuple[str, int, str]
Callers = dict[FunctionKey, tuple[int, int, float, float]]

_NS = 1e9
_ROOT: FunctionKey = ("~", 0, "<no source line>")


def write(
    profile: ProfileData,
    file: BinaryIO,
    where: Where | None = None,
) -> None:
    """Write the GPU time of the functions on the recorded call stacks, forward and backward.

    A function's line is the first of its lines on a stack. Calls are those of the operators that it
    runs, in itself or below.

    Parameters
    ----------
    profile : the profile
    file : binary file
    where : selects GPU work, as in reports

    Raises
    ------
    ReportError
        An option is invalid, or no call stack is recorded.
    """
    tree = stacks(profile, "stack", leaves=(), where=where)
    if len(tree) > 1 and set(tree.name.array()[1:]) == {NO_LINE.frame}:
        raise ReportError(
            "pstats: no call stacks recorded; use torch.profiler with with_stack=True, or "
            "fastprof.init()"
        )
    marshal.dump(_statistics(tree), file)


class _Sums:
    """The statistics of a function, and of its calls by each caller."""

    def __init__(self) -> None:
        self.calls = self.own = self.all = 0
        self.callers: dict[FunctionKey, list[int]] = defaultdict(lambda: [0, 0, 0])


def _statistics(tree: Stacks) -> dict[FunctionKey, tuple[int, int, float, float, Callers]]:
    functions = _functions(tree)
    own, calls = tree.own("ns").tolist(), tree.own("calls").tolist()
    sums: dict[FunctionKey, _Sums] = defaultdict(_Sums)
    for row, path in enumerate(paths_of(tree)):
        if not own[row]:
            continue
        count = max(calls[row], 0)
        chain = [functions[number] for number in path] or [_ROOT]
        sums[chain[-1]].own += own[row]
        for entry in dict.fromkeys(chain):  # once, however often it calls itself
            sums[entry].calls += count
            sums[entry].all += own[row]
        outermost = {called: caller for caller, called in reversed(list(pairwise(chain)))}
        outermost.pop(chain[0], None)  # it calls itself
        for called, caller in outermost.items():
            found = sums[called].callers[caller]
            found[0] += count
            found[1] += own[row] if called == chain[-1] else 0
            found[2] += own[row]
    return {
        entry: (
            found.calls, found.calls, found.own / _NS, found.all / _NS,
            {
                caller: (count, count, mine / _NS, total / _NS)
                for caller, (count, mine, total) in found.callers.items()
            },
        )
        for entry, found in sums.items()
    }  # fmt: skip


def _functions(tree: Stacks) -> list[FunctionKey]:
    """The function of each node: its file, the least of its lines, its name."""
    places = [place_of(str(name)) for name in tree.name.array().tolist()]
    first: dict[tuple[str, str], int] = {}
    for place in places:
        if place.line is not None and place.function is not None:
            key = (place.file, place.function)
            first[key] = min(first.get(key, place.line), place.line)
    return [
        (place.file, first.get((place.file, place.function or ""), place.line or 0), _name(place))
        if place.file != NO_LINE.frame
        else _ROOT
        for place in places
    ]


def _name(place: FramePlace) -> str:
    return place.function if place.function is not None else f"line {place.line}"
