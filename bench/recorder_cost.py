"""What torch.profiler costs the host per event; run with `python -m bench.recorder_cost`.

Loops of one short call run with and without the profiler, in turns. The time is that of the thread
(CLOCK_THREAD_CPUTIME_ID), so that other programs on the machine count little. A row is the
difference in us per event: between the least times, and between the medians. The last rows are
those of a training step of a small model, over all its events: there, caches are colder.
"""

from __future__ import annotations

import contextlib
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

CALLS, REPEAT = 2000, 25
_ONE, _OTHER = torch.zeros(4), torch.zeros(4)


def _function(value: int) -> int:
    return value


def _operators() -> None:
    for _ in range(CALLS):
        _ONE.add_(_OTHER)


def _allocations() -> None:
    for _ in range(CALLS):
        torch.empty(4)


def _annotations() -> None:
    for _ in range(CALLS):
        with record_function("x"):
            pass


def _python() -> None:
    for _ in range(CALLS):
        _function(1)


def _builtin() -> None:
    for _ in range(CALLS):
        len("")


_NET = torch.nn.Sequential(
    *(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()) for _ in range(40))
)
_OPTIMIZER = torch.optim.SGD(_NET.parameters(), lr=1e-3)
_BATCH = torch.zeros(4, 8)


def _training() -> None:
    with torch.enable_grad():
        for _ in range(5):
            _NET(_BATCH).sum().backward()
            _OPTIMIZER.step()
            _OPTIMIZER.zero_grad()


Options = dict[str, Any] | None

# Name, loop, options of the profiler, and options of the run to compare with; None for no profiler.
COSTS: tuple[tuple[str, Callable[[], None], Options, Options], ...] = (
    ("operator", _operators, {}, None),
    ("its shapes", _operators, {"record_shapes": True}, {}),
    ("its stack", _operators, {"with_stack": True}, {}),
    ("allocation", _allocations, {"profile_memory": True}, {}),
    ("annotation", _annotations, {}, None),
    ("Python function", _python, {"with_stack": True}, None),
    ("built-in function", _builtin, {"with_stack": True}, None),
    ("training", _training, {}, None),
    ("with shapes", _training, {"record_shapes": True}, None),
    ("with stacks", _training, {"record_shapes": True, "with_stack": True}, None),
)


def _measured(loop: Callable[[], None], options: Options) -> tuple[float, int]:
    """Seconds of a loop, and its events, or calls if nothing is recorded."""
    recording: Any = contextlib.nullcontext()
    if options is not None:
        recording = profile(activities=[ProfilerActivity.CPU], **options)
    with recording:
        loop()  # the first calls of a kind take longer
        begin = time.thread_time()
        loop()
        seconds = time.thread_time() - begin
    if options is None or loop is not _training:
        return seconds, CALLS
    events = recording.profiler.kineto_results.experimental_event_tree()
    return seconds, sum(1 for _ in _descendants(events)) // 2


def _descendants(events: Any) -> Iterator[Any]:
    stack = list(events)
    while stack:
        event = stack.pop()
        yield event
        stack += event.children


def costs() -> dict[str, tuple[float, float]]:
    """By name, the us per event: between the least times, and between the medians."""
    torch.set_num_threads(1)
    cases = {(loop, str(options)): options for _, loop, *both in COSTS for options in both}
    seconds: dict[Any, list[float]] = {case: [] for case in cases}
    events = {}
    with torch.no_grad():
        for _ in range(REPEAT):
            for case, options in cases.items():
                spent, events[case] = _measured(case[0], options)
                seconds[case].append(spent)
    result = {}
    for name, loop, options, other in COSTS:
        own, base = (loop, str(options)), (loop, str(other))
        least, middle = (
            (choose(seconds[own]) - choose(seconds[base])) / events[own] * 1e6
            for choose in (min, statistics.median)
        )
        result[name] = (least, middle)
    return result


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else ()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def main() -> None:
    """Print the table."""
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {_processor()}")
    print("us per event       least  median")
    for name, (least, middle) in costs().items():
        print(f"{name:18} {least:5.2f}  {middle:6.2f}")


if __name__ == "__main__":
    main()
