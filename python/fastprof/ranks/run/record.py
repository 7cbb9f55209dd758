"""RankRecord: the fixed columns that represent one rank of a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof._version import __version__
from fastprof.analysis.idle.causes import CAUSES, Cause
from fastprof.model.arrays import Int32, Int64, UInt8
from fastprof.model.trace import NO_TIME
from fastprof.ops.collectives.messages import ALL_TO_ALL, GATHER, SCATTER
from fastprof.ranks.files import TraceFile

# Kinds of chain events, in the order of those at one time.
WAITED, BOUNDARY, ARRIVED = range(3)
# What a label is of; causes of idle time follow.
COMPUTE, COPY = range(2)
FIRST_CAUSE: Final = 2
KINDS_OF_LABELS: Final = ("compute", "copies", *CAUSES)
# Idle time of the host's making.
HOST_KINDS: Final = frozenset(FIRST_CAUSE + cause for cause in Cause if cause <= Cause.HOST_BOUND)


_OWN_SIZES: Final = frozenset({ALL_TO_ALL, GATHER, SCATTER})


class CallSignature(NamedTuple):
    """What calls of a collective agree in.

    Parameters
    ----------
    kind : one of `ops.collectives.messages.COLLECTIVES`, barrier, or the name of the kernel
    size : algorithm bytes, -1 if unknown
    dtype : short name of the type, "" if unknown
    group : name and description of the process group, or NCCL's communicator, "" if unknown
    members : ranks of the group, () if unknown
    n_ranks : number of ranks of the group, -1 if unknown
    channel : index of the stream among the rank's communication streams
    source, target : rank that sends and rank that receives, of a message; -1 if unknown
    op, layer, line : of the call, "" if unknown
    """

    kind: str
    size: int
    dtype: str
    group: str
    members: tuple[int, ...]
    n_ranks: int
    channel: int
    source: int
    target: int
    op: str
    layer: str
    line: str

    def same_call(self) -> tuple[str, int, str, int]:
        """What all members of an instance agree in: not the size where each has its own."""
        size = -1 if self.kind in _OWN_SIZES else self.size
        return self.kind, size, self.dtype, self.n_ranks

    def same_program(self) -> tuple[object, ...]:
        """What ranks that run one program agree in."""
        return (
            *self.same_call(),
            description(self.group),
            self.op,
            self.source >= 0,
            self.target >= 0,
        )


def description(group: str) -> str:
    """What groups of other ranks share of a name: its description; "" of numbers alone."""
    number, _, text = group.partition(" ")
    return text or ("" if number.startswith("0x") or number.isdigit() else number)


class Label(NamedTuple):
    """What the chain does in a piece of its time.

    Parameters
    ----------
    kind : COMPUTE, COPY, or FIRST_CAUSE + a `Cause` of idle time
    op : operator, or kernel if there is none; "" of idle time
    layer, shape, line, direction : "" if unknown
    """

    kind: int
    op: str
    layer: str
    shape: str
    line: str
    direction: str


@dataclass(frozen=True, eq=False)
class Calls:
    """The collectives and messages of a rank, in order of start.

    Parameters
    ----------
    start, end : int64 [calls], ns on the clock of the file: start of the first and end of the last
        kernel. The start is the arrival of the rank.
    signature : int32 [calls], index into `RankRecord.signatures`
    seq : int32 [calls], the number in the process group, -1 if not recorded
    """

    start: Int64
    end: Int64
    signature: Int32
    seq: Int32

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class Chain:
    """The time line of a rank's work other than communication, cut into pieces by events.

    Piece i lies between events i - 1 and i; the first begins at `begin`. Its time is that of its
    entries plus `blocked`, the time in which it waits for the call of its event.

    Parameters
    ----------
    begin : ns on the clock of the file
    time : int64 [events], ns, ascending
    kind : uint8 [events]
        WAITED: the work goes on after the end of a call; ARRIVED: what a call needs is done and it
        is launched; BOUNDARY: a step begins or ends, or the capture ends.
    call : int32 [events], row of Calls; -1 for boundaries
    blocked : int64 [events], ns
    lead : int32 [events], ns, to the event from the latest launch of work and calls up to it; 0
        without a launch
    slack : int32 [events], ns, how much sooner the piece could end if only its launches held it up;
        0: it ends when it does because of the host; -1 without a launch
    rest : int32 [events], ns, the part of the piece that follows the launch that holds it up most
    offsets : int64 [events + 1], the first entry of each piece
    label : int32 [entries], index into `RankRecord.labels`; a piece has each label once
    ns : int64 [entries]
    count : int32 [entries], kernels that begin in the piece
    """

    begin: int
    time: Int64
    kind: UInt8
    call: Int32
    blocked: Int64
    lead: Int32
    slack: Int32
    rest: Int32
    offsets: Int64
    label: Int32
    ns: Int64
    count: Int32

    def __len__(self) -> int:
        return len(self.time)

    def sums(self, values: Int64 | Int32) -> Int64:
        """[events] The sum over the entries of each piece; values : [entries]"""
        total = np.zeros(len(values) + 1, np.int64)
        np.cumsum(values, out=total[1:])
        return total[self.offsets[1:]] - total[self.offsets[:-1]]

    @property
    def spent(self) -> Int64:
        """[events] The time of the entries of each piece, ns."""
        return np.diff(self.time, prepend=np.int64(self.begin)) - self.blocked

    def calls_before(self) -> Int64:
        """[events] How many calls have arrived before each event."""
        arrived = self.kind == ARRIVED
        result: Int64 = np.cumsum(arrived) - arrived
        return result

    @property
    def launch(self) -> Int64:
        """[events] When the latest launch up to each event was, ns; NO_TIME without a launch."""
        return np.where(self.slack >= 0, self.time - self.lead, NO_TIME)


@dataclass(frozen=True, eq=False)
class Syncs:
    """When the host waits for the GPU before a launch.

    Parameters
    ----------
    event : int64 [syncs], ascending: of the chain, between whose launch and the one before it the
        host waits
    ns : int64 [syncs], how long
    after : int64 [syncs], ns from the end of the last of these waits to the launch
    """

    event: Int64
    ns: Int64
    after: Int64

    def __len__(self) -> int:
        return len(self.event)


NO_SYNCS: Final = Syncs(*np.zeros((3, 0), np.int64))


@dataclass(frozen=True, eq=False)
class RankSteps:
    """The steps of a rank: windows that divide the time line of its GPU.

    Parameters
    ----------
    source : what marks them, see `StepsOfKernels`
    number : int64 [steps], as in the label, else 1, 2, ...
    start, end : int64 [steps], ns on the clock of the file
    is_counted : bool [steps], whether means include the step
    """

    source: str
    number: Int64
    start: Int64
    end: Int64
    is_counted: np.ndarray

    def __len__(self) -> int:
        return len(self.number)

    def rows_at(self, time: Int64) -> Int64:
        """The step in which each time is, -1 for none."""
        step = np.searchsorted(self.start, time, "right") - 1
        inside = (step >= 0) & (time < np.append(self.end, 0)[step])
        return np.where(inside, step, -1)


class _Parts(NamedTuple):
    """Entries of a chain: the piece, the kind of the label, and ns, [parts]."""

    piece: Int32
    kind: Int32
    ns: Int64


@dataclass(frozen=True, eq=False)
class RankRecord:
    """One rank of a run: a process and a GPU of a trace.

    Parameters
    ----------
    source : the file
    format : of the file
    rank, world_size : as recorded in the file, or None
    place : number of the rank in its file, 0, 1, ...
    n_places : ranks in the file
    pid, device : -1 if not recorded
    gpu : name of the GPU, "" if not recorded
    n_gpus : GPUs of the host that the file lists, 0 if it lists none
    calls, signatures, chain, syncs, labels, steps : see these classes
    warnings : problems of the file
    """

    source: TraceFile
    format: str
    rank: int | None
    world_size: int | None
    place: int
    n_places: int
    pid: int
    device: int
    gpu: str
    n_gpus: int
    calls: Calls
    signatures: list[CallSignature]
    chain: Chain
    syncs: Syncs
    labels: list[Label]
    steps: RankSteps
    warnings: list[str]

    @property
    def path(self) -> str:
        """The path as given by the user."""
        return self.source.path

    def host_time(self) -> Int64:
        """[events] The own time of the host from the launch before to that of each event, ns.

        0 for events without a launch, and for the first one that has one.
        """
        chain = self.chain
        result = np.zeros(len(chain), np.int64)
        events = np.flatnonzero(chain.slack >= 0)
        result[events[1:]] = np.diff(chain.launch[events])
        result[self.syncs.event] -= self.syncs.ns
        return np.maximum(result, 0)

    def time_of(self, kinds: Collection[int]) -> Int64:
        """[events] The time of labels of some kinds in each piece, ns."""
        other, n = self._other, len(self.chain)
        wanted = np.isin(other.kind, list(kinds)).view(np.uint8)
        if COMPUTE not in kinds:
            return sum_where(other.piece, other.ns, wanted, n)
        return self.chain.spent - sum_where(other.piece, other.ns, 1 - wanted, n)

    def late_time(self, kinds: Collection[int] = HOST_KINDS) -> Int64:
        """[events] The idle time of pieces that end because of the host, ns.

        kinds : of `HOST_KINDS`
        """
        return np.where(self.chain.slack >= 0, self.time_of(kinds), 0)

    @computed_once
    def _other(self) -> _Parts:
        """All that is no work of kernels: few of the entries."""
        chain = self.chain
        kind = np.array([label.kind for label in self.labels] or [COMPUTE], np.int32)
        entries = np.flatnonzero((kind != COMPUTE)[chain.label])
        piece = np.searchsorted(chain.offsets, entries, "right") - 1
        return _Parts(piece.astype(np.int32), kind[chain.label[entries]], chain.ns[entries])


@dataclass(frozen=True)
class RecordedFile:
    """The ranks of one file, in order of process and GPU.

    Parameters
    ----------
    source : the file
    ranks : empty if the file has no GPU work with times
    options : key of the options, see `Options.text`
    seconds : time to read the file
    version : version of fastprof
    """

    source: TraceFile
    ranks: list[RankRecord]
    options: str = ""
    seconds: float = 0.0
    version: str = __version__

    @property
    def path(self) -> str:
        """The path as given by the user."""
        return self.source.path
