"""Events of the host: operators, annotations, API calls, allocations, names of threads.

Range names and the arguments of operators as torch.profiler writes them.

Events of GPU work: categories kernel, gpu_memcpy and gpu_memset.

Events as rows of JSON text: parts that few events differ in, and numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import alike
from fastprof._core._rows import RowWriter
from fastprof._core._take import take
from fastprof.exports.events import WORK, SelectedWork
from fastprof.model.arrays import Int32, Int64
from fastprof.model.call import UNKNOWN, Tensor
from fastprof.model.markers import Kind, Meaning
from fastprof.model.metadata import MANAGED
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import Threads
from fastprof.profile.steps.kernel_steps import StepsOfKernels

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


# Of a function of the runtime in Nsight Systems; tools look for torch.profiler's cudaLaunchKernel.
_VERSION: Final = re.compile(r"_v\d{4,}\Z")


def thread_places(threads: Threads) -> list[str]:
    """The pid and tid of each thread, and of an unknown one at the end."""
    pairs = enumerate(zip(threads.pid.tolist(), threads.tid.tolist(), strict=True))
    # Threads without a number remain distinct.
    results = [
        f'"pid":{pid},"tid":{tid if tid >= 0 else quoted(f"thread {i}")}' for i, (pid, tid) in pairs
    ]
    return [*results, '"pid":-1,"tid":-1']


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
        for name in (_VERSION.sub("", str(value)) for value in api.name.values)
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
        result = {
            "dtype": record.dtype,
            "In msg nelems": record.given,
            "Out msg nelems": record.got,
            "Group size": record.ranks,
            "Process Group Name": record.group,
        }
        yield from ((key, value) for key, value in result.items() if value is not None)
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
    dims, types, strides, concrete = ([entry[i] for entry in described] for i in range(4))
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


_CATEGORIES: Final = {"memcpy": "gpu_memcpy", "memset": "gpu_memset"}
# Arguments of torch.profiler; fastprof adds WORK.
_TORCH: Final = {
    "device": "device",
    "context": "context",
    "stream": "stream",
    "grid": "grid",
    "block": "block",
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "graph_id": "graph id",
    "graph_node": "graph node id",
}


def gpu_rows(work: SelectedWork, correlation: Int64, external: Int64, origin: int) -> RowWriter:
    """The events of GPU work.

    Parameters
    ----------
    correlation, external : int64 [n], numbers of the launching call and of the range around it, -1
        if unknown
    origin : subtracted from times, ns
    """
    rows = EventRows(len(work), origin)
    look, _ = work.looks
    rows.texts(look, _beginnings(work))
    rows.number("External id", external)
    rows.number("correlation", correlation)
    for name, key in (("flops", "FLOPs"), ("bytes", "bytes read and written"), ("copied", "bytes")):
        rows.number(key, work.numbers(name))
    rows.number("launch latency (ns)", work.latency, none=NO_TIME)
    rows.plain("}")
    rows.time(work.start)
    rows.duration(work.start, work.end, work.numbers("sil") < 0)
    return rows.done()


def _beginnings(work: SelectedWork) -> list[str]:
    """Type, category, name, places and arguments of each look, the arguments still open."""
    columns = {name: work.by_kernel(name) for name in (*_TORCH, *WORK)}
    names, kinds = work.by_kernel("name"), work.by_kernel("kind")
    directions, memory = work.by_kernel("copy_direction"), work.by_kernel("copy_memory")
    beginnings = []
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind in _CATEGORIES and (name or "[CUDA").startswith("[CUDA"):  # not torch's own name
            name = _copy_name(kind, directions[i], memory[i])
        arguments = ",".join(
            f"{quoted(key)}:{quoted(value)}"
            for names_of in (_TORCH, WORK)
            for key, value in _gpu_arguments(
                {key: columns[text][i] for text, key in names_of.items()}
            )
        )
        beginnings.append(
            f'"ph":"X","cat":"{_CATEGORIES.get(kind, "kernel")}","name":{quoted(name or "")},'
            f'"pid":{_number(columns["device"][i])},"tid":{_number(columns["stream"][i])},'
            f'"args":{{{arguments or _NO_ARGUMENTS}'
        )
    return beginnings


_NO_ARGUMENTS: Final = '"queued":0'


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _gpu_arguments(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if key == "layer":
            value = ":".join(value or ())
        if value not in (None, "", ()):
            yield key, value


def _copy_name(kind: str, direction: str | None, memory: str | None) -> str:
    """`Memcpy HtoD (Pageable -> Device)`, `Memset (Device)`."""
    parts = ["Memset" if kind == "memset" else "Memcpy"]
    if direction:
        parts.append(direction)
    if memory:
        parts.append(f"({' -> '.join(part.capitalize() for part in memory.split(' -> '))})")
    return " ".join(parts)


def flow_rows(
    phase: str, category: str, ids: Int64, places: tuple[Int32, list[str]], time: Int64, origin: int
) -> RowWriter:
    """Events at the starts (phase s) or ends (phase f) of flows.

    ids : int64 [n]; places: index [n] into texts of pid and tid; time : int64 [n]
    """
    rows = EventRows(len(ids), origin)
    end = ',"bp":"e"' if phase == "f" else ""
    rows.plain(f'"ph":"{phase}","cat":"{category}","name":"{category}"{end}')
    rows.number("id", ids, none=NO_TIME)
    which, texts = places
    rows.plain(",")
    rows.texts(which, texts)
    rows.time(time)
    return rows.done()


def stream_places(work: SelectedWork) -> tuple[Int32, list[str]]:
    """The pid and tid of the events of GPU work, as for `flow_rows`."""
    return work.place, [
        f'"pid":{device},"tid":{stream}' for _, device, _, stream in work.places.tolist()
    ]


def numbers_of_calls(work: SelectedWork) -> tuple[Int64, Int64]:
    """Correlation ids of GPU work and of API calls, unique in the file.

    Files of several processes repeat ids; torch.profiler writes one file per process.
    """
    api, own = work.profile.api, np.ascontiguousarray(work.numbers("correlation"), np.int64)
    if len({*work.places[:, 0].tolist(), *api.threads.pid.tolist()} - {-1}) < 2:
        return own, api.correlation
    of_work = take(np.ascontiguousarray(work.places[:, 0]), work.place)
    correlation = np.concatenate([own, api.correlation])
    numbers, _ = alike([np.concatenate([of_work, api.pid]), correlation])
    unique = np.where(correlation < 0, -1, numbers.astype(np.int64) + 1)
    return unique[: len(own)], unique[len(own) :]
