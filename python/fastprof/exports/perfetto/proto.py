"""Protobuf: fields of a message as bytes, and the field numbers of Perfetto's schema.

Schema: protos/perfetto/trace/perfetto_trace.proto of the Perfetto repository.
"""

from __future__ import annotations

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
