"""GPU work in the JSON of rocprofv3: kernels and memory copies."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core import _join
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import COPY_KINDS, MEMORY_KINDS, Activity, Configs, Kernels
from fastprof.readers.rocpd.agents import devices_of
from fastprof.readers.rocpd.json_records import NONE, ROOT, Columns, RocprofFile

_SIZES: Final = ("grid", "block")
_AXES: Final = "xyz"
_NOT_IN_CONFIG: Final = ("start", "end", "correlation", "bytes", ROOT)


class Texts:
    """The strings of the recording: names of kernels, copies and API calls."""

    def __init__(self, file: RocprofFile) -> None:
        self.strings: list[str | None] = list(file.texts)
        self._ids: dict[str, int] = {}
        self._file = file

    def add(self, text: str) -> int:
        """The index of a text, which is added if it is new."""
        if text not in self._ids:
            self._ids[text] = len(self.strings)
            self.strings.append(text)
        return self._ids[text]

    def of_operations(self, columns: Columns) -> Int32:
        """The name of each record's operation."""
        keys = [columns[key] for key in (ROOT, "kind", "operation")]
        distinct, first = alike(keys)
        names = [
            self.add(self._file.processes[process].operation(kind, operation))
            for process, kind, operation in zip(*(key[first].tolist() for key in keys), strict=True)
        ]
        return take(np.array(names, np.int32), distinct)


def read_work(file: RocprofFile, texts: Texts, copies: bool) -> Kernels:
    """GPU work in order of start, without launches; `process` is that of the record.

    copies : also read memory copies
    """
    works = [_kernels(file), *([_copies(file, texts)] if copies else [])]
    columns = {key: np.concatenate([work[key] for work in works]) for key in works[0]}
    order = np.argsort(columns["start"], kind="stable")
    columns = {key: column[order] for key, column in columns.items()}
    duration = columns["end"] - columns["start"]
    duration[(columns["end"] < columns["start"]) | (columns["start"] == NONE)] = -1
    keys = [key for key in columns if key not in _NOT_IN_CONFIG]
    config, first = alike([columns[key] for key in keys])
    return Kernels(
        start=columns["start"],
        duration=duration,
        process=columns[ROOT].astype(np.int32),
        correlation=columns["correlation"],
        config=config,
        configs=_configs_of({key: columns[key][first] for key in keys}, copies),
        launch=np.full(len(order), -1, np.int32),
        origin=None,
        copied=columns["bytes"] if copies else None,
    )


def _configs_of(columns: Columns, copies: bool) -> Configs:
    n = len(columns["kind"])
    nothing = np.full(n, -1, np.int32)
    grid, block = (
        np.stack([_narrow(columns[f"{size}_{axis}"]) for axis in _AXES], axis=1) for size in _SIZES
    )
    for size in (grid, block):
        size[np.any(size < 0, axis=1)] = -1
    of_copies = ("copy_kind", "source", "target")
    copy_kind, source, target = (_narrow(columns[key]) if copies else None for key in of_copies)
    return Configs(
        device=_narrow(columns["device"]),
        context=nothing,
        stream=_narrow(columns["stream"]),
        name=_narrow(columns["name"]),
        grid=grid,
        block=block,
        registers=_narrow(columns["registers"]),
        shared_memory=_narrow(columns["shared_memory"]),
        graph_id=nothing,
        graph_node=np.full(n, -1, np.int64),
        kind=_narrow(columns["kind"]),
        copy_kind=copy_kind,
        source=source,
        target=target,
    )


def _narrow(column: Int64) -> Int32:
    """int64 to int32; values out of range are -1."""
    limit = np.iinfo(np.int32).max
    return np.where((column < 0) | (column > limit), -1, column).astype(np.int32)


def _known(column: Int64) -> Int64:
    """Missing and negative values as -1."""
    return np.where(column < 0, np.int64(-1), column)


def _kernels(file: RocprofFile) -> Columns:
    """The columns of kernels, the same as of copies.

    The file has the size of a grid in work items, as HSA does; here it is in work groups.
    """
    rows = file.tables["kernels"]
    columns = _common(file, rows, rows["agent"])
    columns["stream"] = np.where(rows["stream"] == NONE, rows["queue"], rows["stream"])
    columns["shared_memory"] = rows["shared_memory"]
    columns["name"], columns["registers"] = _symbols(file, rows)
    for axis in _AXES:
        items, block = rows[f"grid_{axis}"], rows[f"block_{axis}"]
        groups = (items + np.maximum(block, 1) - 1) // np.maximum(block, 1)
        columns[f"grid_{axis}"] = np.where((items < 0) | (block <= 0), -1, groups)
        columns[f"block_{axis}"] = np.where(block <= 0, -1, block)
    return columns


