"""Reads Perfetto traces as the trace processor does: by Perfetto's own schema, packets in order of
time, a stack of slices for each track, flows by id.

Problems that the trace processor would count in its `stats` table are assertions here.
"""

import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

Event = schema.TrackEvent
_CLEARED, _NEEDS = 1, 2


@dataclass
class Slice:
    track: int
    name: str
    category: str
    start: int
    args: dict[str, Any]
    end: int | None = None
    depth: int = 0
    flows: list[int] = field(default_factory=list)
    flow_ends: list[int] = field(default_factory=list)


@dataclass
class PerfettoTrace:
    """The contents of a trace; times are ns on Perfetto's trace clock.

    flows : the slices of each flow: that of its start, and that of its end
    counters : (time, value) of each counter track, by uuid
    """

    tracks: dict[int, Any] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    flows: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    counters: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    size: int = 0

    def path(self, uuid: int) -> tuple[str, ...]:
        """The names of a track and its parents, outermost first."""
        names: list[str] = []
        while uuid:
            descriptor = self.tracks[uuid]
            names.insert(0, descriptor.name)
            assert len(names) < 10
            uuid = descriptor.parent_uuid
        return tuple(names)

    def on(self, word: str) -> list[Slice]:
        """The slices of the tracks whose path has a part that starts with a word."""
        wanted = {uuid for uuid in self.tracks if any(p.startswith(word) for p in self.path(uuid))}
        return [slice_ for slice_ in self.slices if slice_.track in wanted]


def read(path: Path) -> PerfettoTrace:
    """Read a trace; fails where it breaks a rule of the format."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    trace, message = PerfettoTrace(size=len(data)), schema.Trace()
    assert message.ParseFromString(data) == len(data)
    _expect_known_fields(message)
    timed = []
    for packet, texts, offset in _with_state(message):
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid and descriptor.uuid not in trace.tracks
            assert not descriptor.parent_uuid or descriptor.parent_uuid in trace.tracks
            trace.tracks[descriptor.uuid] = descriptor
        elif packet.HasField("track_event"):
            assert offset is not None, "an event before the clock"
            assert packet.track_event.track_uuid in trace.tracks
            timed.append((packet.timestamp + offset, packet.track_event, texts))
    timed.sort(key=lambda each: each[0])  # stable, as in the trace processor
    _play(trace, timed)
    return trace


def _expect_known_fields(message: Any) -> None:
    """Every field of the file is one of the schema: the serialised message has the same size."""
    again = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == again


def _with_state(message: Any) -> Iterator[tuple[Any, dict[str, dict[int, str]], int | None]]:
    """The packets, with the texts and the clock that are valid after each."""
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    clock, offset, has_state = None, None, False
    for packet in message.packet:
        if packet.sequence_flags & _CLEARED:
            texts, has_state, clock, offset = defaultdict(dict), True, None, None
        assert has_state or not packet.sequence_flags & _NEEDS
        if packet.HasField("trace_packet_defaults"):
            clock = packet.trace_packet_defaults.timestamp_clock_id
        if packet.HasField("clock_snapshot"):
            times = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            assert clock is not None and 64 <= clock <= 127
            offset = times[schema.BUILTIN_CLOCK_BOOTTIME] - times[clock]
        for descriptor, values in packet.interned_data.ListFields():
            for value in values:
                known = texts[descriptor.name]
                assert value.iid and value.iid not in known
                text = value.str.decode() if hasattr(value, "str") else value.name
                known[value.iid] = text
        yield packet, texts, offset


def _play(trace: PerfettoTrace, timed: list[tuple[int, Any, Any]]) -> None:
    stacks: dict[int, list[Slice]] = defaultdict(list)
    open_flows: set[int] = set()
    for time, event, texts in timed:
        stack = stacks[event.track_uuid]
        if event.type == Event.TYPE_SLICE_BEGIN:
            made = _slice(event, texts, time)
            made.depth = len(stack)
            stack.append(made)
            trace.slices.append(made)
            for flow in made.flows:
                assert flow not in open_flows
                open_flows.add(flow)
                trace.flows[flow].append(made)
        elif event.type == Event.TYPE_SLICE_END:
            assert stack, "an end without a start"
            stack.pop().end = time
        else:
            assert event.type == Event.TYPE_COUNTER
            assert trace.tracks[event.track_uuid].HasField("counter")
            trace.counters[event.track_uuid].append((time, event.counter_value))
    for slice_ in trace.slices:
        for flow in slice_.flow_ends:
            trace.flows[flow].append(slice_)


def _slice(event: Any, texts: dict[str, dict[int, str]], time: int) -> Slice:
    assert event.name_iid in texts["event_names"]
    (category,) = event.category_iids
    args: dict[str, Any] = {}
    for debug_annotation in event.debug_annotations:
        name = texts["debug_annotation_names"][debug_annotation.name_iid]
        assert name not in args
        if debug_annotation.HasField("string_value_iid"):
            args[name] = texts["debug_annotation_string_values"][debug_annotation.string_value_iid]
        else:
            assert debug_annotation.HasField("int_value")
            args[name] = debug_annotation.int_value
    return Slice(
        event.track_uuid,
        texts["event_names"][event.name_iid],
        texts["event_categories"][category],
        time,
        args,
        flows=list(event.flow_ids),
        flow_ends=list(event.terminating_flow_ids),
    )
