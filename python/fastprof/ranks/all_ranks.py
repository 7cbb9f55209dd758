"""The summaries of all files as one set of columns, with the groups of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.ranks.rank import assign_ranks
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
    rule : the numbering rule, see `fastprof.ranks.rank`
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
    found, place = [], {}
    for row, i in enumerate(order):
        summary, process = owners[i]
        place[id(summary), process] = row
        found.append(
            Rank(numbers[i], summary, None if process is None else summary.processes[process])
        )
    of_process = [
        np.array([place[id(each), p] for p in range(len(each.processes))], np.int32)
        for each in summaries
    ]
    return AllRanks(
        ranks=found,
        rule=rule,
        rank=_joined(
            [of[each.groups.process] for of, each in zip(of_process, summaries, strict=True)],
            np.int32,
        ),
        keys={name: _shared([each.groups.keys[name] for each in summaries]) for name in KEYS},
        sums={
            name: _joined([each.groups.sums[name] for each in summaries], np.int64) for name in SUMS
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
