"""The packets before the events: clock, track descriptors, interned texts.

Protobuf: fields of a message as bytes, and the field numbers of Perfetto's schema.

Schema: protos/perfetto/trace/perfetto_trace.proto of the Perfetto repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

_MASK: Final = (1 << 64) - 1


def varint(value: int) -> bytes:
    """A number as varint; negative numbers as 64-bit two's complement."""
    value &= _MASK
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(field: int) -> bytes:
    """The tag of a varint field."""
    return varint(field << 3)


def fixed64_tag(field: int) -> bytes:
    """The tag of a field of 8 bytes."""
    return varint(field << 3 | 1)


def bytes_tag(field: int) -> bytes:
    """The tag of a text or message."""
    return varint(field << 3 | 2)


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return tag(field) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    """A message of encoded fields."""
    body = b"".join(parts)
    return bytes_tag(field) + varint(len(body)) + body


def text(field: int, value: str) -> bytes:
    """A text; lone surrogates, which UTF-8 lacks, become `?`."""
    return message(field, value.encode("utf-8", "replace"))


# TracePacket: trusted_packet_sequence_id = 1, sequence_flags = SEQ_NEEDS_INCREMENTAL_STATE.
_SEQUENCE: Final = number(10, 1)
HEAD: Final = _SEQUENCE + number(13, 2)
_CLEARED: Final = _SEQUENCE + number(13, 3)  # and SEQ_INCREMENTAL_STATE_CLEARED

_BOOTTIME: Final = 6
_CLOCK: Final = 64  # the first number of a clock of one sequence
_EXPLICIT: Final = 3  # order of child tracks: sibling_order_rank
_BY_NAME, _NO_MERGE = 1, 2

_AT_ONCE: Final = 1000  # texts per packet


def clock_packets(origin: int) -> bytes:
    """Packets that define the clock of all events: ns since `origin` on Perfetto's trace clock."""
    boottime = message(1, number(1, _BOOTTIME), number(2, max(origin, 0)))
    own = message(1, number(1, _CLOCK), number(2, 0))
    snapshot = message(6, boottime, own, number(2, _BOOTTIME))
    defaults = message(59, number(58, _CLOCK))
    return message(1, _CLEARED, defaults) + message(1, HEAD, snapshot)


class Tracks:
    """Track descriptors; `add` returns the uuid of a new track."""

    def __init__(self) -> None:
        self._packets: list[bytes] = []
        self._n = 0
        self._children: dict[int, int] = {}

    def add(self, name: str, parent: int = 0, *parts: bytes, about: str = "") -> int:
        """A track.

        parent : uuid, 0 for none
        parts : further encoded fields of its TrackDescriptor
        about : description
        """
        self._n += 1
        uuid = self._n
        rank = self._children[parent] = self._children.get(parent, -1) + 1
        fields = [number(1, uuid), text(2, name), number(11, _EXPLICIT), number(12, rank), *parts]
        fields.append(number(15, _NO_MERGE))
        if parent:
            fields.append(number(5, parent))
        if about:
            fields.append(text(14, about))
        self._packets.append(message(1, _SEQUENCE, message(60, *fields)))
        return uuid

    def packets(self) -> bytes:
        """The descriptors since the last call."""
        result = b"".join(self._packets)
        self._packets.clear()
        return result


class Interned:
    """Texts that events refer to by number, from 1."""

    def __init__(self) -> None:
        self._fields: dict[int, dict[str, int]] = {}
        self._written: dict[int, int] = {}

    def category(self, value: str) -> int:
        """The number of a category."""
        return self._number(1, value)

    def event(self, value: str) -> int:
        """The number of an event's name."""
        return self._number(2, value)

    def argument(self, value: str) -> int:
        """The number of an argument's name."""
        return self._number(3, value)

    def value(self, value: str) -> int:
        """The number of an argument's text."""
        return self._number(29, value)

    def _number(self, field: int, value: str) -> int:
        known = self._fields.setdefault(field, {})
        return known.setdefault(value, len(known) + 1)

    def packets(self) -> Iterator[bytes]:
        """The texts since the last call."""
        for field, known in self._fields.items():
            entries = [
                message(field, number(1, iid), text(2, value))
                for value, iid in islice(known.items(), self._written.get(field, 0), None)
            ]
            self._written[field] = len(known)
            for first in range(0, len(entries), _AT_ONCE):
                yield message(1, HEAD, message(12, *entries[first : first + _AT_ONCE]))

    def annotation(self, name: str, value: str | int) -> bytes:
        """An encoded argument of an event."""
        if isinstance(value, int):
            return message(4, number(1, self.argument(name)), number(4, value))
        return message(4, number(1, self.argument(name)), number(17, self.value(value)))

    def annotation_tags(self, name: str) -> tuple[bytes, bytes]:
        """Tags of an argument whose number follows: of the message, and inside of it."""
        return bytes_tag(4), number(1, self.argument(name)) + tag(4)
