"""The listeners of a program's ranges: none, a profiler, or an NVTX tool.

with listening("a tool takes ranges") as heard:
    torch.relu(x)
assert heard.texts() and heard.is_nested()
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import nvtx
import torch
import torch._dynamo  # the profiler does; here before the collected tests are frozen (conftest.py)
from torch.autograd import profiler

from fastprof._core import _ranges
from fastprof.annotate import text as channels

NOBODY, PROFILER, TOOL = "nobody listens", "the profiler records", "a tool takes ranges"
MODES = (NOBODY, PROFILER, TOOL)


class Heard:
    """No listener."""

    def texts(self) -> list[str]:
        """The texts of fastprof's ranges by start."""
        return []

    def is_nested(self) -> bool:
        """Whether all ranges have ended and nest."""
        return True


class Profiled(Heard):
    """Events of torch.profiler, which has no events for unfinished ranges."""

    def __init__(self) -> None:
        cpu = [torch.profiler.ProfilerActivity.CPU]
        self.profile = torch.profiler.profile(activities=cpu)

    def _events(self) -> list[Any]:
        # Some of torch's own ranges cross: those of a mode and of an optimizer's step.
        events = self.profile.profiler.kineto_results.events()
        events = [event for event in events if is_ours(event.name())]
        return sorted(events, key=lambda event: (_start(event), -_end(event)))

    def texts(self) -> list[str]:
        return [event.name() for event in self._events()]

    def is_nested(self) -> bool:
        open_ends: dict[int, list[int]] = {}
        for event in self._events():
            ends = open_ends.setdefault(event.start_thread_id(), [])
            start, end = _start(event), _end(event)
            while ends and ends[-1] <= start:
                ends.pop()
            if end < start or (ends and end > ends[-1] + _CLOCK):
                return False
            ends.append(end)
        return True


_CLOCK = 0 if hasattr(torch._C._autograd._KinetoEvent, "start_ns") else 1000  # ns; torch 2.3: 1 us


def _start(event: Any) -> int:
    return int(event.start_us()) * 1000 if _CLOCK else int(event.start_ns())


def _end(event: Any) -> int:
    return _start(event) + int(event.duration_us()) * 1000 if _CLOCK else int(event.end_ns())


class Tool(Heard):
    """Replaces the domain of the nvtx package, as if a tool were attached."""

    def __init__(self) -> None:
        self.pushed: list[str] = []
        self.open: list[str] = []
        self.lost = 0

    def get_event_attributes(self, message: str) -> str:
        return message

    def push_range(self, message: str) -> None:
        self.pushed.append(message)
        self.open.append(message)

    def pop_range(self) -> None:
        if self.open:
            self.open.pop()
        else:
            self.lost += 1

    def texts(self) -> list[str]:
        return list(self.pushed)

    def is_nested(self) -> bool:
        return not self.open and not self.lost


def is_ours(text: str) -> bool:
    return text.startswith(("{'traceMarker'", "{'mod'", "layer:"))


class Attached(Heard):
    """A real tool listens to the entire process; its recording is checked elsewhere."""

    def texts(self) -> list[str]:
        return ["what the tool recorded"]


@contextmanager
def listening(mode: str) -> Iterator[Heard]:
    """Context with a listener, or without."""
    channels.connect()
    if mode == PROFILER:
        heard = Profiled()
        with heard.profile:
            yield heard
    elif mode == TOOL and type(nvtx.get_domain()).__name__ != "DummyDomain":
        yield Attached()
    elif mode == TOOL:
        tool = Tool()
        channels_of_test = (
            *(vars(profiler), channels._is_recording),
            *(channels._recorder(), channels.recordable),
        )
        _ranges.connect(tool, *channels_of_test)
        try:
            yield tool
        finally:
            channels._connected = False
            channels.connect()
    else:
        yield Heard()
