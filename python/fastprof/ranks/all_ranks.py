"""The summaries of all files as one set of columns, with groups and ranks, and their headings.

The rank of each process is by the first rule that gives every one a distinct number:

1. recorded: in the file (`distributedInfo` of torch.profiler);
2. name: the number after `rank` in the file name or in a parent directory's name;
3. digits: the only number in which the names differ;
4. order: 0, 1, 2, ... in order of name, then of the processes in the file.

Files of Nsight Systems record no rank. Processes of a single file are numbered by order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData, Table
from fastprof.ranks.summary import KEYS, SUMS, Process, Summary


@dataclass(frozen=True)
class Rank:
    """A process of a file, and its number in the run."""

    number: int
    summary: Summary
    process: Process | None  # None: a file without work on a GPU


@dataclass(frozen=True)
class AllRanks:
    """The groups of all ranks.

    Parameters
    ----------
    ranks : in order of number
    rule : the numbering rule, see `fastprof.ranks.all_ranks`
    rank : int32 [groups], index into ranks
    keys, sums : as in Groups, [groups]; ranks share the list of values
    """

    ranks: list[Rank]
    rule: str
    rank: Int32
    keys: dict[str, Values]
    sums: dict[str, Int64]


def combine(summaries: Sequence[Summary]) -> AllRanks:
    """Concatenate summaries.

    summaries : in order of path
    """
    owners = [
        (summary, process)
        for summary in summaries
        for process in (range(len(summary.processes)) or (None,))
    ]
    paths = [summary.path for summary, _ in owners]
    recorded = [summary.rank for summary, _ in owners]
    numbers, rule = assign_ranks(paths, recorded)
    order = np.argsort(np.array(numbers, np.int64), kind="stable").tolist()
    results, place = [], {}
    for row, i in enumerate(order):
        summary, process = owners[i]
        place[id(summary), process] = row
        results.append(
            Rank(numbers[i], summary, None if process is None else summary.processes[process])
        )
    of_process = [
        np.array([place[id(summary), p] for p in range(len(summary.processes))], np.int32)
        for summary in summaries
    ]
    return AllRanks(
        ranks=results,
        rule=rule,
        rank=_joined(
            [of[summary.groups.process] for of, summary in zip(of_process, summaries, strict=True)],
            np.int32,
        ),
        keys={name: _shared([summary.groups.keys[name] for summary in summaries]) for name in KEYS},
        sums={
            name: _joined([summary.groups.sums[name] for summary in summaries], np.int64)
            for name in SUMS
        },
    )


def _joined(arrays: list[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _shared(columns: list[Values]) -> Values:
    """Concatenate columns, with one list of values."""
    numbers: dict[str, int] = {}
    ids = []
    for column in columns:
        of_value = [numbers.setdefault(value, len(numbers)) for value in column.values]
        ids.append(np.array([*of_value, -1], np.int32)[column.ids])
    return Values(_joined(ids, np.int32), list(numbers))


_RANK: Final = re.compile(r"(?<![a-z])rank[-_ =.]?([0-9]{1,9})(?![0-9])", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[0-9]+")
_LARGEST: Final = 1 << 31

Numbers = list[int | None]


def rank_in_name(path: str) -> int | None:
    """The number after the last `rank` in a path."""
    results = _RANK.findall(path)
    return int(results[-1]) if results else None


def _recorded(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    return list(recorded)


def _named(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    return [rank_in_name(path) for path in paths]


def _digits(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    forms = {_DIGITS.sub("#", path) for path in paths}
    fields = list(zip(*(_DIGITS.findall(path) for path in paths), strict=False))
    differing = [field for field in fields if len(set(field)) > 1]
    if len(forms) != 1 or len(differing) != 1:
        return [None] * len(paths)
    return [int(text) for text in differing[0]]


def _ordered(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    return list(range(len(paths)))


RULES: Final[dict[str, Callable[[Sequence[str], Sequence[int | None]], Numbers]]] = {
    "recorded": _recorded,
    "name": _named,
    "digits": _digits,
    "order": _ordered,
}


def assign_ranks(paths: Sequence[str], recorded: Sequence[int | None]) -> tuple[list[int], str]:
    """The rank of each process, and the rule that applied.

    Parameters
    ----------
    paths : the file of each process, in order of name
    recorded : the rank recorded in the file, or None
    """
    below = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths] or ["/"])
    names = [os.path.relpath(os.path.abspath(path), below) for path in paths]
    for rule, numbers_of in RULES.items():
        numbers = [number for number in numbers_of(names, recorded) if number is not None]
        if len(set(numbers)) == len(paths) and all(0 <= n < _LARGEST for n in numbers):
            return numbers, rule
    return list(range(len(paths))), "order"


TIMES: Final = frozenset({"time", "mean", "min", "max", "wait", "longest", "span", "gpu_time"})
SHARES: Final = frozenset({"share", "busy", "last_share"})

_COUNTS: Final = {"flops": "flop", "bytes": "bytes"}


def table_of(
    columns: Mapping[str, ColumnData],
    times: frozenset[str] = TIMES,
    shares: frozenset[str] = SHARES,
) -> Table:
    """A table; columns named in `times` are ns, those in `shares` 0 to 1."""
    units = {**dict.fromkeys(times, "ns"), **dict.fromkeys(shares, "share"), **_COUNTS}
    headings = tuple(Heading(name, name, units.get(name, "")) for name in columns)
    return Table(dict(columns), headings)
