"""The events of a trace of torch.profiler (.json or .json.gz) as columns.

A second thread reads and inflates the next block while the compiled scanner parses the current one.
No Python objects are created per event.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy.typing as npt

from fastprof._core._kineto import NONE, TEXT_PLACE, KinetoReader
from fastprof._system.classes import dataclass
from fastprof._system.file_state import ChangeGuard
from fastprof._system.memory import Expansion
from fastprof._system.threads import SecondThread
from fastprof.errors import BadInputError
from fastprof.readers.sqlite.database import Progress

GZIP_MAGIC = b"\x1f\x8b"
BLOCK_SIZE = 1 << 20
COMPRESSED_SIZE = 1 << 16
MOST_INFLATED = 200  # bytes of text per byte of the file; real traces have up to 40
ALWAYS_INFLATED = 1 << 30  # bytes of text of any file
# Longer events are treated as damage.
LARGEST_EVENT = 1 << 28

_RECORD = "record one with torch.profiler.profile and export_chrome_trace"


@dataclass()
class KinetoFile:
    """The contents of one file.

    Attributes
    ----------
    tables : dict of dict of ndarray
        Columns by table and name, see `_core._kineto.COLUMNS`; rows in the order of the file.
        Times are ns. `name` and `value` index `names`, `label` `labels`, `stack` and `hierarchy`
        `stacks`, `category` `categories`, `annotation` `notes`: "key":value pairs. `kind` of GPU
        work is 0 for a kernel, 1 for a copy, 2 for a fill; `phase` of a flow is ord("s"), ord("t")
        or ord("f"). Missing values are -1, or
        NONE in start, duration, time, pid, tid, a flow's id, and an allocation's bytes.
    labels : list of str
        Of ranges: name, then after a "\\x1f" each Input Dims, Input type, Input Strides, Concrete
        Inputs, the pairs of a collective, the pairs of a Triton kernel, all but the name as in the
        JSON text, or empty. Split with `rsplit("\\x1f", 6)`.
    root : dict
        Top-level values other than the events, such as deviceProperties, by key.
    counts : dict
        Number of events by (ph, category); None if an event has no ph or category.
    lost_events, lost_bytes : int
        Malformed events that were skipped.
    text_bytes, unread_bytes : int
        Size of the JSON text, and of its unreadable end.
    is_whole : bool
        Whether the text includes the closing bracket.
    damage : str or None
        The error in the compressed data.
    """

    name: str
    tables: dict[str, dict[str, npt.NDArray[Any]]]
    names: list[str]
    labels: list[str]
    stacks: list[str]
    places: list[str]
    categories: list[str]
    notes: list[str]
    root: dict[str, Any]
    counts: dict[tuple[str | None, str | None], int]
    lost_events: int
    lost_bytes: int
    text_bytes: int
    unread_bytes: int
    is_whole: bool
    damage: str | None

    def place(self, number: int) -> int | str | None:
        """The pid or tid for the number in a column: a number, a text, or None."""
        if number == NONE:
            return None
        return self.places[TEXT_PLACE - number] if number <= TEXT_PLACE else number

    def warnings(self) -> list[str]:
        """Problems of the file, one sentence each."""
        result = []
        if self.damage:
            result.append(
                f"{self.name}: {self.damage}; {self.text_bytes} bytes of JSON text before that "
                f"were read, with {sum(self.counts.values())} events"
            )
        if not self.is_whole:
            start = self.text_bytes - self.unread_bytes
            result.append(
                f"{self.name}: the trace is cut off: its last {self.unread_bytes} bytes, from "
                f"byte {start} of the JSON text on, contain no complete event"
            )
        elif self.unread_bytes:
            result.append(f"{self.name}: {self.unread_bytes} bytes after the trace were not read")
        if self.lost_events:
            result.append(
                f"{self.name}: {self.lost_events} malformed events were skipped "
                f"({self.lost_bytes} bytes)"
            )
        return result


def read(
    source: str | os.PathLike[str] | BinaryIO, name: str, progress: Progress | None = None
) -> KinetoFile:
    """Read all events of a file or a pipe.

    Parameters
    ----------
    source : path or binary file
        JSON text, or gzip of it (also several members), detected by its first bytes.
    name : str
        Name of the input in messages.
    progress : function, optional
        Called repeatedly with what is read, the bytes read so far, and the size of the file.

    Returns
    -------
    KinetoFile
        For a truncated or damaged file: the complete events.

    Raises
    ------
    BadInputError
        It is not JSON text or gzip, or has no list of events.
    NotEnoughMemoryError
        It inflates to far more text than a trace of its size.

    Notes
    -----
    Time is linear in the size of the text. Memory: the columns, the distinct texts, a few blocks,
    and the largest event.
    """
    reader = KinetoReader(name)
    if isinstance(source, str | os.PathLike):
        with open(source, "rb", buffering=0) as file:
            guard = ChangeGuard(file.fileno(), name)
            blocks = _Blocks(file, name)
            text_bytes, unread_bytes = _feed(reader, blocks, progress, os.path.getsize(source))
            guard.check()
    else:
        blocks = _Blocks(source, name)
        text_bytes, unread_bytes = _feed(reader, blocks)
    root = _root(reader)
    _expect_trace(reader, blocks, root)
    lost_events, lost_bytes = reader.lost
    return KinetoFile(
        name=name,
        tables=reader.finish(),
        names=reader.texts("names"),
        labels=reader.texts("labels"),
        stacks=reader.texts("stacks"),
        places=reader.texts("places"),
        categories=reader.texts("categories"),
        notes=reader.texts("notes"),
        root=root,
        counts=reader.counts(),
        lost_events=lost_events,
        lost_bytes=lost_bytes,
        text_bytes=text_bytes,
        unread_bytes=unread_bytes,
        is_whole=reader.is_whole,
        damage=blocks.damage,
    )


class _Blocks:
    """The inflated text of a file in blocks; `head` is its start, `damage` an inflate error."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file = file
        self.expansion = Expansion(name, MOST_INFLATED, ALWAYS_INFLATED)
        self.n_read = 0  # bytes of the file
        self.head = b""
        self.damage: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        block = self.start_of_member(b"")
        blocks = self.inflated(block) if block.startswith(GZIP_MAGIC) else self.plain(block)
        for block in blocks:
            self.head = self.head or block[:40]
            yield block

    def start_of_member(self, block: bytes) -> bytes:
        """`block`, extended until it is long enough for the gzip magic."""
        while len(block) < len(GZIP_MAGIC) and (more := self._read(COMPRESSED_SIZE)):
            block += more
        return block

    def _read(self, size: int) -> bytes:
        block = self.file.read(size)
        self.n_read += len(block)
        return block

    def plain(self, block: bytes) -> Iterator[bytes]:
        while block:
            yield block
            block = self._read(BLOCK_SIZE)

    def inflated(self, block: bytes) -> Iterator[bytes]:
        """Inflate all gzip members. Other data after a member is padding."""
        inflater = zlib.decompressobj(wbits=31)
        try:
            while block:
                before = inflater.copy()
                try:
                    text = inflater.decompress(block, BLOCK_SIZE)
                except zlib.error:
                    yield from _before_damage(before, block)
                    raise
                self.expansion.add(len(text), self.n_read)
                if text:
                    yield text
                block = inflater.unconsumed_tail
                if inflater.eof:
                    block = self.start_of_member(inflater.unused_data)
                    if not block.startswith(GZIP_MAGIC):
                        return
                    inflater = zlib.decompressobj(wbits=31)
                elif not block:
                    block = self._read(COMPRESSED_SIZE)
            self.damage = "the compressed data is cut off"
            if text := inflater.flush():
                yield text
        except zlib.error as error:
            self.damage = f"the compressed data is damaged ({error})"


