"""The text of a JSON file (.json or .json.gz) in blocks, and its way into a compiled scanner.

A second thread reads and inflates the next block while the scanner parses the current one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

from fastprof._system.memory import Expansion
from fastprof._system.threads import SecondThread
from fastprof.readers.sqlite.database import Progress

GZIP_MAGIC = b"\x1f\x8b"
BLOCK_SIZE = 1 << 20
COMPRESSED_SIZE = 1 << 16
MOST_INFLATED = 200  # bytes of text per byte of the file; real traces have up to 40
ALWAYS_INFLATED = 1 << 30  # bytes of text of any file
# Longer events are treated as damage.
LARGEST_EVENT = 1 << 28


class Reader(Protocol):
    """A scanner, such as `_core._kineto.KinetoReader`.

    Attributes
    ----------
    is_trace : bool
        False if the rest of the text cannot be read.
    is_whole : bool
        Whether the end of the JSON text has been read.
    """

    @property
    def is_trace(self) -> bool: ...

    @property
    def is_whole(self) -> bool: ...

    def feed(self, block: bytes) -> int:
        """Parse what is complete in a block; the number of bytes consumed."""


class TextBlocks:
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


def _read_ahead(blocks: TextBlocks) -> Iterator[bytes]:
    """Iterate on another thread, one block ahead of the consumer."""
    source = iter(blocks)
    with SecondThread() as thread:
        following = thread.submit(next, source, b"")
        while block := following.result():
            following = thread.submit(next, source, b"")
            yield block


def feed(
    reader: Reader, blocks: TextBlocks, progress: Progress | None = None, size: int = 0
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


def _fed(reader: Reader, waiting: list[bytes], trailing: _TrailingBytes) -> bytes:
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
