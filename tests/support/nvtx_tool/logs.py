"""Read the logs of a run as NVTX calls by process; log.h defines the format."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

MAGIC = b"NVTXLOG1"
HEAD_SIZE = 4096
_HEAD = struct.Struct("<8sII48s1024s")
_CHUNK = struct.Struct("<QII")
_RECORD = struct.Struct("<IBBBBqQ8sIIII")
_PLAIN, _REGISTERED = 1, 2

# The column of each payload type, and its format in the eight bytes.
_PAYLOADS = {
    1: ("uint64Value", "<Q"),
    2: ("int64Value", "<q"),
    3: ("doubleValue", "<d"),
    4: ("uint32Value", "<I"),
    5: ("int32Value", "<i"),
    6: ("floatValue", "<f"),
}


class Kind(IntEnum):
    """The kind of a call."""

    PUSH = 1
    POP = 2
    START = 3
    END = 4
    MARK = 5
    STRING = 6
    DOMAIN = 7
    DOMAIN_END = 8
    CATEGORY = 9
    THREAD = 10


@dataclass(slots=True)
class Call:
    """One call.

    `number` identifies the start/end range, the registered string, or the named thread. `domain`
    and `string` are numbers in the process (see Log), 0 for the default domain and for no
    registered text.
    """

    kind: Kind
    time: int
    tid: int
    number: int
    domain: int
    category: int
    color: int | None
    text: str | None
    string: int
    payload: dict[str, float]


@dataclass
class Log:
    """The records of one process. `lost` is the number of records dropped for lack of room."""

    pid: int
    program: str
    lost: int
    parent_name: str
    calls: list[Call]  # in order of time
    parent: Log | None = None  # the process that forked this one, if it has records
    strings: dict[int, str] = field(default_factory=dict)
    domains: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for call in self.calls:
            if call.kind == Kind.STRING:
                self.strings[call.number] = call.text or ""
            elif call.kind == Kind.DOMAIN:
                self.domains[call.domain] = call.text or ""

    def string(self, number: int) -> str:
        """A registered text, possibly registered before the process was forked."""
        if number in self.strings:
            return self.strings[number]
        return self.parent.string(number) if self.parent else ""

    def maker(self, domain: int) -> Log | None:
        """The process that created a domain; None for the default domain."""
        if domain in self.domains:
            return self
        return self.parent.maker(domain) if self.parent else None


def read(prefix: Path) -> list[Log]:
    """The logs with this prefix, by process.

    A process killed while creating its file has no log.
    """
    contents = {
        path.name.removeprefix(f"{prefix.name}."): path.read_bytes()
        for path in sorted(prefix.parent.glob(f"{prefix.name}.*"))
    }
    result = {
        name: _log(content) for name, content in contents.items() if content.startswith(MAGIC)
    }
    for log in result.values():
        log.parent = result.get(log.parent_name)
    return list(result.values())


def _log(content: bytes) -> Log:
    _, pid, lost, parent, program = _HEAD.unpack_from(content)
    calls = sorted(_calls(content), key=lambda call: call.time)
    program, parent = (text.partition(b"\0")[0] for text in (program, parent))
    return Log(pid, _text(program), lost, _text(parent), calls)


def _calls(content: bytes) -> Iterator[Call]:
    chunk = HEAD_SIZE
    while chunk < len(content):
        size, tid, _ = _CHUNK.unpack_from(content, chunk)
        if size == 0:
            return
        at, end = chunk + _CHUNK.size, chunk + size
        while end - at >= _RECORD.size:
            row = _RECORD.unpack_from(content, at)
            if row[0] == 0:
                break
            yield _call(row, tid, content[at + _RECORD.size : at + row[0]])
            at += row[0]
        chunk = end


def _call(row: tuple, tid: int, behind: bytes) -> Call:
    _, kind, text_kind, payload_kind, has_color, time, number, payload, *rest = row
    domain, category, color, text = rest
    column, form = _PAYLOADS.get(payload_kind, ("", ""))
    return Call(
        kind=Kind(kind),
        time=time,
        tid=tid,
        number=number,
        domain=domain,
        category=category,
        color=color if has_color else None,
        text=_text(behind[:text]) if text_kind == _PLAIN else None,
        string=text if text_kind == _REGISTERED else 0,
        payload={column: struct.unpack_from(form, payload)[0]} if column else {},
    )


def _text(text: bytes) -> str:
    return text.decode(errors="replace")
