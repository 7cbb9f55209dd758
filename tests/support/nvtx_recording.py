"""Ranges with parents and children from the NVTX events of an export, by SQL alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

_RANGES = {59: "push_pop", 60: "start_end"}
_MARK, _CATEGORY, _DOMAIN = 34, 33, 75
_QUERY = """
    SELECT eventType, start, end, coalesce(text, value), textId, globalTid, endGlobalTid, domainId,
        rangeId, category, color, coalesce(
            uint64Value, int64Value, doubleValue, uint32Value, int32Value, floatValue)
    FROM NVTX_EVENTS LEFT JOIN StringIds ON StringIds.id = textId
    ORDER BY NVTX_EVENTS.rowid
"""


@dataclass(eq=False)
class Range:
    """A range, or a mark, whose `end` is None.

    `parent` is the latest-started range of the thread, of any domain, that is open at this one's
    start; `depth` is the number of open ones. Ranges that end on another thread have neither.
    """

    text: str | None
    start: int
    end: int | None  # ns; None if never closed
    process: int
    thread: int
    kind: str  # push_pop, start_end or mark
    domain: str | None  # None for the default one
    category: str | int | None  # its name, if it has one
    color: int | None
    payload: float | None
    registered: bool
    end_thread: int | None  # of a closed start/end range
    range_id: int | None
    parent: Range | None = field(default=None, repr=False)
    children: list[Range] = field(default_factory=list, repr=False)
    depth: int = 0

    @property
    def moved(self) -> bool:
        """Whether it ended on another thread."""
        return self.end_thread not in (None, self.thread)

    def tree(self) -> Any:
        """Its text, or (text, trees of its children) if it has any."""
        return (
            (self.text, [child.tree() for child in self.children]) if self.children else self.text
        )


@dataclass(eq=False)
class Recording:
    """The NVTX calls of a program.

    Parameters
    ----------
    path : Path
        The export: an SQLite file as Nsight Systems makes them.
    stdout, stderr : str
        The output of the program.
    stray : int
        Number of pops and ends without a matching range, including those of a forked child that
        closes a range of its parent.
    kept : object, optional
        An object to keep alive with the file.
    """

    path: Path
    stdout: str = ""
    stderr: str = ""
    stray: int = 0
    kept: Any = field(default=None, repr=False)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of NVTX_EVENTS in file order, which is by start."""
        return [dict(row) for row in self._select("SELECT * FROM NVTX_EVENTS ORDER BY rowid")]

    @cached_property
    def ranges(self) -> list[Range]:
        """All ranges, by start."""
        _events = [event for event in self._events if event.kind != "mark"]
        _nest(event for event in _events if not event.moved)
        return _events

    @cached_property
    def marks(self) -> list[Range]:
        """All marks, by time."""
        return [event for event in self._events if event.kind == "mark"]

    @property
    def open_ranges(self) -> list[Range]:
        """The ranges that were never closed."""
        return [range_ for range_ in self.ranges if range_.end is None]

    @property
    def forest(self) -> dict[tuple[int, int], list[Range]]:
        """(process, thread) -> its outermost ranges, without those that end on another thread."""
        result: dict[tuple[int, int], list[Range]] = {}
        for range_ in self.ranges:
            if range_.parent is None and not range_.moved:
                result.setdefault((range_.process, range_.thread), []).append(range_)
        return result

    def trees(self) -> list[Any]:
        """The same as `Range.tree`s, all threads in order of their first range."""
        return [root.tree() for roots in self.forest.values() for root in roots]

    def texts(self, thread: int | None = None) -> list[str | None]:
        """The texts of the ranges by start, of one thread or of all."""
        return [range_.text for range_ in self.ranges if thread in (None, range_.thread)]

    def one(self, text: str) -> Range:
        """The only range of this text."""
        (result,) = [range_ for range_ in self.ranges if range_.text == text]
        return result

    @cached_property
    def domains(self) -> dict[int, str]:
        """The numbers and names of the created domains."""
        return {row["domainId"]: row["text"] for row in self.rows if row["eventType"] == _DOMAIN}

    @cached_property
    def _events(self) -> list[Range]:
        categories = {
            (row["domainId"], row["category"]): row["text"]
            for row in self.rows
            if row["eventType"] == _CATEGORY
        }
        result = []
        for row in self._select(_QUERY):
            kind, start, end, text, text_id, tid, end_tid, domain, number, *others = row
            category, color, payload = others
            if kind in _RANGES or kind == _MARK:
                result.append(
                    Range(
                        text=text,
                        start=start,
                        end=end,
                        process=tid >> 24 & 0xFFFFFF,
                        thread=tid & 0xFFFFFF,
                        kind=_RANGES.get(kind, "mark"),
                        domain=self.domains.get(domain),
                        category=categories.get((domain, category), category),
                        color=color,
                        payload=payload,
                        registered=text_id is not None,
                        end_thread=None if end_tid is None else end_tid & 0xFFFFFF,
                        range_id=number,
                    )
                )
        return result

    def _select(self, sql: str) -> list[sqlite3.Row]:
        with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(sql).fetchall()


def _nest(ranges: Iterable[Range]) -> None:
    """Set the parents, children and depths of ranges, which are sorted by start."""
    open_ranges: dict[tuple[int, int], list[Range]] = {}
    for range_ in ranges:
        thread = range_.process, range_.thread
        around = [
            other
            for other in open_ranges.get(thread, ())
            if other.end is None or other.end > range_.start
        ]
        range_.depth = len(around)
        if around:
            range_.parent = around[-1]
            around[-1].children.append(range_)
        open_ranges[thread] = [*around, range_]
