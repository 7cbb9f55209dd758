"""A trace of torch.profiler (.json or .json.gz) -> its events as columns, and what was lost of it.

Bytes are read, and inflated where they are compressed, on a second thread while the compiled
scanner takes in those before them. No Python object is made for an event.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy.typing as npt

from fastprof._core._kineto import NONE, TEXT_PLACE, KinetoReader
from fastprof.errors import BadInputError
from fastprof.readers.sqlite.database import Progress
from fastprof.readers.unchanged import Unchanged

GZIP_MAGIC = b"\x1f\x8b"
BLOCK_SIZE = 1 << 20
COMPRESSED_SIZE = 1 << 16
# Text that does not come to the end of an event within so many bytes is given up.
LARGEST_EVENT = 1 << 28

_RECORD = "record one with torch.profiler.profile and export_chrome_trace"


@dataclass
class KinetoFile:
    """What one file holds.

    Attributes
    ----------
    tables : dict of dict of ndarray
        Columns by table and name, see `_core._kineto.COLUMNS`; rows as they stand in the file.
        Times are ns. `name` and `value` index `names`, `label` `labels`, `stack` and `hierarchy`
        `stacks`, `category` `categories`. `kind` of GPU work is 0 for a kernel, 1 for a copy, 2
        for a fill; `phase` of a flow is ord("s"), ord("t") or ord("f"). What is missing is -1, or
        NONE in start, duration, time, pid, tid, a flow's id, and an allocation's bytes.
    labels : list of str
        Of ranges: name, then after a "\\x1f" each Input Dims, Input type, Input Strides, Concrete
        Inputs, the pairs of a collective, the pairs of a Triton kernel, all but the name as in the
        JSON text, or empty. Split with `rsplit("\\x1f", 6)`.
    root : dict
        What stands beside the events, such as deviceProperties, by key.
    counts : dict
        Number of events by (ph, category), either None where an event had none.
    lost_events, lost_bytes : int
        Malformed places that were left out.
    text_bytes, unread_bytes : int
        Size of the JSON text, and how much at its end could not be read.
    is_whole : bool
        Whether the text goes on to its last bracket.
    damage : str or None
        What is wrong with the compressed data.
    """

    name: str
    tables: dict[str, dict[str, npt.NDArray[Any]]]
    names: list[str]
    labels: list[str]
    stacks: list[str]
    places: list[str]
    categories: list[str]
    root: dict[str, Any]
    counts: dict[tuple[str | None, str | None], int]
    lost_events: int
    lost_bytes: int
    text_bytes: int
    unread_bytes: int
    is_whole: bool
    damage: str | None

    def place(self, number: int) -> int | str | None:
        """The pid or tid that a column says: a number, a text, or nothing."""
        if number == NONE:
            return None
        return self.places[TEXT_PLACE - number] if number <= TEXT_PLACE else number

    def warnings(self) -> list[str]:
        """What is not as it should be, one sentence each."""
        found = []
        if self.damage:
            found.append(f"{self.name}: {self.damage}; what came before that was read")
        if not self.is_whole:
            start = self.text_bytes - self.unread_bytes
            found.append(
                f"{self.name}: the trace is cut off: its last {self.unread_bytes} bytes, from "
                f"byte {start} of the JSON text on, hold no whole event"
            )
        elif self.unread_bytes:
            found.append(f"{self.name}: {self.unread_bytes} bytes behind the trace were not read")
        if self.lost_events:
            found.append(
                f"{self.name}: {self.lost_events} malformed events were left out "
                f"({self.lost_bytes} bytes)"
            )
        return found


def read(
    source: str | os.PathLike[str] | BinaryIO, name: str, progress: Progress | None = None
) -> KinetoFile:
    """Read all events of a file or a pipe.

    Parameters
    ----------
    source : path or binary file
        JSON text, or gzip of it (also several members), known by its first bytes.
    name : str
        What the input is called in messages.
    progress : function, optional
        Called now and then with what is read, how many bytes of the file so far, and its size.

    Returns
    -------
    KinetoFile
        Also of a file that is cut off or damaged somewhere: the events that are whole.

    Raises
    ------
    BadInputError
        It is no JSON text, or one without a list of events, or not gzip.

    Notes
    -----
    Linear in the size of the text. Memory holds the columns, the distinct texts, a few blocks, and
    the largest event.
    """
    reader = KinetoReader(name)
    if isinstance(source, str | os.PathLike):
        with open(source, "rb", buffering=0) as file:
            unchanged = Unchanged(file.fileno(), name)
            blocks = _Blocks(file)
            text_bytes, unread_bytes = _feed(reader, blocks, progress, os.path.getsize(source))
            unchanged.check()
    else:
        blocks = _Blocks(source)
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
    """The text of a file in blocks; `head` is how it starts, `damage` what ended it too early."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
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
        """`block`, with what follows it where it is too short to tell what it is."""
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
        """What follows a member and is no other member is padding."""
        inflater = zlib.decompressobj(wbits=31)
        try:
            while block:
                before = inflater.copy()
                try:
                    text = inflater.decompress(block, BLOCK_SIZE)
                except zlib.error:
                    yield from _before_damage(before, block)
                    raise
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
    """What a block that is damaged somewhere holds up to there: an error takes it all away."""
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
    """The same blocks, each made on another thread while the one before it is worked on."""
    source = iter(blocks)
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, source, b"")
        while block := following.result():
            following = thread.submit(next, source, b"")
            yield block


