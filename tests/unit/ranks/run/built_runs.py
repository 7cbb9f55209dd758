"""Builds the records of the ranks of a run, in lockstep: their times and waits are known.

one, other = ranks(2)
one.work(300_000)
other.work(500_000)
exchange([one, other], transfer=50_000)  # `one` waits 200 us
run = run_of([one, other])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fastprof.api.ranks import Ranks
from fastprof.model.trace import NO_TIME
from fastprof.ranks.files import TraceFile
from fastprof.ranks.run.record import (
    ARRIVED,
    BOUNDARY,
    COMPUTE,
    KINDS_OF_LABELS,
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

BASE = 1_000_000_000_000  # ns on the clock of a rank without an offset when the run begins
LOADING = KINDS_OF_LABELS.index("data loading")
HOST = KINDS_OF_LABELS.index("host-bound")
NCCL = CallSignature("all_reduce", 4096, "f32", "0 default_pg", (), -1, 0, -1, -1, "", "", "")


class Rank:
    """A rank that works and communicates.

    offset : ns that its clock is ahead
    ppm : parts per million that it is faster
    fields : of RankRecord
    """

    def __init__(
        self, path: str = "rank0.json", *, offset: int = 0, ppm: float = 0.0, **fields: Any
    ) -> None:
        self.path, self.offset, self.ppm, self.fields = path, offset, ppm, fields
        self.now = 0  # true time, ns
        self.calls: list[tuple[int, int, CallSignature, int]] = []
        self.labels: list[Label] = []
        # time, kind, call, blocked, launch, slack, rest
        self._events: list[tuple[int, int, int, int, int, int, int]] = []
        self._launch: tuple[int, int] | None = None  # of the piece, and when its work begins
        self._pieces: list[dict[int, list[int]]] = [{}]
        self._steps: list[int] = []
        self._seq: dict[object, int] = {}

    def work(self, ns: int, op: str = "mm", kind: int = COMPUTE, **label: str) -> Rank:
        """Run a kernel, or be idle for a cause."""
        texts = {"layer": "", "shape": "", "line": "", "direction": "", **label}
        of = Label(kind, op if kind < 2 else "", **texts)
        if of not in self.labels:
            self.labels.append(of)
        entry = self._pieces[-1].setdefault(self.labels.index(of), [0, 0])
        entry[0] += ns
        entry[1] += kind < 2
        self.now += ns
        return self

    def launch(self, at: int) -> Rank:
        """The host launches the rest of the work up to the next event at some time."""
        self._launch = at, max(self.now, at)
        return self

    def step(self) -> Rank:
        """End a step and begin the next one."""
        self._steps.append(self.now)
        if self.now:
            self._event(BOUNDARY)
        return self

    def arrive(self, end: int, signature: CallSignature, seq: int | None = None) -> int:
        """Arrive at a call that ends at some time; returns its number."""
        key = signature.group, signature.members
        number = self._seq.get(key, 0) if seq is None else seq
        if seq is None:
            self._seq[key] = number + 1
        self.calls.append((self.now, end, signature, number))
        self._event(ARRIVED, len(self.calls) - 1)
        return len(self.calls) - 1

    def wait(self, call: int) -> None:
        """Go on when a call has ended."""
        blocked = max(self.calls[call][1] - self.now, 0)
        self.now += blocked
        self._event(WAITED, call, blocked)

    def _event(self, kind: int, call: int = -1, blocked: int = 0) -> None:
        held = NO_TIME, -1, 0
        if self._launch is not None:
            at, begin = self._launch
            end = self.now - blocked
            held = at, begin - at, max(end - begin, 0)
        self._launch = None
        self._events.append((self.now, kind, call, blocked, *held))
        self._pieces.append({})

    def _clock(self, times: Iterable[int]) -> np.ndarray:
        true = np.array(list(times), np.int64)
        return BASE + self.offset + true + np.rint(true * (self.ppm * 1e-6)).astype(np.int64)

    def record(self) -> RankRecord:
        """What a worker would return."""
        if not self._events or self._pieces[-1]:
            self._event(BOUNDARY)  # the end of the capture
        time, kind, call, blocked, launch, slack, rest = np.array(self._events, np.int64).T
        lead = np.where(slack >= 0, time - launch, 0)
        pieces = self._pieces[: len(time)]
        entries = [(label, *entry) for piece in pieces for label, entry in piece.items()]
        label, ns, count = np.array(entries, np.int64).reshape(-1, 3).T
        offsets = np.cumsum([0, *map(len, pieces)])
        signatures = list({signature: None for _, _, signature, _ in self.calls})
        return RankRecord(
            source=TraceFile(self.path, 1, 1, "x"),
            calls=Calls(
                self._clock(start for start, *_ in self.calls),
                self._clock(end for _, end, *_ in self.calls),
                np.array([signatures.index(of) for _, _, of, _ in self.calls], np.int32),
                np.array([seq for *_, seq in self.calls], np.int32),
            ),
            signatures=signatures,
            chain=Chain(
                begin=int(self._clock([0])[0]), time=self._clock(time.tolist()),
                kind=kind.astype(np.uint8), call=call.astype(np.int32), blocked=blocked,
                lead=lead.astype(np.int32), slack=slack.astype(np.int32),
                rest=rest.astype(np.int32), offsets=offsets.astype(np.int64),
                label=label.astype(np.int32), ns=ns, count=count.astype(np.int32),
            ),
            syncs=NO_SYNCS,
            labels=list(self.labels),
            steps=self._record_steps(),
            **{
                "format": "kineto", "rank": None, "world_size": None, "place": 0, "n_places": 1,
                "pid": 1, "device": 0, "gpu": "", "n_gpus": 0, "warnings": [], **self.fields,
            },
        )  # fmt: skip

    def _record_steps(self) -> RankSteps:
        bounds = self._steps or [0, self.now]
        n = len(bounds) - 1
        return RankSteps(
            "marks", np.arange(1, n + 1), self._clock(bounds[:-1]), self._clock(bounds[1:]),
            np.ones(n, bool),
        )  # fmt: skip


def ranks(n: int, **fields: Any) -> list[Rank]:
    """Ranks whose files have their numbers."""
    return [Rank(f"rank{i}.json", **fields) for i in range(n)]


def exchange(
    everyone: Sequence[Rank], *, transfer: int = 50_000, blocks: bool = True,
    seq: int | None = None, late: Sequence[int] = (), **signature: Any,
) -> None:  # fmt: skip
    """A collective of some ranks: each waits for the last one and the transfer.

    blocks : whether their work waits for it
    seq : the recorded number; None: the next one, -1: not recorded
    late : ns after which it ends on each rank
    """
    of = NCCL._replace(**signature)
    end = max(rank.now for rank in everyone) + transfer
    for rank, more in zip(everyone, late or [0] * len(everyone), strict=True):
        call = rank.arrive(end + more, of, seq)
        if blocks:
            rank.wait(call)


def send(source: Rank, target: Rank, numbers: tuple[int, int], transfer: int = 20_000) -> None:
    """A message, for which the target waits; each rank records the other one."""
    of = NCCL._replace(kind="send_recv", size=1024)
    end = max(source.now, target.now) + transfer
    source.arrive(end, of._replace(target=numbers[1]), -1)
    target.wait(target.arrive(end, of._replace(source=numbers[0]), -1))


def steps_of(
    everyone: Sequence[Rank], works: Sequence[Sequence[int]], *, calls: int = 2, **options: Any
) -> list[Rank]:
    """Steps in which each rank works and all exchange, `calls` times.

    works : for each step, ns of work of each rank before each exchange
    """
    for row in works:
        for rank in everyone:
            rank.step()
        for _ in range(calls):
            for rank, ns in zip(everyone, row, strict=True):
                rank.work(ns)
            exchange(everyone, **options)
    for rank in everyone:
        rank.step()
    return list(everyone)


def file_of(rank: Rank) -> RecordedFile:
    """The file of a rank."""
    record = rank.record()
    return RecordedFile(record.source, [record])


def run_of(members: Iterable[Rank], clock: str = "estimated") -> Ranks:
    """The run of these ranks, a file each."""
    return Ranks([file_of(rank) for rank in members], clock)
