"""Further events of the host: synchronisations, calls of the operating system, CPU samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fastprof._core import _join, _nest
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.timeline import SYNC_KINDS, RecordedEvents, RecordedSyncs
from fastprof.profile.instances import ApiCalls, Instances, Threads

if TYPE_CHECKING:
    import pandas

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

    kind: Values
    device: Int32
    stream: Int32
    correlation: Int64
    call: Int32

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame: start, end, tid, pid, kind, device, stream, correlation.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        return self._frame(
            {
                "kind": self.kind,
                "device": self.device,
                "stream": self.stream,
                "correlation": self.correlation,
            }
        )


@dataclass(frozen=True, eq=False)
class HostEvents(Instances):
    """Calls of the operating system, CPU samples or switches between threads.

    `threads` begins with those of `Profile.api`, so indices of threads agree.

    Parameters
    ----------
    name : Values
        The function, unknown if not recorded; `in` or `out` for switches.
    """

    name: Values

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame: start, end, tid, pid, name.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        return self._frame({"name": self.name})


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
