"""Ranges, API calls and further events of the host, with their times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, cast

import numpy as np

from fastprof._core import _join, _nest
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.optional import import_optional
from fastprof._system.regex import regex
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.derived import Computed
from fastprof.model.markers import Meaning
from fastprof.model.timeline import SYNC_KINDS, RecordedEvents, RecordedSyncs
from fastprof.model.trace import NEVER

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Threads:
    """The threads of a trace: `tid` and `pid` [threads], -1 if unknown."""

    tid: Int64
    pid: Int64


@dataclass(frozen=True, eq=False)
class Instances:
    """Events of threads, ordered by (start, -end).

    Parameters
    ----------
    start, end : int64 [n]
        ns on the trace's clock; `end` is NEVER (2^63 - 1) if the event was not closed.
    thread : int32 [n]
        Index into `threads`, -1 if unknown.
    threads : Threads
        Those of ranges and API calls together.
    """

    start: Int64
    end: Int64
    thread: Int32
    threads: Threads
    # Of `to_pandas`, beside times and threads: the attribute of each.
    _COLUMNS: ClassVar[dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self.start)

    @property
    def tid(self) -> Int64:
        """int64 [n], the thread id."""
        return take(self.threads.tid, self.thread)

    @property
    def pid(self) -> Int64:
        """int64 [n], the process id."""
        return take(self.threads.pid, self.thread)

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame: start, end, tid, pid, and the class's own columns. Unknown ends are missing.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        library = import_optional("pandas", "DataFrames need")
        unknown = self.end == NEVER
        end = library.arrays.IntegerArray(self.end, unknown) if unknown.any() else self.end
        data = {"start": self.start, "end": end, "tid": self.tid, "pid": self.pid}
        for name, attribute in self._COLUMNS.items():
            column = getattr(self, attribute)
            if isinstance(column, Values):
                merged = column.mapped(str)  # categories are unique
                data[name] = library.Categorical.from_codes(merged.ids, categories=merged.values)
            else:
                data[name] = column
        frame: pandas.DataFrame = library.DataFrame(data)
        return frame


@dataclass(frozen=True, eq=False)
class EndedElsewhere:
    """Ranges that ended on another thread than they started on; they enclose no API calls."""

    start: Int64
    end: Int64
    text: Values
    domain: Values


class RangePlaces(Protocol):
    """Where ranges are in the nesting; see `RangeInstances`."""

    @property
    def level(self) -> Int32: ...
    @property
    def parent(self) -> Int32: ...
    @property
    def forward(self) -> Int32: ...
    @property
    def of_kernel(self) -> Int32: ...
    @property
    def waiting(self) -> Int32: ...


class RangeKinds(NamedTuple):
    """What kind of ranges they are; see `RangeInstances`."""

    domain: Values
    is_push_pop: Bools
    ended_elsewhere: EndedElsewhere


@dataclass(frozen=True, eq=False)
class RangeInstances(Instances):
    """The ranges of a trace, including those without kernels.

    Parameters
    ----------
    label : int32 [n]
        Index into `meanings`, the parsed name; `text` and `name` have it as text.
    seq, op_id : int64 [n]
        torch's numbers, -1 if none.
    of_events : bool
        Whether they are events of torch.profiler, whose names contain neither shapes nor numbers.
    n_ended_elsewhere : int
        Rows of `ended_elsewhere`.
    n_own : int
        Rows of the trace itself. The rows after it are those of graph-capture files, whose times
        are shifted to after the trace.
    """

    _COLUMNS: ClassVar = {"text": "text", "seq": "seq", "level": "level", "parent": "parent"}

    label: Int32
    seq: Int64
    op_id: Int64
    of_events: bool
    meanings: list[Meaning]
    n_own: int
    n_ended_elsewhere: int
    _places: RangePlaces
    _find_kinds: Callable[[], RangeKinds]

    @computed_once
    def kinds(self) -> RangeKinds:
        """`domain`, `is_push_pop` and `ended_elsewhere`."""
        return self._find_kinds()

    @property
    def level(self) -> Int32:
        """int32 [n], how many ranges of the thread are open at the start."""
        return self._places.level

    @property
    def parent(self) -> Int32:
        """int32 [n], the row of the innermost range that is open at the start, -1 if none.

        A range may cross the end of its parent.
        """
        return self._places.parent

    @property
    def forward(self) -> Int32:
        """int32 [n], the row of the forward call of a backward call's outermost range, else -1."""
        return self._places.forward

    @property
    def of_kernel(self) -> Int32:
        """int32 [kernels], the innermost range around each launch, on its thread; -1 if none."""
        return self._places.of_kernel

    @property
    def waiting(self) -> Int32:
        """int32 [n], for ranges of a thread that another waits for, the row of the innermost user's
        range that the waiting thread has open; -1 for others."""
        return self._places.waiting

    @property
    def domain(self) -> Values:
        """The name of the NVTX domain, unknown for the default domain."""
        return self.kinds.domain

    @property
    def is_push_pop(self) -> Bools:
        """bool [n], whether the range was pushed and popped, as opposed to started and ended."""
        return self.kinds.is_push_pop

    @property
    def ended_elsewhere(self) -> EndedElsewhere:
        """Further ranges, without a place in the nesting."""
        return self.kinds.ended_elsewhere

    @property
    def text(self) -> Values:
        """The names, with shapes and without torch's numbers."""
        return Values(self.label, [meaning.label for meaning in self.meanings])

    @property
    def name(self) -> Values:
        """The names without shapes."""
        return Values(self.label, [meaning.name for meaning in self.meanings])

    @computed_once
    def recorded_name(self) -> Values:
        """`DOMAIN:NAME` as recorded, with torch's numbers; the default domain has no name."""
        ids, first = alike(self.name_parts)
        names = Computed(len(first), lambda rows: self.recorded_names(first[rows]))
        return Values(ids, cast("list[str]", names))

    @computed_once
    def name_parts(self) -> list[Int32 | Int64]:
        """Columns [n] of numbers that agree where ranges have the same recorded name."""
        if self.of_events:
            return [self.name.mapped(lambda name: name).ids]
        label = self.text.mapped(lambda text: text)  # labels of equal text get one id
        return [label.ids, self.seq, self.op_id, self.domain.ids]

    def recorded_names(self, rows: Int32) -> list[str]:
        """The recorded names of some rows."""
        meanings = [self.meanings[label] for label in self.label[rows].tolist()]
        if self.of_events:
            return [f":{meaning.name}" for meaning in meanings]
        domains, result = [*self.domain.values, ""], []
        numbers = (array[rows].tolist() for array in (self.domain.ids, self.seq, self.op_id))
        for meaning, domain, seq, op_id in zip(meanings, *numbers, strict=True):
            name, text = meaning.name, meaning.label
            if seq >= 0 or op_id >= 0:
                of_seq = f", seq = {seq}" if seq >= 0 else ""
                of_op = f", op_id = {op_id}" if op_id >= 0 else ""
                text = f"{name}{of_seq}{of_op}{text[len(name) :]}"
            result.append(f"{domains[domain]}:{text}")
        return result


