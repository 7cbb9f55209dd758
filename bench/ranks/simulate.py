"""Computes when every rank executes every operation of a run, in true time, with arrays over ranks.

The host thread of a rank executes operations one after the other and runs ahead of its GPU. A
kernel starts when it is launched, LATENCY has passed and its stream is free. A collective arrives
on a rank as a kernel would that also waits for the compute stream; it ends on all members when the
last has arrived and the transfer is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bench.ranks import faults as faulty
from bench.ranks.program import (
    HOST_NS,
    Collective,
    Compute,
    Load,
    Operation,
    Program,
    Python,
    Receive,
    Send,
    Synchronise,
    Wait,
)

Int64 = npt.NDArray[np.int64]

NEVER: Final = -1
LATENCY: Final = 4_000  # ns from a launch to the earliest start of its kernel
LAUNCHED: Final = 3 / 8  # the share of an operator's host time before it calls the launch
RETURNED: Final = 7 / 8  # and before that returns
KERNEL_JITTER, HOST_JITTER = 0.01, 0.05  # standard deviations
END_JITTER: Final = 200  # ns, standard deviation between the ends of a collective
COMMUNICATION: Final = "communication"
IDLE: Final = ("data loading", "host", "start")  # causes of idle time of the compute stream


@dataclass(eq=False)
class Run:
    """All times of a simulated run, in ns of true time; the run begins at 0.

    Attributes
    ----------
    program : Program
        With the calls that faults add.
    source : Program
        Without them.
    n_steps, seed : int
    faults : tuple of faults
    op : int64 [rows]
        The operation of each row: its place in `program.step`.
    step : int64 [rows]
    begin, end : int64 [rows, ranks]
        On the host; NEVER where the rank does not execute it.
    gpu_begin, gpu_end : int64 [rows, ranks]
        On the GPU; for a communication, arrival and end. NEVER for operations without GPU work.
    step_begin, step_end : int64 [steps, ranks]
        On the host.
    run_ends : int64 [steps]
        When the last rank's GPU work of each step ends.
    injected : int64 [faults, steps]
        ns that each fault adds to its rank.
    labels : list of str
        What a compute stream does: causes of idle time, `communication`, operators.
    between : int64 [rows, ranks, labels]
        For rows of communications, with `between=True`: ns of the rank's compute stream since its
        preceding communication, by what it did. Idle time counts where the stream next has work or
        waits: that before an overlapped collective may be in the row after it.
    """

    program: Program
    source: Program
    n_steps: int
    seed: int
    faults: tuple[faulty.AnyFault, ...]
    op: Int64
    step: Int64
    begin: Int64
    end: Int64
    gpu_begin: Int64
    gpu_end: Int64
    step_begin: Int64
    step_end: Int64
    run_ends: Int64
    injected: Int64
    labels: list[str]
    between: Int64 | None = None

    @property
    def mean_step(self) -> float:
        """Mean ns of a step of the run: the end of the last GPU work, over the steps."""
        return float(self.run_ends[-1]) / self.n_steps


def simulate(
    program: Program,
    steps: int = 5,
    seed: int = 1,
    faults: Sequence[faulty.AnyFault] = (),
    *,
    only_communication: bool = False,
    between: bool = False,
) -> Run:
    """Simulate a run. The same arguments give the same times; faults change no random numbers.

    Parameters
    ----------
    only_communication : bool
        Keep only the rows of communications: less memory for large runs.
    between : bool
        Also sum up what compute streams do between communications.

    Raises
    ------
    ValueError
        A fault is of a rank that the program does not have.
    """
    for fault in faults:
        if not 0 <= fault.rank < program.n_ranks:
            raise ValueError(f"expected ranks below {program.n_ranks}, found {fault}")
    simulation = _Simulation(program, steps, seed, tuple(faults), only_communication, between)
    for step in range(steps):
        simulation.run_step(step)
    return simulation.result()


class _Simulation:
    """The state of all ranks: when the host and each stream is free."""

    def __init__(
        self, program: Program, steps: int, seed: int, faults: tuple[faulty.AnyFault, ...],
        only_communication: bool, between: bool,
    ) -> None:  # fmt: skip
        self.source, self.program = program, faulty.with_calls(program, faults)
        self.n_steps, self.seed, self.faults = steps, seed, faults
        n = program.n_ranks
        self.random = np.random.default_rng(seed)
        self.random_of_faults = np.random.default_rng([seed, 1])
        self.host = np.zeros(n, np.int64)
        self.streams: dict[str, Int64] = {"compute": np.zeros(n, np.int64)}
        self.ends: dict[str, Int64] = {}  # of communications, by key
        self.sent: dict[str, tuple[int, Int64, Int64]] = {}  # row, ranks and ready times
        self.pending = np.zeros((len(IDLE), n), np.int64)  # host ns since the last launch, by cause
        self.causes = [(i, f) for i, f in enumerate(faults) if isinstance(f, faulty.Fault)]
        self.n_python = np.zeros(n, np.int64)
        for op in self.program.step:
            if isinstance(op, Python):
                self.n_python[op.at] += 1
        self.injected = np.zeros((len(faults), steps), np.int64)
        self.run_ends = np.zeros(steps, np.int64)
        self.step_begin, self.step_end = np.zeros((2, steps, n), np.int64)
        names = dict.fromkeys(op.op for op in self.program.step if isinstance(op, Compute))
        self.labels = [*IDLE, COMMUNICATION, *names]
        self.label_of = {label: i for i, label in enumerate(self.labels)}
        self._allocate(only_communication, between)
        self.step = 0

    def _allocate(self, only_communication: bool, between: bool) -> None:
        ops = self.program.step
        kept = [
            i for i, op in enumerate(ops)
            if not only_communication or isinstance(op, Collective | Send | Receive)
        ]  # fmt: skip
        self.row_of = {i: row for row, i in enumerate(kept)}
        n_rows = len(kept) * self.n_steps
        self.op = np.tile(np.array(kept, np.int64), self.n_steps)
        shape = (4, n_rows, self.program.n_ranks)
        self.times = np.full(shape, NEVER, np.int64)
        self.spent = self.between = None
        if between:
            self.spent = np.zeros((self.program.n_ranks, len(self.labels)), np.int64)
            self.between = np.zeros((n_rows, *self.spent.shape), np.int64)

    def run_step(self, step: int) -> None:
        """Run all operations of a step."""
        self.step = step
        self.step_begin[step] = self.host
        for i, fault in self.causes:
            if isinstance(fault, faulty.Start) and fault.is_in(step):
                self.host[fault.rank] += fault.ns
                self.pending[2, fault.rank] += fault.ns
                self.injected[i, step] += fault.ns
        for place, op in enumerate(self.program.step):
            if op.fault >= 0 and not self.faults[op.fault].is_in(step):
                continue
            row = self.row_of.get(place, NEVER)
            if row != NEVER:
                row += step * len(self.row_of)
            _RUN[type(op)](self, op, row)
        self.step_end[step] = self.host
        self.run_ends[step] = max(int(free.max()) for free in self.streams.values())

    def result(self) -> Run:
        """All times."""
        n_rows = len(self.row_of)
        return Run(
            self.program, self.source, self.n_steps, self.seed, self.faults, self.op,
            np.repeat(np.arange(self.n_steps), n_rows), *self.times,
            self.step_begin, self.step_end, self.run_ends, self.injected, self.labels, self.between,
        )  # fmt: skip

    # Operations

    def python(self, op: Python, row: int) -> None:
        more = np.zeros(self.program.n_ranks, np.int64)
        for i, fault in self._faults(op, faulty.Host):
            share = fault.ns // int(self.n_python[fault.rank])
            more[fault.rank] += share
            self.injected[i, self.step] += share
        begin, end = self._on_host(op, op.ns, more)
        self.pending[1][op.at] += end - begin
        self._keep(op, row, begin, end)

    def load(self, op: Load, row: int) -> None:
        more = np.zeros(self.program.n_ranks, np.int64)
        for i, fault in self._faults(op, faulty.Data):
            more[fault.rank] += fault.ns
            self.injected[i, self.step] += fault.ns
        begin, end = self._on_host(op, op.ns, more)
        self.pending[0][op.at] += end - begin
        self._keep(op, row, begin, end)

    def compute(self, op: Compute, row: int) -> None:
        begin, end = self._on_host(op, HOST_NS)
        taken = self._kernel_time(op)
        free = self.streams["compute"]
        start = np.maximum(_launch(begin, end) + LATENCY, free[op.at])
        if self.spent is not None:
            members = np.arange(self.program.n_ranks)[op.at]
            self._spend_idle(members, start - free[members])
            self.spent[members, self.label_of[op.op]] += taken
        free[op.at] = start + taken
        self._keep(op, row, begin, end, start, start + taken)

    def collective(self, op: Collective, row: int) -> None:
        groups = self.program.groups[op.groups].ranks
        begin, end = self._on_host(op, 3 * HOST_NS)
        stream = self._stream(op.stream or op.groups)
        compute = self.streams["compute"]
        arrival = self._all(op, _launch(begin, end) + LATENCY)
        arrival = np.maximum(np.maximum(arrival, compute), stream)
        jitter = self._normal(op, len(groups))
        last = arrival[groups].max(axis=1) + _scaled(op.transfer, KERNEL_JITTER * jitter)
        late = np.abs(self._normal(op, groups.size)).reshape(groups.shape) * END_JITTER
        done = np.full(self.program.n_ranks, NEVER, np.int64)
        done[groups] = last[:, None] + late.astype(np.int64)
        members = groups.ravel()
        stream[members] = done[members]
        if op.key:
            self._store(row, members)
            self.ends[op.key] = done
        else:
            self._spend_idle(members, (arrival - compute)[members])
            self._store(row, members)
            self._block(members, done[members])
        if row != NEVER:
            host = self._all(op, begin), self._all(op, end)
            for column, values in zip(self.times, (*host, arrival, done), strict=True):
                column[row, members] = values[members]

    def wait(self, op: Wait, row: int) -> None:
        begin, end = self._on_host(op, 2_000)
        done = self.ends[op.key]
        members = np.flatnonzero(done != NEVER)
        if op.ranks is not None:
            members = np.intersect1d(members, op.ranks)
        self._block(members, done[members])
        self._keep(op, row, begin, end)

    def send(self, op: Send, row: int) -> None:
        begin, end = self._on_host(op, 3 * HOST_NS)
        ready = np.maximum(_launch(begin, end) + LATENCY, self.streams["compute"][op.at])
        self._store(row, op.ranks)
        self._keep(op, row, begin, end)
        self.sent[op.key] = row, op.ranks, ready

    def receive(self, op: Receive, row: int) -> None:
        begin, end = self._on_host(op, 3 * HOST_NS)
        compute, ranks = self.streams["compute"], op.ranks
        source, senders, ready = self.sent.pop(op.key)
        # Both directions have their own streams, and so has each end.
        leaving = self._stream(f"{op.groups} send")
        coming = self._stream(f"{op.groups} receive")
        sender = np.maximum(ready, leaving[senders])
        receiver = np.maximum(_launch(begin, end) + LATENCY, compute[ranks])
        receiver = np.maximum(receiver, coming[ranks])
        transfer = _scaled(op.transfer, KERNEL_JITTER * self._normal(op, len(ranks)))
        done = np.maximum(sender, receiver) + transfer
        late = np.abs(self._normal(op, 2 * len(ranks))) * END_JITTER
        sent, received = done + late.astype(np.int64).reshape(2, -1)
        leaving[senders], coming[ranks] = sent, received
        self._spend_idle(ranks, receiver - compute[ranks])
        self._store(row, ranks)
        self._block(ranks, received)
        if source != NEVER:
            self.times[2, source, senders], self.times[3, source, senders] = sender, sent
        self._keep(op, row, begin, end, receiver, received)

    def synchronise(self, op: Synchronise, row: int) -> None:
        begin, end = self._on_host(op, 5_000)
        end = np.maximum(end, self.streams["compute"][op.at] + 2_000)
        self.host[op.at] = end
        self._keep(op, row, begin, end)

    # Parts of operations

    def _on_host(self, op: Operation, ns: int, more: Int64 | None = None) -> tuple[Int64, Int64]:
        """Begin and end on the host; `more` [ranks] is additional time without jitter."""
        begin = self.host[op.at].copy()
        taken = self._all(op, _scaled(ns, HOST_JITTER * self._normal(op, len(begin))))
        for i, fault in self._faults(op, faulty.Host):
            added = round(taken[fault.rank] * (fault.factor - 1))
            taken[fault.rank] += added
            self.injected[i, self.step] += added
        end = begin + taken[op.at] + (0 if more is None else more[op.at])
        self.host[op.at] = end
        return begin, end

    def _kernel_time(self, op: Compute) -> Int64:
        """ns of a kernel on each of its ranks."""
        base = _scaled(op.ns, KERNEL_JITTER * self._normal(op, self._count(op)))
        taken = self._all(op, base)
        if op.fault >= 0:
            self.injected[op.fault, self.step] += int(taken[self.faults[op.fault].rank])
        for i, fault in self._faults(op, faulty.Rows | faulty.Gpu):
            if isinstance(fault, faulty.Gpu) or fault.matches(op):
                added = round(taken[fault.rank] * (fault.factor - 1))
                taken[fault.rank] += added
                self.injected[i, self.step] += added
        return taken[op.at]

    def _faults(self, op: Operation, kind: Any) -> list[tuple[int, Any]]:
        """Place and fault of the faults of a kind that concern an operation in this step."""
        return [
            (i, fault) for i, fault in self.causes
            if isinstance(fault, kind) and fault.is_in(self.step)
            and (op.ranks is None or fault.rank in op.ranks)
        ]  # fmt: skip

    def _count(self, op: Operation) -> int:
        return self.program.n_ranks if op.ranks is None else len(op.ranks)

    def _normal(self, op: Operation, n: int) -> npt.NDArray[np.float64]:
        random = self.random if op.fault < 0 else self.random_of_faults
        return random.standard_normal(n)

    def _stream(self, name: str) -> Int64:
        return self.streams.setdefault(name, np.zeros(self.program.n_ranks, np.int64))

    def _all(self, op: Operation, values: Int64) -> Int64:
        """[ranks] The values of an operation's ranks, 0 on others."""
        if op.ranks is None:
            return values
        out = np.zeros(self.program.n_ranks, np.int64)
        out[op.ranks] = values
        return out

    def _keep(self, op: Operation, row: int, *times: Int64) -> None:
        if row != NEVER:
            for column, values in zip(self.times, times, strict=False):
                column[row, op.at] = values

    # What compute streams do

    def _spend_idle(self, members: Int64, ns: Int64) -> None:
        """Idle time of compute streams before GPU work, by what the host did since the last."""
        if self.spent is None:
            return
        left = ns.copy()
        for cause in (0, 2):
            part = np.minimum(left, self.pending[cause, members])
            self.spent[members, cause] += part
            left -= part
        self.spent[members, 1] += left
        self.pending[:, members] = 0

    def _block(self, members: Int64, until: Int64) -> None:
        """The compute streams of these ranks wait for a communication."""
        compute = self.streams["compute"]
        waited = np.maximum(until - compute[members], 0)
        if self.spent is not None:
            self.spent[members, self.label_of[COMMUNICATION]] += waited
        compute[members] += waited

    def _store(self, row: int, members: Int64) -> None:
        """Note what the compute streams did since the preceding communication, and start anew."""
        if self.spent is not None and self.between is not None:
            self.between[row, members] = self.spent[members]
            self.spent[members] = 0


def _launch(begin: Int64, end: Int64) -> Int64:
    return begin + ((end - begin) * LAUNCHED).astype(np.int64)


def _scaled(ns: int, jitter: npt.NDArray[np.float64]) -> Int64:
    return np.rint(ns * np.maximum(1 + jitter, 0.1)).astype(np.int64)


_RUN: Final[dict[type[Operation], Any]] = {
    Python: _Simulation.python,
    Load: _Simulation.load,
    Compute: _Simulation.compute,
    Collective: _Simulation.collective,
    Wait: _Simulation.wait,
    Send: _Simulation.send,
    Receive: _Simulation.receive,
    Synchronise: _Simulation.synchronise,
}
