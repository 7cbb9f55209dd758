"""The nesting of ranges."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from oracle.capture import Range, Thread


def nest(ranges: list[Range]) -> None:
    """Set the parent of every range: the latest-started range of its thread that is still open.

    Of ranges with equal start, the longer is the parent; of equal ranges, the first in the file.
    """
    open_ranges: dict[Thread, list[Range]] = defaultdict(list)
    for each in sorted(ranges, key=lambda r: (r.start, -r.end)):
        stack = open_ranges[each.thread]
        while stack and stack[-1].end <= each.start and stack[-1].start < each.start:
            stack.pop()
        while stack and stack[-1].end < each.end and stack[-1].end <= each.start:
            stack.pop()
        each.parent = stack[-1] if stack else None
        if each.parent:
            each.parent.children.append(each)
        stack.append(each)


class Instants:
    """The innermost range of a thread at an instant."""

    def __init__(self, ranges: list[Range]) -> None:
        self._of_thread: dict[Thread, list[Range]] = defaultdict(list)
        for each in sorted(ranges, key=lambda r: (r.start, -r.end)):
            self._of_thread[each.thread].append(each)
        self._starts = {
            thread: [each.start for each in found] for thread, found in self._of_thread.items()
        }

    def threads(self) -> list[Thread]:
        return list(self._of_thread)

    def innermost(self, thread: Thread, instant: int) -> Range | None:
        """The latest-started range that is open at the instant."""
        place = bisect_right(self._starts.get(thread, []), instant)
        each = self._of_thread[thread][place - 1] if place else None
        while each is not None and each.end < instant:
            each = each.parent
        return each