@dataclass(frozen=True, eq=False)
class ApiCalls(Instances):
    """All API calls of the CUDA or HIP runtime and driver in a trace.

    A runtime call may contain driver calls.

    Parameters
    ----------
    name : Values
        The name as recorded.
    call_class : Values
        launch, sync, alloc, load, create, copy or other, see `profile.api_classes`.
    correlation : int64 [n]
        Links a call to the GPU work it launched, -1 if none.
    of_kernel : int32 [kernels]
        The call that launched each kernel, -1 if none.
    """

    _COLUMNS: ClassVar = {"name": "name", "class": "call_class", "correlation": "correlation"}

    name: Values
    call_class: Values
    correlation: Int64
    of_kernel: Int32


_UNNAMED: Final = "(no name)"

# By the name of the API call.
_KIND_OF_CALL: Final = (
    (regex(r"StreamWaitEvent"), SYNC_KINDS.index("stream wait")),
    (regex(r"Event(?:Synchronize|Query)"), SYNC_KINDS.index("event")),
    (regex(r"Stream(?:Synchronize|Query)"), SYNC_KINDS.index("stream")),
    (regex(r"(?:Device|Ctx|Thread)Synchronize"), SYNC_KINDS.index("context")),
)


@dataclass(frozen=True, eq=False)
class Synchronisations(Instances):
    """CUPTI's records of synchronisation, which name what a call waits for.

    `thread` is that of the API call, -1 if the trace lacks the call.

    Parameters
    ----------
    kind : Values
        event (the host waits for an event, or queries one), stream (the host waits for a stream),
        context (the host waits for the GPU), stream wait (a stream waits for an event, and the host
        does not) or unknown.
    device, stream : int32 [n]
        The GPU, and the stream waited for or, for `stream wait`, that waits; -1 if not recorded.
    correlation : int64 [n]
        That of the API call, -1 if none.
    call : int32 [n]
        The row of the API call in `Profile.api`, -1 if the trace lacks it.
    """

    _COLUMNS: ClassVar = {
        "kind": "kind",
        "device": "device",
        "stream": "stream",
        "correlation": "correlation",
    }

    kind: Values
    device: Int32
    stream: Int32
    correlation: Int64
    call: Int32


