"""Write rows to a file on two threads: both format blocks of rows and write them in row order."""

from __future__ import annotations

import io
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Protocol


class Block(Protocol):
    """A reusable buffer of formatted rows."""

    def fill(self, first: int, end: int) -> int:
        """Format rows from `first`, at most to `end - 1`; the next row."""

    def filled(self) -> memoryview:
        """The formatted rows, valid until the next `fill`."""


class RowWriter(Protocol):
    """Rows that blocks format: of `_core._rows` or `_core._packets`."""

    @property
    def n_rows(self) -> int: ...
    def block(self) -> Block: ...


def write_on_threads(
    rows: RowWriter, file: BinaryIO, first: int = 0, last: int | None = None
) -> None:
    """Write rows first to last - 1 (default: all) to a binary file, in constant memory.

    Raises
    ------
    OSError
        Writing failed: a closed pipe, a full disk.
    InternalError
        An id or offset of a column is out of bounds.
    """
    end = rows.n_rows if last is None else last
    block = rows.block()
    begin = block.fill(first, end)
    write_all(file, block.filled())
    if begin == end:
        return
    # Rows differ in length: with 3/4 of the rows of the first block, most others fit in one.
    writer = _OrderedWriter(file, begin, end, max(1, (begin - first) * 3 // 4))
    with ThreadPoolExecutor(1) as pool:
        try:
            other = pool.submit(writer.run, rows.block())
            writer.run(block)
        except BaseException:
            writer.stop()  # leaving the pool waits for the other thread
            raise
        other.result()


def write_all(file: BinaryIO, view: bytes | memoryview) -> None:
    """Write every byte of `view` to a binary file, with as many calls as it takes.

    Raises
    ------
    BlockingIOError
        The file is non-blocking and accepts no bytes now.
    """
    while len(view):
        written = file.write(view)
        if written is None:
            if isinstance(file, io.RawIOBase):
                raise BlockingIOError("the output accepts no bytes now; use a blocking file")
            return
        view = view[written:]


class _OrderedWriter:
    """Writes blocks of rows from several threads in the order of their numbers."""

    def __init__(self, file: BinaryIO, first: int, end: int, rows: int) -> None:
        self._file, self._first, self._end, self._rows = file, first, end, rows
        self._numbers = itertools.count()
        self._n_written = 0
        self._stopped = False
        self._changed = threading.Condition()

    def run(self, block: Block) -> None:
        """Fill and write blocks until all rows are written or another thread fails."""
        try:
            for number in self._numbers:
                first = self._first + number * self._rows
                if first >= self._end or not self._write(block, number, first):
                    return
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the work of both threads before their next blocks."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _write(self, block: Block, number: int, first: int) -> bool:
        """Fill and write one block; False if another thread failed."""
        end = min(first + self._rows, self._end)
        first = block.fill(first, end)
        with self._changed:
            self._changed.wait_for(lambda: self._n_written == number or self._stopped)
            if self._stopped:
                return False
        write_all(self._file, block.filled())
        while first < end:
            first = block.fill(first, end)
            write_all(self._file, block.filled())
        self._advance()
        return True

    def _advance(self) -> None:
        with self._changed:
            self._n_written += 1
            self._changed.notify_all()