def _before_damage(inflater: Any, block: bytes) -> Iterator[bytes]:
    """The data of a damaged block up to the error, which zlib would discard."""
    text = bytearray()
    for i in range(len(block)):
        try:
            text += inflater.decompress(block[i : i + 1])
        except zlib.error:
            break
        if len(text) >= BLOCK_SIZE:
            yield bytes(text)
            text.clear()
    if text:
        yield bytes(text)


def _read_ahead(blocks: _Blocks) -> Iterator[bytes]:
    """Iterate on another thread, one block ahead of the consumer."""
    source = iter(blocks)
    with SecondThread() as thread:
        following = thread.submit(next, source, b"")
        while block := following.result():
            following = thread.submit(next, source, b"")
            yield block


def _feed(
    reader: KinetoReader, blocks: _Blocks, progress: Progress | None = None, size: int = 0
) -> tuple[int, int]:
    """Feed all blocks to the reader. Returns the size of the text and of its unread end.

    The unparsed end of a block is parsed again with the next block, once the text has doubled: long
    events are not rescanned for every block.
    """
    waiting: list[bytes] = []
    n_waiting = n_left = n_bytes = 0
    trailing = _TrailingBytes()
    for block in _read_ahead(blocks):
        n_bytes += len(block)
        if progress is not None:
            progress("bytes of the trace", blocks.n_read, size)
        if reader.is_whole:
            trailing.add(block)
            continue
        if not reader.is_trace or n_left > LARGEST_EVENT:
            n_left += len(block)
            continue
        waiting.append(block)
        n_waiting += len(block)
        if n_waiting < 2 * n_left:
            continue
        waiting = [_fed(reader, waiting, trailing)]
        n_waiting = n_left = len(waiting[0])
    if n_waiting > n_left:
        n_left = len(_fed(reader, waiting, trailing))
    return n_bytes, trailing.n_bytes if reader.is_whole else n_left


