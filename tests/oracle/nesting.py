"""The nesting of ranges."""

from bisect import bisect_right
from collections import Counter, defaultdict

from oracle.capture import Kernel, Range, Thread


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


def tell_waiting(kernels: list[Kernel], engine: set[Thread], at: Instants) -> None:
    """Set `waiting` of the kernels of autograd's threads: of the thread of the process with ranges
    that launches most of the others."""
    launched = Counter(each.thread for each in kernels if each.thread not in engine)
    for each in kernels:
        if each.thread in engine and each.launched is not None:
            others = [other for other in at.threads() if other[0] == each.thread[0]]
            caller = max((other for other in others if other not in engine), default=None,
                         key=lambda other: launched[other])  # fmt: skip
            each.waiting = at.innermost(caller, each.launched) if caller else None
