"""Rows to a file: two threads fill blocks with them at the same time, and write them in turn."""

from __future__ import annotations

import io
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from fastprof._core._rows import Block, RowWriter


def write(rows: RowWriter, file: BinaryIO, first: int = 0, last: int | None = None) -> None:
    """Write rows first to last - 1 (default: all) to a binary file; memory does not grow.

    Raises
    ------
    OSError
        What the file raises: a closed pipe, a full disk.
    InternalError
        An id or offset of a column points outside its table.
    """
    end = rows.n_rows if last is None else last
    block = rows.block()
    begin = block.fill(first, end)
    write_all(file, block.filled())
    if begin == end:
        return
    # Rows differ in length: most blocks of so many have room for the longer ones.
    turns = _Turns(file, begin, end, max(1, (begin - first) * 3 // 4))
    with ThreadPoolExecutor(1) as pool:
        try:
            other = pool.submit(turns.work, rows.block())
            turns.work(block)
        except BaseException:
            turns.stop()  # leaving the pool waits for the other thread
            raise
        other.result()


def write_all(file: BinaryIO, view: bytes | memoryview) -> None:
    """Write every byte of `view` to a binary file, also to one that takes only part at a time."""
    while len(view):
        written = file.write(view)
        if written is None:
            if isinstance(file, io.RawIOBase):
                raise BlockingIOError("the output does not take more bytes now")
            return
        view = view[written:]


class _Turns:
    """Whose turn it is to write: blocks have so many rows each, and a number in their order."""

    def __init__(self, file: BinaryIO, first: int, end: int, rows: int) -> None:
        self._file, self._first, self._end, self._rows = file, first, end, rows
        self._numbers = itertools.count()
        self._n_written = 0
        self._stopped = False
        self._changed = threading.Condition()

    def work(self, block: Block) -> None:
        """Fill and write blocks until there are no more, or another thread failed."""
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
        """Whether a block could be written."""
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
        self._pass_on()
        return True

    def _pass_on(self) -> None:
        with self._changed:
            self._n_written += 1
            self._changed.notify_all()
