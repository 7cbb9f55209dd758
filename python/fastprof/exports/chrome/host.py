"""Events of the host: operators, annotations, API calls, allocations, names of threads.

Range names and the arguments of operators as torch.profiler writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from fastprof._core._rows import RowWriter
from fastprof.exports.chrome.rows import EventRows, quoted
from fastprof.model.arrays import Int32, Int64
from fastprof.model.call import UNKNOWN, Tensor
from fastprof.model.markers import Kind, Meaning
from fastprof.model.metadata import MANAGED
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import Threads
from fastprof.profile.steps.kernel_steps import StepsOfKernels

# Of a function of the runtime in Nsight Systems; tools look for torch.profiler's cudaLaunchKernel.
_VERSION: Final = re.compile(r"_v\d{4,}\Z")


def thread_places(threads: Threads) -> list[str]:
    """The pid and tid of each thread, and of an unknown one at the end."""
    pairs = enumerate(zip(threads.pid.tolist(), threads.tid.tolist(), strict=True))
    # Threads without a number remain distinct.
    found = [
        f'"pid":{pid},"tid":{tid if tid >= 0 else quoted(f"thread {i}")}' for i, (pid, tid) in pairs
    ]
    return [*found, '"pid":-1,"tid":-1']


def range_rows(profile: ProfileData, chosen: Int64, origin: int) -> RowWriter:
    """The events of ranges.

    chosen : rows of `profile.ranges`
    """
    ranges = profile.ranges
    seq = ranges.seq[chosen]
    rows = EventRows(len(chosen), origin)
    beginnings = [beginning_of(meaning, of_events=ranges.of_events) for meaning in ranges.meanings]
    rows.texts(ranges.label[chosen], beginnings)
    rows.number("External id", chosen + 1)
    rows.number("Sequence number", seq)
    rows.plain("},")
    rows.texts(place_of(ranges.thread[chosen], ranges.threads), thread_places(ranges.threads))
    rows.time(ranges.start[chosen])
    rows.duration(ranges.start[chosen], ranges.end[chosen], np.zeros(len(chosen), bool))
    return rows.done()


def place_of(thread: Int32, threads: Threads) -> Int32:
    """The index of each thread in `thread_places`; thread: index into `threads`, -1 if unknown."""
    return np.where(thread < 0, len(threads.tid), thread).astype(np.int32)


def api_rows(profile: ProfileData, chosen: Int64, correlation: Int64, origin: int) -> RowWriter:
    """The events of API calls.

    chosen : rows of `profile.api`
    correlation : int64 [API calls]
    """
    api = profile.api
    rows = EventRows(len(chosen), origin)
    beginnings = [
        f'"ph":"X","cat":"{_category(name)}","name":{quoted(name)},"args":{{"cbid":0'
        for name in (_VERSION.sub("", str(each)) for each in api.name.values)
    ]
    rows.texts(api.name.ids[chosen], beginnings)
    rows.number("correlation", correlation[chosen])
    rows.plain("},")
    rows.texts(place_of(api.thread[chosen], api.threads), thread_places(api.threads))
    rows.time(api.start[chosen])
    rows.duration(api.start[chosen], api.end[chosen], np.zeros(len(chosen), bool))
    return rows.done()


def _category(name: str) -> str:
    is_driver = name.startswith("cu") and not name.startswith("cuda")
    return "cuda_driver" if is_driver else "cuda_runtime"


def step_rows(steps: StepsOfKernels, origin: int) -> RowWriter:
    """The steps as annotations `ProfilerStep#N`, on a thread of their own in each process."""
    chosen = np.flatnonzero(steps.start != NO_TIME)
    rows = EventRows(len(chosen), origin)
    rows.plain('"ph":"X","cat":"user_annotation","name":"ProfilerStep#')
    rows.writer.add_ints(rows.taken(), steps.number[chosen], none=NO_TIME, none_text=b"")
    rows.plain('","tid":"steps"')
    rows.number("pid", steps.pid[chosen], none=NO_TIME)
    rows.time(steps.start[chosen])
    rows.duration(steps.start[chosen], steps.end[chosen], np.zeros(len(chosen), bool))
    return rows.done()


def memory_rows(profile: ProfileData, origin: int) -> RowWriter:
    """The allocations and frees."""
    memory = profile.memory_events
    chosen = np.flatnonzero((memory.time != NO_TIME) & (memory.device_type < MANAGED))
    rows = EventRows(len(chosen), origin)
    rows.plain('"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","args":{"Ev Idx":0')
    for key, values, none in (
        ("Device Type", memory.device_type, -1),
        ("Device Id", memory.device, NO_TIME),
        ("Addr", memory.address, -1),
        ("Bytes", memory.bytes, NO_TIME),
        ("Total Allocated", memory.total_allocated, -1),
        ("Total Reserved", memory.total_reserved, -1),
    ):
        rows.number(key, values[chosen], none=none)
    rows.plain("}")
    rows.number("pid", memory.pid[chosen], none=NO_TIME)
    rows.number("tid", memory.tid[chosen], none=NO_TIME)
    rows.time(memory.time[chosen])
    return rows.done()


def name_events(profile: ProfileData, places: list[list[int]]) -> Iterator[dict[str, Any]]:
    """Metadata events with the names of processes, threads, GPUs and streams."""
    about = profile.about
    for pid, name in about.processes.items():
        yield _named("process_name", pid, 0, name)
    for (pid, tid), name in about.threads.items():
        yield _named("thread_name", pid, tid, f"thread {tid} ({name})")
    for device in sorted({device for _, device, _, _ in places}):
        yield {
            "ph": "M",
            "name": "process_labels",
            "pid": device,
            "tid": 0,
            "ts": 0,
            "args": {"labels": f"GPU {device}"},
        }
    for device, stream in sorted({(device, stream) for _, device, _, stream in places}):
        yield _named("thread_name", device, stream, f"stream {stream}")


def _named(key: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": key, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


_LINE: Final = re.compile(r"(.+):(\d+)", re.DOTALL)


def beginning_of(meaning: Meaning, of_events: bool) -> str:
    """The beginning of the event of a range: type, category, name, and arguments, still open.

    of_events : whether the ranges are those of torch.profiler
    """
    category, name = _argument_category(meaning, of_events), meaning.label
    if meaning.kind == Kind.TORCH:
        name = meaning.name
    arguments = "".join(f",{quoted(key)}:{quoted(value)}" for key, value in _arguments(meaning))
    return f'"ph":"X","cat":"{category}","name":{quoted(name)},"args":{{"Ev Idx":0{arguments}'


def _argument_category(meaning: Meaning, of_events: bool) -> str:
    if meaning.kind == Kind.TORCH:
        return "cpu_op"
    is_python = meaning.kind in (Kind.FRAME, Kind.HIDDEN)
    if is_python or (of_events and meaning.label.startswith("nn.Module: ")):
        return "python_function"
    return "user_annotation"


def _arguments(meaning: Meaning) -> Iterator[tuple[str, Any]]:
    if meaning.kind != Kind.TORCH:
        return
    if meaning.call is not None and meaning.has_arguments and meaning.collective is None:
        yield from _inputs([arg.value for arg in meaning.call.args])
    if meaning.collective is not None:
        record = meaning.collective
        yield "Collective name", record.name
        found = {
            "dtype": record.dtype,
            "In msg nelems": record.given,
            "Out msg nelems": record.got,
            "Group size": record.ranks,
            "Process Group Name": record.group,
        }
        yield from ((key, value) for key, value in found.items() if value is not None)
    if meaning.frames:
        yield "Call stack", ";".join(map(_frame, reversed(meaning.frames)))
    if meaning.layers:
        yield "Module Hierarchy", ".".join(f"{name}()::forward" for name in meaning.layers)


def _frame(line: str) -> str:
    """`a.py:7` as torch.profiler writes it; it records functions too, which are unknown here."""
    match = _LINE.fullmatch(line)
    return f"{match[1]}({match[2]}): <unknown>" if match else line


def _inputs(values: list[Any]) -> Iterator[tuple[str, Any]]:
    described = [_input(value) for value in values]
    dims, types, strides, concrete = ([each[i] for each in described] for i in range(4))
    yield "Input Dims", dims
    if any(map(_has_type, values)):
        yield "Input type", types
    if any(strides):
        yield "Input Strides", strides
    if any(concrete):
        yield "Concrete Inputs", concrete


def _input(value: Any) -> tuple[Any, Any, Any, str]:
    """Dims, type, strides and value of an argument."""
    if isinstance(value, Tensor):
        return list(value.shape), _type(value), list(value.strides or ()), ""
    if value is UNKNOWN:
        return [], "GenericList", [], ""
    if value is None:
        return [], "", [], "None"
    if isinstance(value, tuple) and value and all(isinstance(each, Tensor) for each in value):
        return (
            [list(each.shape) for each in value],
            [each.dtype or "" for each in value]
            if any(each.dtype for each in value)
            else "TensorList",
            [list(each.strides or ()) for each in value],
            "",
        )
    if isinstance(value, tuple):
        return [], "ScalarList", [], f"[{', '.join(map(_plain, value))}]"
    return [], "Scalar", [], _plain(value)


def _type(tensor: Tensor) -> str:
    """torch.profiler's type of an input; a tensor without shape and type stands for a number."""
    if tensor.dtype is None and not tensor.shape:
        return "Scalar"
    return tensor.dtype or ""


def _has_type(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_type, value))
    return value is not None and not (isinstance(value, Tensor) and value.dtype is None)


def _plain(value: Any) -> str:
    return f"[{', '.join(map(_plain, value))}]" if isinstance(value, tuple) else str(value)
