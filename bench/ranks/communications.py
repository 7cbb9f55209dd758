"""The communications of a simulated run: numbers in their groups, and which files have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

from bench.ranks.faults import Missing, Window
from bench.ranks.program import Collective, Communication, Program, Receive, Send
from bench.ranks.simulate import NEVER, Int64, Run

Bools = npt.NDArray[np.bool_]

FIRST_STEP: Final = 10  # number of the first step of the run: the recording begins late, as usual


@dataclass(eq=False)
class Numbers:
    """Sequence numbers as torch counts them: from 1, per process group and rank.

    Collectives and messages have counters of their own. The members of a group agree on the number
    of a collective; the two ends of a message need not agree, as each counts its own messages.
    """

    program: Program
    first_step: int = FIRST_STEP
    _within: dict[int, Int64] = field(default_factory=dict)
    _counts: dict[tuple[str, bool], Int64] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.program.n_ranks
        for place, op in enumerate(self.program.step):
            if isinstance(op, Communication):
                count = self._counts.setdefault(self._counter(op), np.zeros(n, np.int64))
                self._within[place] = count.copy()
                count[op.at] += 1

    @staticmethod
    def _counter(op: Communication) -> tuple[str, bool]:
        return op.groups, isinstance(op, Collective)

    def of(self, place: int, step: int) -> Int64:
        """int64 [ranks] The number of an operation in a step, on the ranks that execute it."""
        op = self.program.step[place]
        assert isinstance(op, Communication)
        done = (step + self.first_step) * self._counts[self._counter(op)]
        return done + self._within[place] + 1


@dataclass
class Instance:
    """A collective of one group, or a message.

    Attributes
    ----------
    group : str
        Name of the process group.
    seq : list of int
        Its number, per member.
    kind : str
        all_reduce, ..., or send_recv.
    dtype : str
    bytes : int
        Size of the complete array.
    step : int
        From 0.
    ranks : list of int
        The members; of a message the sender and the receiver.
    arrival, end : list of int
        ns, per member.
    wait : list of int
        ns from a member's arrival to the last, per member.
    transfer : int
        ns from the last arrival to the first end.
    last : int
        The rank that arrives last.
    recorded : list of int
        The members whose files have it.
    """

    group: str
    seq: list[int]
    kind: str
    dtype: str
    bytes: int
    step: int
    ranks: list[int]
    arrival: list[int]
    end: list[int]
    wait: list[int]
    transfer: int
    last: int
    recorded: list[int]


def instances(run: Run, first_step: int = FIRST_STEP) -> list[Instance]:
    """All communications, in the order of the program; a message where it is received."""
    names, numbers = run.program.group_names(), Numbers(run.program, first_step)
    is_recorded = recorded(run)
    sent: dict[tuple[str, int], tuple[int, Int64]] = {}
    result = []
    for row, (place, step) in enumerate(zip(run.op.tolist(), run.step.tolist(), strict=True)):
        op = run.program.step[place]
        if not isinstance(op, Communication):
            continue
        seq = numbers.of(place, step)
        if isinstance(op, Send):
            sent[op.key, step] = row, seq
            continue
        if isinstance(op, Collective):
            members = zip(names[op.groups], run.program.groups[op.groups].ranks, strict=True)
            for name, ranks in members:
                cells = [(row, rank, int(seq[rank])) for rank in ranks.tolist()]
                result.append(_instance(run, op, step, name, cells, is_recorded))
            continue
        source, seq_of_sender = sent[op.key, step]
        assert op.ranks is not None
        for sender, receiver in zip(op.sources.tolist(), op.ranks.tolist(), strict=True):
            cells = [(source, sender, int(seq_of_sender[sender]))]
            cells.append((row, receiver, int(seq[receiver])))
            name = _group_of(run.program, names, op.groups, receiver)
            result.append(_instance(run, op, step, name, cells, is_recorded))
    return result


def _group_of(program: Program, names: dict[str, list[str]], key: str, rank: int) -> str:
    rows = np.flatnonzero((program.groups[key].ranks == rank).any(axis=1))
    return names[key][int(rows[0])]


def _instance(
    run: Run, op: Collective | Receive, step: int, group: str, cells: list[tuple[int, int, int]],
    is_recorded: Bools,
) -> Instance:  # fmt: skip
    """cells : row, rank and sequence number of each member"""
    arrival = [int(run.gpu_begin[row, rank]) for row, rank, _ in cells]
    end = [int(run.gpu_end[row, rank]) for row, rank, _ in cells]
    ranks, latest = [rank for _, rank, _ in cells], max(arrival)
    return Instance(
        group=group,
        seq=[seq for _, _, seq in cells],
        kind=op.kind if isinstance(op, Collective) else "send_recv",
        dtype=op.dtype,
        bytes=op.bytes,
        step=step,
        ranks=ranks,
        arrival=arrival,
        end=end,
        wait=[latest - each for each in arrival],
        transfer=min(end) - latest,
        last=ranks[arrival.index(latest)],
        recorded=[rank for row, rank, _ in cells if is_recorded[row, rank]],
    )


def communicator(group: str) -> int:
    """NCCL's id of the communicator of a process group."""
    return int.from_bytes(blake2b(group.encode(), digest_size=8).digest(), "big")


def present(run: Run) -> list[int]:
    """The ranks that have a file."""
    missing = {fault.rank for fault in run.faults if isinstance(fault, Missing)}
    return [rank for rank in range(run.program.n_ranks) if rank not in missing]


def recorded(run: Run) -> Bools:
    """bool [rows, ranks] The operations in the file of each rank, by when they begin on the host.

    GPU work is in the file if its launch is.
    """
    result = run.begin != NEVER
    for rank, begin, end in windows(run):
        result[:, rank] &= (run.begin[:, rank] >= begin) & (run.begin[:, rank] < end)
    is_present = np.zeros(run.program.n_ranks, bool)
    is_present[present(run)] = True
    return result & is_present


def windows(run: Run) -> Iterator[tuple[int, int, int]]:
    """Rank, begin and end, ns, of each recording that lacks a part of the run."""
    rows = np.array([isinstance(op, Communication) for op in run.program.step])[run.op]
    for fault in run.faults:
        if isinstance(fault, Window):
            rank = fault.rank
            there = np.flatnonzero(rows & (run.begin[:, rank] != NEVER))
            begin, end = fault.first, int(run.step_end[-1, rank]) + 1 - fault.last
            if fault.first_instances:
                begin = max(begin, int(run.end[there[fault.first_instances - 1], rank]))
            if fault.last_instances:
                end = min(end, int(run.begin[there[-fault.last_instances], rank]))
            yield rank, begin, end
