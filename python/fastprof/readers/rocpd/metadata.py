"""Metadata of a rocpd database: versions, GPUs, names of processes and threads; allocations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np

from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.model.metadata import PINNED, About, GpuFigures, Memory, positive
from fastprof.readers.rocpd import schema
from fastprof.readers.rocpd.places import CPU, GPU, Places
from fastprof.readers.rocpd.schema import Run
from fastprof.readers.sqlite.database import Database

_ARCHITECTURE: Final = regex(r"gfx[0-9a-f]+\Z")
_GPU: Final = 1  # c10::DeviceType
_MEGAHERTZ: Final = 1_000_000


def read(database: Database, runs: Sequence[Run], places: Places) -> tuple[About, list[str]]:
    """The metadata, and warnings."""
    about = About("rocpd", tool="ROCm profiler")
    try:
        for run in runs:
            places.enter(run)
            _read_run(database, run, places, about)
    except BadInputError as error:
        return about, [f"metadata cannot be read: {error}"]
    return about, []


def _read_run(database: Database, run: Run, places: Places, about: About) -> None:
    for tag, value in schema.rows(database, run, schema.METADATA, "", "tag value"):
        if tag == "schema_version":
            about.schema_version = value
    names: dict[int, int] = {}
    rows = schema.rows(database, run, "rocpd_info_process", "id pid", "command")
    for process, pid, command in rows:
        if process is not None and pid is not None:
            names[process] = pid
            if words := (command or "").split():
                about.processes.setdefault(pid, words[0].rpartition("/")[2])
    for process, tid, name in schema.rows(database, run, "rocpd_info_thread", "pid tid", "name"):
        pid = names.get(process, process)
        if pid is not None and tid is not None and name:
            about.threads.setdefault((pid, tid), name)
    columns = "type name product_name model_name extdata"
    rows = schema.rows(database, run, "rocpd_info_agent", "id", columns)
    for agent, kind, name, product, model, facts in rows:
        if kind == GPU and agent is not None:
            (own,) = places.agents(np.array([agent]))
            about.gpus.setdefault(own.device, product or model or name or "GPU")
            about.gpu_figures.setdefault(own.device, _figures(name or "", facts))


def _figures(name: str, facts: str | None) -> GpuFigures:
    """Properties of a GPU.

    name : its architecture, gfx942
    facts : JSON, as rocprofv3 writes rocprofiler_agent_t: compute units, clock in MHz
    """
    try:
        known = json.loads(facts or "{}")
    except (ValueError, RecursionError):
        known = {}
    if not isinstance(known, dict):
        known = {}
    clock = positive(known.get("max_engine_clk_fcompute"))
    return GpuFigures(
        sms=positive(known.get("cu_count")),
        clock=clock * _MEGAHERTZ if clock else None,
        capability=name if _ARCHITECTURE.match(name) else None,
    )


_FREES: Final = ("FREE", "RECLAIM")


def memory(database: Database, runs: Sequence[Run], places: Places) -> Memory:
    """The allocations of all runs, without scratch memory, which belongs to kernels.

    A free has the size and the GPU of the last allocation of its address, which rocprofv3 does not
    record.
    """
    parts: list[list[Any]] = []
    for run in runs:
        places.enter(run)
        parts += _allocations(database, run, places)
    if not parts:
        return Memory()
    parts.sort(key=lambda part: part[0])
    columns = [np.array(column) for column in zip(*parts, strict=True)]
    time, address, size, kind, device, pid, tid, correlation = columns
    unknown = np.full(len(time), -1, np.int64)
    return Memory(
        time=time,
        address=address,
        bytes=size,
        device_type=kind.astype(np.int32),
        device=device.astype(np.int32),
        total_allocated=unknown,
        total_reserved=unknown,
        pid=pid,
        tid=tid,
        correlation=correlation,
    )


def _allocations(database: Database, run: Run, places: Places) -> list[list[Any]]:
    """Rows of `Memory` of a run, in order of time."""
    columns = "start address size event_id pid tid agent_id track_id"
    recorded = schema.rows(database, run, schema.ALLOCATIONS, columns, "type level")
    stacks = _stacks(database, run, {row[3] for row in recorded})
    last: dict[Any, tuple[int, int, int]] = {}
    result = []
    timed = [row for row in recorded if row[0] is not None and row[2] is not None]
    for start, address, size, event, *place, kind, level in sorted(timed, key=itemgetter(0)):
        if level == "SCRATCH":
            continue
        process, tid, agent = places.place_of(place)
        memory_type, device = _memory_of(places, agent)
        if kind in _FREES:
            known = last.pop((process, address), None)
            if known is None and size <= 0:
                continue  # nothing is known of what it frees; HIP also frees null pointers
            size, memory_type, device = known or (size, memory_type, device)
            size = -size
        else:
            last[process, address] = size, memory_type, device
        pid, number = places.names_of(process, tid)
        address = -1 if address is None else address
        correlation = stacks.get(event, -1)
        result.append([start, address, size, memory_type, device, pid, number, correlation])
    return result


def _memory_of(places: Places, agent: int) -> tuple[int, int]:
    """Type and device of the memory of an agent; HSA's memory of the CPU is locked for copies."""
    (known,) = places.agents(np.array([agent]))
    if known.type == CPU:
        return PINNED, -1
    return (_GPU, known.device) if known.type == GPU else (-1, -1)


def _stacks(database: Database, run: Run, events: set[Any]) -> dict[int, int]:
    """The calls of some events."""
    if not events:
        return {}
    columns = schema.rows(database, run, schema.EVENTS, "id stack_id")
    return {event: stack for event, stack in columns if event in events and (stack or 0) > 0}
