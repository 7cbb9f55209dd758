"""Write rows of a generated run as a rocpd database, as rocprofv3 would record it on ROCm.

Ranges become those of roctx, whose names are messages of their events; runtime calls become calls
of HIP, in the order of their ends, each with an event; grids count threads.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from bench import rocpd_schema
from bench.call_template import CALL_COLUMNS
from bench.export import PRAGMAS
from bench.gpu_template import COPY_COLUMNS, KERNEL_COLUMNS
from bench.identity import THREAD_NAMES, Identity
from bench.process import StepRows
from bench.range_template import RANGE_COLUMNS
from bench.recorder import START_END
from bench.strings import StringTable

SUFFIX: Final = "_0199c5e1_7a3d_7c01_8f5e_2b6d9a40c311"
NODE, CPU_AGENT, FIRST_GPU = 1, 0, 1
_GPU_TRACK: Final = 1_000_000
# Categories, whose ids are those of strings; 4.1.0 has a table of their own.
CATEGORIES: Final = (
    "HIP_RUNTIME_API",
    "MARKER_CORE_RANGE_API",
    "KERNEL_DISPATCH",
    "MEMORY_COPY",
)
API, MARKER, DISPATCH, COPY = range(1, 5)
_COPIES: Final = {1: "MEMORY_COPY_HOST_TO_DEVICE", 2: "MEMORY_COPY_DEVICE_TO_HOST"}
_STARTED, _PUSHED = "roctxRangeStartA", "roctxRangePushA"
# The first strings, whose ids count from 1. Those of the run follow.
_FIXED: Final = (*CATEGORIES, _STARTED, _PUSHED, *_COPIES.values())
_FIRST_STRING: Final = len(_FIXED) + 1
_RUNTIME_CLASS: Final = 0
_FIRST_MARKER: Final = 1 << 30  # the ids of calls of roctx, far from those of HIP


_OF_CUDA: Final = re.compile(r"\A(cuda|cu)(?=[A-Z])")


def _of_hip(name: str) -> str:
    """The call of HIP that corresponds to one of CUDA; other names are unchanged."""
    return _OF_CUDA.sub(lambda match: "hip" if match[1] == "cuda" else "hipModule", name)


class RocpdExport:
    """A database being written; the interface of `bench.export.Export`."""

    def __init__(self, path: Path, version: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in PRAGMAS:
            self.connection.execute(pragma)
        rocpd_schema.create(self.connection, version, SUFFIX)
        self.connection.execute("BEGIN")
        self._has_tracks = version == rocpd_schema.WITH_TRACKS
        self._version = version
        self._n_events = self._n_dispatches = self._n_markers = 0
        self._symbols: dict[tuple[int, int], int] = {}
        self._tracks: dict[tuple[int, ...], int] = {}
        self._strings = StringTable()

    def __enter__(self) -> RocpdExport:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._finish()
            self.connection.execute("COMMIT")
        self.connection.close()

    def write_steps(self, steps: Sequence[StepRows]) -> None:
        """Write one step of all processes."""
        ends = itemgetter(1)
        calls = sorted(chain(*(step.calls for step in steps)), key=ends)
        self._calls(dict(zip(CALL_COLUMNS, row, strict=True)) for row in calls)
        ranges = chain(*(step.ranges for step in steps))
        self._ranges(dict(zip(RANGE_COLUMNS, row, strict=True)) for row in ranges)
        kernels = sorted(chain(*(step.kernels for step in steps)), key=itemgetter(0))
        self._dispatches(dict(zip(KERNEL_COLUMNS, row, strict=True)) for row in kernels)
        copies = sorted(chain(*(step.copies for step in steps)), key=itemgetter(0))
        self._copies(dict(zip(COPY_COLUMNS, row, strict=True)) for row in copies)

    def write_strings(self, strings: StringTable) -> None:
        """The texts that rows refer to; written at the end."""
        self._strings = strings

    def write_targets(self, identities: Sequence[Identity], strings: StringTable) -> None:
        """Write processes, threads and GPUs."""
        self._strings = strings
        self.insert("info_node", "id hash machine_id", [(NODE, NODE, "made up by bench.generate")])
        self.insert(
            "info_process",
            "id nid pid command",
            [(item.pid, NODE, item.pid, "python3 train.py") for item in identities],
        )
        self.insert(
            "info_thread",
            "id nid pid tid name",
            [
                (tid, NODE, item.pid, tid, name)
                for item in identities
                for thread, name in THREAD_NAMES.items()
                for tid in [item.global_tid(thread) & 0xFFFFFF]
            ],
        )
        agents = [(CPU_AGENT, NODE, identities[0].pid, "CPU", 0, 0, "AMD EPYC 9654", "")]
        agents += [
            (FIRST_GPU + item.rank, NODE, item.pid, "GPU", FIRST_GPU + item.rank, item.rank,
             "gfx942", "AMD Instinct MI300X")
            for item in identities
        ]  # fmt: skip
        columns = "id nid pid type absolute_index type_index name product_name"
        self.insert("info_agent", columns, agents)

    def insert(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        names = columns.split()
        values = ", ".join("?" * len(names))
        quoted = ", ".join(f'"{name}"' for name in names)
        self.connection.executemany(
            f'INSERT INTO "rocpd_{table}{SUFFIX}" ({quoted}) VALUES ({values})', rows
        )

    def _events(self, rows: list[tuple[Any, ...]]) -> list[int]:
        """Add events with category, stack and extdata; return their ids."""
        first = self._n_events + 1
        self._n_events += len(rows)
        self.insert(
            "event",
            "id category_id stack_id parent_stack_id correlation_id extdata",
            [(first + i, kind, stack, 0, 0, text) for i, (kind, stack, text) in enumerate(rows)],
        )
        return list(range(first, first + len(rows)))

    def _calls(self, calls: Iterable[dict[str, Any]]) -> None:
        """A call of the driver that a call of the runtime made has the id of that one: left out."""
        every = list(calls)
        own = {call["correlationId"] for call in every if call["eventClass"] == _RUNTIME_CLASS}
        rows = [
            call
            for call in every
            if call["eventClass"] == _RUNTIME_CLASS or call["correlationId"] not in own
        ]
        events = self._events([(API, call["correlationId"], "{}") for call in rows])
        self._regions(
            (call["globalTid"], call["start"], call["end"], call["nameId"] + _FIRST_STRING, event)
            for call, event in zip(rows, events, strict=True)
        )

    def _ranges(self, ranges: Iterable[dict[str, Any]]) -> None:
        """Ranges that were never closed are not recorded, nor are marks."""
        rows = [range_ for range_ in ranges if range_["end"] is not None]
        registered = list(self._strings.ids)
        texts = [registered[row["textId"]] if row["text"] is None else row["text"] for row in rows]
        first = _FIRST_MARKER + self._n_markers
        self._n_markers += len(rows)
        events = self._events(
            [
                (MARKER, first + i, json.dumps({"message": text}, ensure_ascii=False))
                for i, text in enumerate(texts)
            ]
        )
        ids = [self._name(name) for name in (_STARTED, _PUSHED)]
        self._regions(
            (each["globalTid"], each["start"], each["end"],
             ids[each["eventType"] != START_END], event)
            for each, event in zip(rows, events, strict=True)
        )  # fmt: skip

    def _regions(self, rows: Iterable[tuple[int, ...]]) -> None:
        if self._has_tracks:
            self.insert(
                "region",
                "track_id start end name_id event_id",
                ((self._track(tid), *others) for tid, *others in rows),
            )
            return
        self.insert(
            "region",
            "nid pid tid start end name_id event_id",
            ((NODE, tid >> 24 & 0xFFFFFF, tid & 0xFFFFFF, *others) for tid, *others in rows),
        )

    def _dispatches(self, kernels: Iterable[dict[str, Any]]) -> None:
        rows = list(kernels)
        events = self._events([(DISPATCH, row["correlationId"], "{}") for row in rows])
        sizes = [f"{size}_size_{axis}" for size in ("workgroup", "grid") for axis in "xyz"]
        self.insert(
            "kernel_dispatch",
            f"{self._place_columns()} kernel_id dispatch_id start end group_segment_size "
            f"{' '.join(sizes)} event_id",
            (self._dispatch(row, event) for row, event in zip(rows, events, strict=True)),
        )

    def _dispatch(self, row: dict[str, Any], event: int) -> tuple[Any, ...]:
        self._n_dispatches += 1
        kernel = row["demangledName"] + _FIRST_STRING, row["registersPerThread"]
        symbol = self._symbols.setdefault(kernel, len(self._symbols) + 1)
        block = [row[f"block{axis}"] for axis in "XYZ"]
        grid = [row[f"grid{axis}"] * side for axis, side in zip("XYZ", block, strict=True)]
        shared = row["staticSharedMemory"] + row["dynamicSharedMemory"]
        times = row["start"], row["end"]
        return (
            *self._place(row), symbol, self._n_dispatches, *times, shared, *block, *grid, event
        )  # fmt: skip

    def _copies(self, copies: Iterable[dict[str, Any]]) -> None:
        rows = list(copies)
        events = self._events([(COPY, row["correlationId"], "{}") for row in rows])
        columns = "start end name_id src_agent_id dst_agent_id size event_id"
        self.insert(
            "memory_copy",
            f"{self._place_columns().replace(' agent_id', '')} {columns}",
            (self._copy(row, event) for row, event in zip(rows, events, strict=True)),
        )

    def _copy(self, row: dict[str, Any], event: int) -> tuple[Any, ...]:
        gpu = FIRST_GPU + row["deviceId"]
        agents = (CPU_AGENT, gpu) if row["copyKind"] == 1 else (gpu, CPU_AGENT)
        place = self._place(row)
        if not self._has_tracks:
            place = (*place[:2], *place[3:])
        name = self._name(_COPIES[row["copyKind"]])
        return (*place, row["start"], row["end"], name, *agents, row["bytes"], event)

    def _place_columns(self) -> str:
        return "track_id" if self._has_tracks else "nid pid agent_id queue_id stream_id"

    def _place(self, row: dict[str, Any]) -> tuple[int, ...]:
        """The columns of `_place_columns`."""
        pid = row["globalPid"] >> 24 & 0xFFFFFF
        place = NODE, pid, FIRST_GPU + row["deviceId"], row["streamId"], row["streamId"]
        if not self._has_tracks:
            return place
        return (self._tracks.setdefault(place, _GPU_TRACK + len(self._tracks)),)

    def _track(self, tid: int) -> int:
        """The track of a thread."""
        place = NODE, tid >> 24 & 0xFFFFFF, tid & 0xFFFFFF
        return self._tracks.setdefault(place, _GPU_TRACK + len(self._tracks))

    def _name(self, text: str) -> int:
        """The id of one of the first strings."""
        return _FIXED.index(text) + 1

    def _finish(self) -> None:
        """Write what the rows refer to: strings, kernels, tracks."""
        texts = [*_FIXED, *map(_of_hip, self._strings.ids)]
        self.insert("string", "id string", enumerate(texts, 1))
        if self._has_tracks:
            self.insert("info_category", "id name", enumerate(CATEGORIES, 1))
            self.insert("track", "id nid pid tid agent_id queue_id stream_id", self._track_rows())
        columns = (
            "id nid pid code_object_id kernel_name display_name group_segment_size "
            "arch_vgpr_count accum_vgpr_count"
        )
        self.insert(
            "info_kernel_symbol",
            columns,
            (
                (number, NODE, 0, 1, texts[name - 1], texts[name - 1], 0, count, 0)
                for (name, count), number in self._symbols.items()
            ),
        )

    def _track_rows(self) -> Iterable[tuple[Any, ...]]:
        for place, number in self._tracks.items():
            if len(place) == 3:
                yield (number, *place, None, None, None)
            else:
                node, pid, *others = place
                yield (number, node, pid, None, *others)