def _fed(reader: KinetoReader, waiting: list[bytes], trailing: _TrailingBytes) -> bytes:
    """Feed the waiting blocks. Returns the unparsed end."""
    text = b"".join(waiting)
    left = bytes(memoryview(text)[reader.feed(text) :])
    if not reader.is_whole:
        return left
    trailing.add(left)
    return b""


class _TrailingBytes:
    """Counts the bytes after the trace, without leading and trailing white space."""

    def __init__(self) -> None:
        self.n_bytes = self._n_blanks = 0

    def add(self, text: bytes) -> None:
        text = text if self.n_bytes else text.lstrip()
        if not text:
            return
        stripped = text.rstrip()
        if stripped:
            self.n_bytes += self._n_blanks + len(stripped)
            self._n_blanks = 0
        self._n_blanks += len(text) - len(stripped)


def _root(reader: KinetoReader) -> dict[str, Any]:
    """The top-level values other than the events. Values that Python cannot parse are skipped."""
    root: dict[str, Any] = {}
    for pair in reader.texts("root"):
        try:
            root |= json.loads(f"{{{pair}}}", strict=False)
        except (ValueError, RecursionError):
            continue
    return root


def _expect_trace(reader: KinetoReader, blocks: _Blocks, root: dict[str, Any]) -> None:
    """Raise BadInputError if there is no list of events."""
    if reader.has_events:
        return
    where = f"{reader.name}: expected a trace of torch.profiler"
    if blocks.damage and not blocks.head:
        raise BadInputError(f"{where}, but {blocks.damage} at its start; get the file again")
    if not blocks.head or not reader.is_trace:
        what = repr(blocks.head) if blocks.head else "no text"
        raise BadInputError(f"{where}, found {what}; {_RECORD}")
    if not reader.is_whole:
        raise BadInputError(f"{where}, but it is cut off or damaged before its traceEvents")
    keys = ", ".join(root) or "no keys"
    raise BadInputError(f"{where}, found JSON without traceEvents, with {keys}; {_RECORD}")