def _common(file: RocprofFile, rows: Columns, agent: Int64) -> Columns:
    """The columns that kernels and copies share; those of one of them are -1."""
    n = len(rows[ROOT])
    sizes = [f"{size}_{axis}" for size in _SIZES for axis in _AXES]
    others = ("shared_memory", "registers", "copy_kind", "source", "target", "bytes", *sizes)
    columns = {key: rows[key] for key in (ROOT, "start", "end")}
    columns["correlation"] = _known(rows["correlation"])
    columns["device"] = devices_of([each.agents for each in file.processes], rows[ROOT], agent)
    columns["kind"] = np.full(n, Activity.KERNEL, np.int64)
    return columns | {key: np.full(n, -1, np.int64) for key in others}


def _symbols(file: RocprofFile, rows: Columns) -> tuple[Int64, Int64]:
    """The name and the registers of each kernel, vector and accumulation registers together.

    The demangled name, which `--truncate-kernels` shortens, or else the mangled one.
    """
    symbols = file.tables["symbols"]
    text, more = symbols["text"], np.maximum(symbols["more_registers"], 0)
    name = np.append(np.where(text == NONE, symbols["mangled"], text), NONE)
    registers = np.append(np.where(symbols["registers"] < 0, -1, symbols["registers"] + more), -1)
    process = rows[ROOT].astype(np.int32)
    join = _join.Join(process, rows["kernel"])
    join.offer(symbols[ROOT].astype(np.int32), symbols["kernel"])
    row = join.rows(process, rows["kernel"])
    return _known(name[row]), registers[row]


_HOST, _DEVICE = MEMORY_KINDS.index("host"), MEMORY_KINDS.index("device")
# By an operation of memory_copy: the kind of copy, and the kinds of memory.
_COPIES: Final = {
    "MEMORY_COPY_HOST_TO_DEVICE": ("HtoD", _HOST, _DEVICE),
    "MEMORY_COPY_DEVICE_TO_HOST": ("DtoH", _DEVICE, _HOST),
    "MEMORY_COPY_DEVICE_TO_DEVICE": ("DtoD", _DEVICE, _DEVICE),
    "MEMORY_COPY_HOST_TO_HOST": ("HtoH", _HOST, _HOST),
}
_PEER: Final = ("PtoP", _DEVICE, _DEVICE)
_UNKNOWN: Final = ("", -1, -1)


def _copies(file: RocprofFile, texts: Texts) -> Columns:
    """The columns of memory copies; a copy is on the GPU of its target, or else of its source."""
    rows = file.tables["copies"]
    agents = [each.agents for each in file.processes]
    source, target = (devices_of(agents, rows[ROOT], rows[end]) for end in ("source", "target"))
    columns = _common(file, rows, rows["target"])
    columns["device"] = np.where(target >= 0, target, source)
    columns["stream"] = rows["stream"]
    columns["bytes"] = _known(rows["bytes"])
    columns["kind"] = np.full(len(source), Activity.MEMCPY, np.int64)
    operation = texts.of_operations(rows)
    is_peer = (source >= 0) & (target >= 0) & (source != target)
    ids, first = alike([operation, is_peer.astype(np.int32)])
    means = [
        _PEER if is_peer[row] else _COPIES.get(texts.strings[operation[row]] or "", _UNKNOWN)
        for row in first.tolist()
    ]
    values = {
        "copy_kind": [COPY_KINDS.index(kind) if kind else -1 for kind, _, _ in means],
        "source": [memory for _, memory, _ in means],
        "target": [memory for _, _, memory in means],
        "name": [texts.add(copy_name(*each)) for each in means],
    }
    return columns | {key: take(np.array(each, np.int64), ids) for key, each in values.items()}


def copy_name(kind: str, source: int, target: int) -> str:
    """The name of a copy in the form of torch.profiler: `Memcpy HtoD (Host -> Device)`.

    source, target : indices into MEMORY_KINDS, -1 if unknown
    """
    if not kind:
        return "Memcpy"
    return f"Memcpy {kind} ({MEMORY_KINDS[source].title()} -> {MEMORY_KINDS[target].title()})"
