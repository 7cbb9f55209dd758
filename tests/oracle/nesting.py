"""The nesting of ranges."""

from bisect import bisect_right
from collections import Counter, defaultdict

from oracle.capture import Kernel, Range, Thread


def nest(ranges: list[Range]) -> None:
    """Set the parent of every range: the latest-started range of its thread that is still open.

    Of ranges with equal start, the longer is the parent; of equal ranges, the first in the file.
    """
    open_ranges: dict[Thread, list[Range]] = defaultdict(list)
    for range_ in sorted(ranges, key=lambda r: (r.start, -r.end)):
        stack = open_ranges[range_.thread]
        while stack and stack[-1].end <= range_.start and stack[-1].start < range_.start:
            stack.pop()
        while stack and stack[-1].end < range_.end and stack[-1].end <= range_.start:
            stack.pop()
        range_.parent = stack[-1] if stack else None
        if range_.parent:
            range_.parent.children.append(range_)
        stack.append(range_)


class Instants:
    """The innermost range of a thread at an instant."""

    def __init__(self, ranges: list[Range]) -> None:
        self._of_thread: dict[Thread, list[Range]] = defaultdict(list)
        for range_ in sorted(ranges, key=lambda r: (r.start, -r.end)):
            self._of_thread[range_.thread].append(range_)
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
    launched = Counter(kernel.thread for kernel in kernels if kernel.thread not in engine)
    for kernel in kernels:
        if kernel.thread in engine and kernel.launched is not None:
            others = [other for other in at.threads() if other[0] == kernel.thread[0]]
            caller = max((other for other in others if other not in engine), default=None,
                         key=lambda other: launched[other])  # fmt: skip
            kernel.waiting = at.innermost(caller, kernel.launched) if caller else None
