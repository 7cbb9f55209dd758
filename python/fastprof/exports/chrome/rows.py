"""Events as rows of JSON text: parts that few events differ in, and numbers."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._rows import RowWriter
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NEVER

_THOUSANDTHS: Final = [f".{i:03d}".encode() for i in range(1000)]


def quoted(value: Any) -> str:
    """A value as JSON in ASCII; lone surrogates, which are no characters, become `?`."""
    text = json.dumps(value, separators=(",", ":"))
    if "\\ud" not in text:
        return text
    return json.dumps(_replaced(value), separators=(",", ":"))


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_replaced(each) for each in value]
    if isinstance(value, dict):
        return {_replaced(key): _replaced(each) for key, each in value.items()}
    return value


class EventRows:
    """Rows of events, each `{` texts and numbers `},`. Add the parts from left to right."""

    def __init__(self, n: int, origin: int) -> None:
        """Make rows.

        n : number of events
        origin : subtracted from times, ns
        """
        self.writer = RowWriter(n, b"},\n")
        self._n, self._origin = n, origin
        self._before = b"{"

    def texts(self, ids: Int32, texts: list[str]) -> None:
        """Add a text per event; ids: int32 [n], -1 for none."""
        encoded = [text.encode() for text in texts]
        self.writer.add_texts(self.taken(), ids, encoded, none_text=b"")

    def plain(self, text: str) -> None:
        """Add the same text to all events."""
        self._before += text.encode()

    def number(self, key: str, values: npt.NDArray[Any], none: int = -1) -> None:
        """Add `,"key":number`, nothing where the number is `none`; values: [n]."""
        values = np.ascontiguousarray(values)
        ids = np.where(values == none, np.int32(-1), np.int32(0))
        self.writer.add_texts(self.taken(), ids, [f',"{key}":'.encode()], none_text=b"")
        self.writer.add_ints(b"", values, none=none, none_text=b"")

    def time(self, time: Int64) -> None:
        """Add `,"ts":` in us, exact to the ns; time: int64 [n]."""
        self.plain(',"ts":')
        self._microseconds(time - self._origin, np.zeros(self._n, bool))

    def duration(self, start: Int64, end: Int64, unknown: npt.NDArray[np.bool_]) -> None:
        """Add `,"dur":` in us, nothing where it is unknown."""
        unknown = unknown | (end == NEVER)
        duration = np.where(unknown, 0, np.maximum(end, start) - start)
        ids = np.where(unknown, np.int32(-1), np.int32(0))
        self.writer.add_texts(self.taken(), ids, [b',"dur":'], none_text=b"")
        self._microseconds(duration, unknown)

    def _microseconds(self, nanoseconds: Int64, unknown: npt.NDArray[np.bool_]) -> None:
        whole = nanoseconds // 1000
        rest = (nanoseconds - whole * 1000).astype(np.int32)
        self.writer.add_ints(self.taken(), np.where(unknown, -1, whole), none=-1, none_text=b"")
        self.writer.add_texts(
            b"", np.where(unknown, np.int32(-1), rest), _THOUSANDTHS, none_text=b""
        )

    def done(self) -> RowWriter:
        """The writer; ends all rows with the plain text added last."""
        if self._before:
            ids = np.zeros(self._n, np.int32)
            self.writer.add_texts(b"", ids, [self.taken()], none_text=b"")
        return self.writer

    def taken(self) -> bytes:
        """The plain text added last, to write before the next part."""
        before, self._before = self._before, b""
        return before
