"""The replays of all ranks, joined at their collectives: steps of the run with a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof._system.threads import computed_once
from fastprof.model.arrays import Int64
from fastprof.ranks.run.graph import NO_PATH, PathParts, RunChange, RunGraph, Selection
from fastprof.ranks.run.record import RankRecord
from fastprof.ranks.run.waits import Waits

_MOST_EVENTS: Final = 2_000_000


class RunReplay:
    """The graph of a run.

    Attributes
    ----------
    n_steps : the steps that are replayed
    """

    def __init__(
        self,
        records: Sequence[RankRecord],
        waits: Waits,
        steps: Sequence[Int64],
        most: int = _MOST_EVENTS,
    ) -> None:
        """steps : [ranks], the numbers of the steps of each in the run

        most : replay about so many events: steps from the middle of the run
        """
        self._records, self._waits, self._steps = records, waits, steps
        self.numbers = self._chosen_steps(most)
        self._has_all = len(self.numbers) == len(np.unique(_joined(steps)))
        self._selected = [self._selection(rank) for rank in range(len(records))]
        self._graph = RunGraph(records, waits, self._selected)
        self.recorded = self._lengths(self._graph.run(self._graph.duration))

    @property
    def n_steps(self) -> int:
        """The steps of the run that are replayed."""
        return len(self.numbers)

    def _chosen_steps(self, most: int) -> Int64:
        """The numbers of the steps of the run that count, those in the middle if there are many."""
        records, steps = self._records, self._steps
        counted = [own[record.steps.is_counted] for own, record in zip(steps, records, strict=True)]
        numbers, ranks = np.unique(_joined(counted), return_counts=True)
        numbers = numbers[ranks == ranks.max()] if len(numbers) else numbers
        n = sum(len(record.chain) for record in records)
        total = max((len(own) for own in steps), default=1)
        fits = max(int(most / max(n, 1) * total), 1)
        if len(numbers) > fits:
            middle = (len(numbers) - fits) // 2
            numbers = numbers[middle : middle + fits]
        return numbers

    def _selection(self, rank: int) -> Selection:
        """The events from the beginning of the first chosen step to the end of the last."""
        record, own = self._records[rank], self._steps[rank]
        rows = np.flatnonzero(np.isin(own, self.numbers))
        n = len(record.chain)
        if not len(rows):
            return Selection(0, 0)
        if self._has_all:
            return Selection(0, n)
        time = record.chain.time
        first = int(np.searchsorted(time, record.steps.start[rows[0]], "right"))
        if record.steps.start[rows[0]] <= record.chain.begin:
            first = 0
        return Selection(first, int(np.searchsorted(time, record.steps.end[rows[-1]], "right")))

    def run(self, change: RunChange) -> Int64:
        """The lengths of the chosen steps with a change, [ranks, steps], ns; -1 for none."""
        return self._lengths(self._graph.run(self._graph.changed(change)))

    def _lengths(self, time: Int64) -> Int64:
        result = np.full((len(self._records), len(self.numbers)), -1, np.int64)
        rank, start, end, step = self._windows
        at = self._graph.at
        result[rank, step] = at(time, rank, end) - at(time, rank, start)
        return result

    @computed_once
    def _windows(self) -> tuple[Int64, Int64, Int64, Int64]:
        """Rank, events at the start and the end (-1: the begin of the chain), and place in
        `numbers` of the chosen steps, rank by rank."""
        place = {number: i for i, number in enumerate(self.numbers.tolist())}
        rows = []
        for rank, (record, own, selected) in enumerate(
            zip(self._records, self._steps, self._selected, strict=True)
        ):
            time = record.chain.time
            start = np.searchsorted(time, record.steps.start, "right") - 1
            end = np.searchsorted(time, record.steps.end, "right") - 1
            inside = (start >= selected.first - 1) & (end < selected.last)
            for i in np.flatnonzero(inside).tolist():
                if (number := int(own[i])) in place:
                    rows.append((rank, int(start[i]), int(end[i]), place[number]))
        ranks, starts, ends, steps = np.array(rows, np.int64).reshape(-1, 4).T
        return ranks, starts, ends, steps

    def mean(self, lengths: Int64) -> float:
        """The mean length of a step over ranks, ns; NaN without steps."""
        known = lengths[lengths >= 0]
        return float(known.mean()) if len(known) else float("nan")

    def path(self, change: RunChange | None = None) -> PathParts:
        """The critical path of the chosen steps, from the last end of a step back."""
        graph = self._graph
        duration = graph.duration if change is None else graph.changed(change)
        time = graph.run(duration)
        ranks, start, end, _ = self._windows
        if not len(ranks):
            return NO_PATH
        edge = np.flatnonzero(np.diff(ranks))  # the last window of each rank but the last
        last, first = np.append(edge, len(ranks) - 1), np.append(0, edge + 1)
        begin = int(graph.at(time, ranks[first], start[first]).min())
        at = graph.at(time, ranks[last], end[last])
        row = last[np.lexsort((end[last], ranks[last], at))[-1]]
        return graph.path(duration, time, int(ranks[row]), int(end[row]), begin)


def _joined(arrays: Sequence[Int64]) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *arrays])
