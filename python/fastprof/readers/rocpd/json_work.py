"""GPU work in the JSON of rocprofv3: kernels and memory copies."""

from __future__ import annotations

import numpy as np

from fastprof._core import _join
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import Activity, Kernels
from fastprof.readers.rocpd.agents import devices_of
from fastprof.readers.rocpd.json_records import NONE, ROOT, Columns, RocprofFile
from fastprof.readers.rocpd.work_columns import (
    AXES,
    copy_columns,
    copy_kind,
    kernels_of,
    known,
    work_columns,
)


class Texts:
    """The strings of the recording: names of kernels, copies and API calls."""

    def __init__(self, file: RocprofFile) -> None:
        self.strings: list[str | None] = []
        self._ids: dict[str, int] = {}
        self._file = file

    def add(self, text: str) -> int:
        """The index of a text, which is added if it is new."""
        if text not in self._ids:
            self._ids[text] = len(self.strings)
            self.strings.append(text)
        return self._ids[text]

    def indices(self, ids: Int64) -> Int64:
        """The index of each text of the file, -1 for none."""
        used, place = np.unique(ids, return_inverse=True)
        own = [self.add(self._file.texts[i]) if i >= 0 else -1 for i in used.tolist()]
        return np.array(own, np.int64)[place]

    def operation_names(self, columns: Columns) -> Int32:
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
    works = [_kernels(file, texts), *([_copies(file, texts)] if copies else [])]
    return kernels_of(works, copies)


def _kernels(file: RocprofFile, texts: Texts) -> Columns:
    """The columns of kernels, the same as of copies.

    The file has the size of a grid in work items, as HSA does; here it is in work groups.
    """
    rows = dispatches(file)
    columns = _common(file, rows, rows["agent"])
    columns["stream"] = np.where(rows["stream"] == NONE, rows["queue"], rows["stream"])
    columns["shared_memory"] = rows["shared_memory"]
    columns["name"], columns["registers"] = _symbols(file, texts, rows)
    for axis in AXES:
        items, block = rows[f"grid_{axis}"], rows[f"block_{axis}"]
        groups = (items + np.maximum(block, 1) - 1) // np.maximum(block, 1)
        columns[f"grid_{axis}"] = np.where((items < 0) | (block <= 0), -1, groups)
        columns[f"block_{axis}"] = np.where(block <= 0, -1, block)
    return columns


def dispatches(file: RocprofFile) -> Columns:
    """The records of kernels; of processes that have none, those of kernels with counters."""
    rows, counted = (file.tables.pop(name) for name in ("kernels", "counted"))
    alone = ~np.isin(counted[ROOT], rows[ROOT])
    if not alone.any():
        return rows
    shared = rows.keys() & counted.keys()
    return {key: np.concatenate([rows[key], counted[key][alone]]) for key in shared}


def _common(file: RocprofFile, rows: Columns, agent: Int64) -> Columns:
    """The columns that kernels and copies share; those of one of them are -1."""
    columns = work_columns(rows["start"], rows["end"])
    columns["process"] = rows[ROOT]
    columns["correlation"] = known(rows["correlation"])
    columns["device"] = devices_of(
        [process.agents for process in file.processes], rows[ROOT], agent
    )
    return columns


def _symbols(file: RocprofFile, texts: Texts, rows: Columns) -> tuple[Int64, Int64]:
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
    return texts.indices(name[row]), registers[row]


def _copies(file: RocprofFile, texts: Texts) -> Columns:
    """The columns of memory copies; a copy is on the GPU of its target, or else of its source."""
    rows = file.tables["copies"]
    agents = [process.agents for process in file.processes]
    source, target = (devices_of(agents, rows[ROOT], rows[end]) for end in ("source", "target"))
    columns = _common(file, rows, rows["target"])
    columns["device"] = np.where(target >= 0, target, source)
    columns["stream"] = rows["stream"]
    columns["bytes"] = known(rows["bytes"])
    columns["kind"] = np.full(len(source), Activity.MEMCPY, np.int64)
    operation = texts.operation_names(rows)
    is_peer = (source >= 0) & (target >= 0) & (source != target)
    ids, first = alike([operation, is_peer.astype(np.int32)])
    kinds = [copy_kind(texts.strings[operation[i]], bool(is_peer[i])) for i in first.tolist()]
    return columns | copy_columns(kinds, ids, texts.add)
