"""Records of the ranks of a simulated run, without files: runs of many ranks.

Of each rank the record has the collectives with their times and what the compute stream did between
them, as a worker of `fastprof ranks` returns it. Steps end where the compute stream goes on after
the last collective of a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from bench.ranks.communications import FIRST_STEP, Numbers
from bench.ranks.faults import Clock
from bench.ranks.kineto import BASE
from bench.ranks.program import Collective, Compute, Groups, Program, Wait
from bench.ranks.programs import tp_dp
from bench.ranks.simulate import COMMUNICATION, IDLE, LATENCY, Int64, Run
from fastprof.analysis.idle.causes import Cause
from fastprof.ranks.files import TraceFile
from fastprof.ranks.run.record import (
    ARRIVED,
    BOUNDARY,
    COMPUTE,
    FIRST_CAUSE,
    NO_SYNCS,
    WAITED,
    Calls,
    CallSignature,
    Chain,
    Label,
    RankRecord,
    RankSteps,
    RecordedFile,
)

_CAUSES: Final = {
    "data loading": Cause.DATA_LOADING, "host": Cause.HOST_BOUND, "start": Cause.HOST_BOUND,
}  # fmt: skip


def program_of(n_ranks: int, tensor: int = 8, sharded: int = 16) -> Program:
    """Tensor parallel groups of `tensor` ranks, gradients among `sharded`, the norm among all."""
    program = tp_dp(n_ranks, tensor=tensor)
    grid = np.arange(n_ranks).reshape(-1, tensor).T.reshape(-1, sharded)
    return replace(program, groups={**program.groups, "dp": Groups("dp", "mesh_dp", grid)})


def files(run: Run, *, numbered: bool = True) -> Iterator[RecordedFile]:
    """A file of each rank, in order.

    Parameters
    ----------
    run : Run
        Simulated with `only_communication` and `between`; all ranks execute all collectives, which
        are its only communications.
    numbered : bool
        Whether calls have sequence numbers.
    """
    maker = _Maker(run, numbered)
    for rank in range(run.program.n_ranks):
        record = maker.record(rank)
        yield RecordedFile(record.source, [record], seconds=1.0)


@dataclass(eq=False)
class _Times:
    """Events of the chains of all ranks, in true time.

    Attributes
    ----------
    arrival : int64 [rows, ranks], of the event at which a call arrives
    until : int64 [waits, ranks], when the compute stream goes on after a wait
    blocked : int64 [waits, ranks], ns
    call : int64 [waits], the row waited for
    row : int64 [waits], the row after it
    is_first : bool [waits], whether the wait precedes the work before that row, or follows it
    """

    arrival: Int64
    until: Int64
    blocked: Int64
    call: Int64
    row: Int64
    is_first: np.ndarray


class _Maker:
    """What the records of a run share."""

    def __init__(self, run: Run, numbered: bool) -> None:
        assert run.between is not None
        self._run, self._numbered = run, numbered
        self._ops: list[Any] = [run.program.step[place] for place in run.op.tolist()]
        is_work = np.array([label != COMMUNICATION for label in run.labels])
        self._labels = [
            Label(FIRST_CAUSE + _CAUSES[text], "", "", "", "", "")
            if text in IDLE else Label(COMPUTE, text, "", "", "", "")
            for text in run.labels
        ]  # fmt: skip
        self._worked = np.flatnonzero(is_work)
        self._between = run.between[:, :, is_work]
        self._kernels = self._kernels_between()
        self._times = self._chains()
        numbers = Numbers(run.program)
        self._seq = np.stack(
            [numbers.of(*row) for row in zip(run.op.tolist(), run.step.tolist(), strict=True)]
        )
        self._of_group = {
            key: {rank: i for i, row in enumerate(groups.ranks.tolist()) for rank in row}
            for key, groups in run.program.groups.items()
        }
        self._names = run.program.group_names()

    def _kernels_between(self) -> Int64:
        """[rows, labels] Kernels since the preceding collective."""
        run, place_of = self._run, {label: i for i, label in enumerate(self._run.labels)}
        count = np.zeros(len(run.labels), np.int64)
        rows = []
        for _ in range(run.n_steps):
            for op in run.program.step:
                if isinstance(op, Compute):
                    count[place_of[op.op]] += 1
                elif isinstance(op, Collective):
                    rows.append(count.copy())
                    count[:] = 0
        return np.stack(rows)

    def _waits_of_step(self) -> list[list[str]]:
        """Keys of the calls waited for just before each collective of a step."""
        result: list[list[str]] = []
        waited: list[str] = []
        for op in self._run.program.step:
            if isinstance(op, Wait):
                waited.append(op.key)
            elif isinstance(op, Collective):
                result.append(waited)
                waited = []
        return result

    def _chains(self) -> _Times:
        run = self._run
        keys = self._waits_of_step()
        last: dict[str, int] = {}
        time = np.zeros(run.program.n_ranks, np.int64)
        arrivals, waits = [], []
        for row, op in enumerate(self._ops):
            if row and not self._ops[row - 1].key:
                time = self._wait(waits, time, row - 1, row, True)
            time = time + self._between[row].sum(axis=1)
            if waited := keys[row % len(keys)]:  # calls of one stream: the last one ends last
                time = self._wait(waits, time, max(last[key] for key in waited), row, False)
            if op.key and row + 1 < len(self._ops):
                time = time + self._launched_late(row, time)
            arrivals.append(time)
            if op.key:
                last[op.key] = row
        self._wait(waits, time, len(self._ops) - 1, len(self._ops), True)
        until, blocked, call, row_after, is_first = zip(*waits, strict=True)
        return _Times(
            np.stack(arrivals), np.stack(until), np.stack(blocked), np.array(call),
            np.array(row_after), np.array(is_first),
        )  # fmt: skip

    def _launched_late(self, row: int, time: Int64) -> Int64:
        """[ranks] How long the launch of an overlapped call lets it wait: idle time of its row."""
        launch = self._run.begin[row] + 3 * (self._run.end[row] - self._run.begin[row]) // 8
        idle = self._between[row + 1][:, 1]  # of the host
        late: Int64 = np.clip(launch + LATENCY - time, 0, idle)
        self._between[row][:, 1] += late
        self._between[row + 1][:, 1] -= late
        return late

    def _wait(
        self, waits: list[Any], time: Int64, call: int, row: int, is_first: bool
    ) -> Int64:  # fmt: skip
        until = np.maximum(time, self._run.gpu_end[call])
        waits.append((until, until - time, call, row, is_first))
        return until

    def record(self, rank: int) -> RankRecord:
        """The record of a rank."""
        run = self._run
        ids: dict[CallSignature, int] = {}
        of_place = {
            place: ids.setdefault(self._signature(place, rank), len(ids))
            for place in dict.fromkeys(run.op.tolist())
        }
        signature = np.array([of_place[place] for place in run.op.tolist()], np.int32)
        clock = self._clock(rank)
        start = np.maximum(run.gpu_begin[:, rank], self._times.arrival[:, rank])
        order = np.argsort(start, kind="stable")
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        seq = self._seq[:, rank] if self._numbered else np.full(len(order), -1)
        chain, ends = self._chain(rank, place)
        steps = np.concatenate([[0], ends])
        name = f"rank{rank}"
        return RankRecord(
            source=TraceFile(f"{name}.json", 0, 0, ""), format="torch.profiler JSON",
            rank=rank, world_size=run.program.n_ranks, place=0, n_places=1, pid=rank,
            device=rank % 8, gpu="NVIDIA H100 80GB HBM3", n_gpus=8,
            calls=Calls(
                _moved(start[order], clock), _moved(run.gpu_end[order, rank], clock),
                signature[order], seq[order].astype(np.int32),
            ),
            signatures=list(ids), chain=_on_clock(chain, clock), syncs=NO_SYNCS,
            labels=self._labels, steps=RankSteps(
                "ProfilerStep", np.arange(run.n_steps) + FIRST_STEP, _moved(steps[:-1], clock),
                _moved(steps[1:], clock), np.arange(run.n_steps) > 0,
            ),
            warnings=[],
        )  # fmt: skip

    def _clock(self, rank: int) -> Clock:
        own = [
            fault for fault in self._run.faults if isinstance(fault, Clock) and fault.rank == rank
        ]
        return own[0] if own else Clock(rank=rank)

    def _signature(self, place: int, rank: int) -> CallSignature:
        op: Any = self._run.program.step[place]
        groups, number = self._run.program.groups[op.groups], self._of_group[op.groups][rank]
        return CallSignature(
            kind=op.kind, size=op.bytes, dtype={"bfloat16": "bf16"}.get(op.dtype, "fp32"),
            group=f"{self._names[op.groups][number]} {groups.description}",
            members=tuple(groups.ranks[number].tolist()), n_ranks=groups.size,
            channel=sorted(self._run.program.groups).index(op.groups), source=-1, target=-1,
            op=f"c10d::{op.kind}_", layer=op.layer, line="",
        )  # fmt: skip

    def _chain(self, rank: int, place: Int64) -> tuple[Chain, Int64]:
        """The chain of a rank in true time, and the ends of its steps."""
        times, run = self._times, self._run
        n = len(self._ops)
        is_end = times.is_first & (times.row % (n // run.n_steps) == 0)
        ends = times.until[is_end, rank]
        waited = np.flatnonzero(times.blocked[:, rank])
        # In the order of a row's events: waits before its work, a step's end, waits after it.
        within = [
            np.where(times.is_first[waited], 0, 2), np.ones(len(ends), int), np.full(n, 3)
        ]  # fmt: skip
        rows = [times.row[waited], times.row[is_end], np.arange(n)]
        time = [times.until[waited, rank], ends, times.arrival[:, rank]]
        kind = np.repeat(np.array([WAITED, BOUNDARY, ARRIVED], np.uint8), list(map(len, rows)))
        call = np.concatenate([place[times.call[waited]], np.full(len(ends), -1), place])
        nothing = [np.zeros(len(ends) + n, np.int64)]
        blocked = np.concatenate([times.blocked[waited, rank], *nothing])
        order = np.lexsort((np.concatenate(within), np.concatenate(rows)))
        # The work of a row ends with its wait after it, else with the arrival.
        takes = np.zeros(n, np.int64)
        is_work_end = np.concatenate(within)[order] >= 2
        row_of_event = np.concatenate(rows)[order]
        at = np.flatnonzero(is_work_end)[::-1]
        takes[row_of_event[at]] = at
        ns = self._between[:, rank]
        row, column = np.nonzero(ns)
        piece = takes[row]
        label = self._worked[column].astype(np.int32)
        return Chain(
            begin=0, time=np.concatenate(time)[order], kind=kind[order],
            call=call[order].astype(np.int32), blocked=blocked[order],
            slack=np.full(len(order), -1, np.int32),
            **dict.fromkeys(("lead", "rest"), np.zeros(len(order), np.int32)),
            offsets=np.searchsorted(piece, np.arange(len(order) + 1)),
            label=label, ns=ns[row, column],
            count=self._kernels[row, label].astype(np.int32),
        ), ends  # fmt: skip


def _moved(time: Int64, clock: Clock) -> Int64:
    return BASE + clock.offset + time + np.rint(time * (clock.ppm * 1e-6)).astype(np.int64)


def _on_clock(chain: Chain, clock: Clock) -> Chain:
    begin = int(_moved(np.array([chain.begin]), clock)[0])
    return replace(chain, begin=begin, time=_moved(chain.time, clock))