@dataclass(frozen=True, eq=False)
class HostEvents(Instances):
    """Calls of the operating system, CPU samples or switches between threads.

    `threads` begins with those of `Profile.api`, so indices of threads agree.

    Parameters
    ----------
    name : Values
        The function, unknown if not recorded; `in` or `out` for switches.
    """

    _COLUMNS: ClassVar = {"name": "name"}

    name: Values


def synchronisations_of(syncs: RecordedSyncs, processes: Int32, api: ApiCalls) -> Synchronisations:
    """The synchronisations of a trace, with the API call of each.

    processes : process ids of the operating system, for `syncs.process`
    """
    call = _calls(syncs, processes, api)
    names = api.name.values
    kinds = np.array([*map(_kind_of_call, names), 0], np.int32)
    kind, known = np.zeros(len(call), np.int32), np.flatnonzero(call >= 0)
    kind[known] = kinds[api.name.take(call[known]).ids]
    kind = np.where(kind > 0, kind, syncs.kind)
    rows = _in_order(syncs.start, syncs.end)
    return Synchronisations(
        start=syncs.start[rows],
        end=syncs.end[rows],
        thread=take(api.thread, call)[rows],
        threads=api.threads,
        kind=Values(kind[rows], list(SYNC_KINDS)),
        device=syncs.device[rows],
        stream=syncs.stream[rows],
        correlation=syncs.correlation[rows],
        call=call[rows],
    )


def _kind_of_call(name: str) -> int:
    return next((kind for pattern, kind in _KIND_OF_CALL if pattern.search(name)), 0)


def _calls(syncs: RecordedSyncs, processes: Int32, api: ApiCalls) -> Int32:
    """The API call of each synchronisation, by process and correlation id; -1 for none."""
    own = np.append(processes, np.int32(-1)).astype(np.int64)[syncs.process]
    of_threads = api.threads.pid
    if np.any(own < 0):  # the process is not recorded
        own, of_threads = np.zeros_like(own), np.zeros_like(of_threads)
    _, dense = np.unique(np.concatenate([own, of_threads]), return_inverse=True)
    process, of_thread = np.split(dense.astype(np.int32), [len(own)])
    join = _join.Join(process, syncs.correlation)
    join.offer(take(of_thread, api.thread), api.correlation)
    return join.rows(process, syncs.correlation)


def host_events_of(
    recorded: RecordedEvents | None, known: Threads, are_calls: bool = False
) -> HostEvents:
    """The events of a trace.

    recorded : None if the format has none of them
    known : the threads of ranges and API calls
    are_calls : all have a name then, see `named`
    """
    if recorded is None:
        recorded = _no_events()
    place_of: dict[tuple[int, int], int] = {}
    for place, pair in enumerate(zip(known.tid.tolist(), known.pid.tolist(), strict=True)):
        place_of.setdefault(pair, place)
    new = [pair for pair in dict.fromkeys(recorded.threads) if pair not in place_of]
    place_of |= {pair: place for place, pair in enumerate(new, len(known.tid))}
    added = np.array(new, np.int64).reshape(-1, 2)
    threads = Threads(
        np.concatenate([known.tid, added[:, 0]]), np.concatenate([known.pid, added[:, 1]])
    )
    places = np.array([place_of[pair] for pair in recorded.threads], np.int32)
    rows = _in_order(recorded.start, recorded.end)
    names = Values(recorded.name[rows], recorded.names)
    return HostEvents(
        start=recorded.start[rows],
        end=recorded.end[rows],
        thread=take(places, recorded.thread[rows]),
        threads=threads,
        name=named(names) if are_calls else names.mapped(lambda name: name),
    )


def named(names: Values) -> Values:
    """The names of calls of the host. All have one, also where the capture lacks the text."""
    return names.mapped(lambda name: name).completed(_UNNAMED)


def _no_events() -> RecordedEvents:
    times, ids = np.empty(0, np.int64), np.empty(0, np.int32)
    return RecordedEvents(times, times, ids, ids, [], [])


def _in_order(start: Int64, end: Int64) -> Int32 | slice:
    """The rows ordered by (start, -end)."""
    order = _nest.order(start, end)
    return slice(None) if order is None else order
