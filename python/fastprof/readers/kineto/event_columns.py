"""The events of a trace of torch.profiler (.json or .json.gz) as columns.

A second thread reads and inflates the next block while the compiled scanner parses the current one.
No Python objects are created per event.
"""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO

import numpy.typing as npt

from fastprof._core._kineto import NONE, TEXT_PLACE, KinetoReader
from fastprof._system.classes import dataclass
from fastprof._system.file_state import ChangeGuard
from fastprof.errors import BadInputError
from fastprof.readers.json_text import TextBlocks, feed
from fastprof.readers.sqlite.database import Progress

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
            blocks = TextBlocks(file, name)
            text_bytes, unread_bytes = feed(reader, blocks, progress, os.path.getsize(source))
            guard.check()
    else:
        blocks = TextBlocks(source, name)
        text_bytes, unread_bytes = feed(reader, blocks)
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


def _root(reader: KinetoReader) -> dict[str, Any]:
    """The top-level values other than the events. Values that Python cannot parse are skipped."""
    root: dict[str, Any] = {}
    for pair in reader.texts("root"):
        try:
            root |= json.loads(f"{{{pair}}}", strict=False)
        except (ValueError, RecursionError):
            continue
    return root


def _expect_trace(reader: KinetoReader, blocks: TextBlocks, root: dict[str, Any]) -> None:
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