def _feed(
    reader: KinetoReader, blocks: _Blocks, progress: Progress | None = None, size: int = 0
) -> tuple[int, int]:
    """Give the reader all blocks; returns the size of the text, and how much was not read of it.

    What is left of a block goes in front of the next. If there is much of it, that waits until it
    has doubled, so that a long event is not looked at over and over.
    """
    waiting: list[bytes] = []
    n_waiting = n_left = n_bytes = 0
    behind = _Behind()
    for block in _read_ahead(blocks):
        n_bytes += len(block)
        if progress is not None:
            progress("bytes of the trace", blocks.n_read, size)
        if reader.is_whole:
            behind.add(block)
            continue
        if not reader.is_trace or n_left > LARGEST_EVENT:
            n_left += len(block)
            continue
        waiting.append(block)
        n_waiting += len(block)
        if n_waiting < 2 * n_left:
            continue
        waiting = [_fed(reader, waiting, behind)]
        n_waiting = n_left = len(waiting[0])
    if n_waiting > n_left:
        n_left = len(_fed(reader, waiting, behind))
    return n_bytes, behind.n_bytes if reader.is_whole else n_left


def _fed(reader: KinetoReader, waiting: list[bytes], behind: _Behind) -> bytes:
    """Feed what has been waiting, and return what is left of it for the next time."""
    text = b"".join(waiting)
    left = bytes(memoryview(text)[reader.feed(text) :])
    if not reader.is_whole:
        return left
    behind.add(left)
    return b""


class _Behind:
    """Counts the bytes behind the trace, but for blanks in front of them and at their end."""

    def __init__(self) -> None:
        self.n_bytes = self._n_blanks = 0

    def add(self, text: bytes) -> None:
        text = text if self.n_bytes else text.lstrip()
        if not text:
            return
        told = text.rstrip()
        if told:
            self.n_bytes += self._n_blanks + len(told)
            self._n_blanks = 0
        self._n_blanks += len(text) - len(told)


def _root(reader: KinetoReader) -> dict[str, Any]:
    """The values beside the events; one that Python cannot read is left out."""
    root: dict[str, Any] = {}
    for pair in reader.texts("root"):
        try:
            root |= json.loads(f"{{{pair}}}", strict=False)
        except (ValueError, RecursionError):
            continue
    return root


def _expect_trace(reader: KinetoReader, blocks: _Blocks, root: dict[str, Any]) -> None:
    """Raise where there is no list of events."""
    if reader.has_events:
        return
    where = f"{reader.name}: expected a trace of torch.profiler"
    if blocks.damage and not blocks.head:
        raise BadInputError(f"{where}, but {blocks.damage} at its start; get the file again")
    if not blocks.head or not reader.is_trace:
        raise BadInputError(f"{where}, found {blocks.head!r}; {_RECORD}")
    if not reader.is_whole:
        raise BadInputError(f"{where}, but it is cut off or damaged before its traceEvents")
    keys = ", ".join(root) or "no keys"
    raise BadInputError(f"{where}, found JSON without traceEvents, with {keys}; {_RECORD}")
