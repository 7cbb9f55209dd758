"""Calls of RCCL with their sizes, read on request.

Each becomes the JSON that NCCL's ranges have in exports of Nsight Systems. Names of arguments are
those of nccl.h; a type is written as its name or its number there.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from fastprof._core import _column, _pools
from fastprof.model.timeline import RecordedEvents
from fastprof.readers.rocpd import regions, schema
from fastprof.readers.rocpd.events import Events
from fastprof.readers.rocpd.places import Places
from fastprof.readers.rocpd.schema import COLLECTIVE, Run
from fastprof.readers.sqlite.connected import BothThreads
from fastprof.readers.sqlite.database import Database

_COUNTS: Final = ("count", "sendcount", "recvcount")
# Bytes of ncclDataType_t, by number, and the names of the same.
_SIZES: Final = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
_NAMES: Final = {
    f"nccl{name}": number
    for number, names in enumerate(
        (
            "Int8 Char", "Uint8", "Int32 Int", "Uint32", "Int64", "Uint64", "Float16 Half",
            "Float32 Float", "Float64 Double", "Bfloat16", "Float8e4m3 Fp8E4M3",
            "Float8e5m2 Fp8E5M2",
        )
    )
    for name in names.split()
}  # fmt: skip


def payload_events(database: Database) -> RecordedEvents | None:
    """The calls of RCCL; their names are JSON. None if the file has none with sizes.

    Raises
    ------
    BadInputError
        The file is damaged.
    """
    runs = schema.runs_of(database.tables)
    places, numbers = Places(database, runs), dict[str, int]()
    columns: list[list[Any]] = []
    with BothThreads(database) as threads:
        for run in runs:
            places.enter(run)
            columns += _of_run(database, threads, run, places, numbers)
    if not columns:
        return None
    start, end, thread, name = np.array(columns, np.int64).T.copy()
    return RecordedEvents(
        start=start,
        end=np.maximum(start, end),
        thread=thread.astype(np.int32),
        name=name.astype(np.int32),
        names=list(numbers),
        threads=[
            (tid, places.pids[process] if process >= 0 else -1) for process, tid in places.threads
        ],
    )


def _of_run(
    database: Database, threads: BothThreads, run: Run, places: Places, numbers: dict[str, int]
) -> list[list[Any]]:
    """Start, end, thread and number of the name of each call; adds names to `numbers`."""
    labels = _pools.Names()
    events = Events(database, threads, run, labels)
    if not events.numbers(lambda text: schema.kind_of_category(text or "", None) == COLLECTIVE):
        return []
    own = regions.read(database, threads, run, places, events, labels)
    rows = np.flatnonzero(own.kind == COLLECTIVE)
    ids = np.where(own.event[rows] >= 0, events.ids(own.event[rows]), -1).tolist()
    arguments = _arguments(database, run, set(ids))
    columns: list[list[Any]] = []
    for row, event in zip(rows.tolist(), ids, strict=True):
        payload = _payload(arguments.get(event, {}))
        if payload is None:
            continue
        name = int(own.name[row])
        text = json.dumps(payload | {"name": places.strings[name] if name >= 0 else None})
        number = numbers.setdefault(text, len(numbers))
        columns.append([own.start[row], own.end[row], own.thread[row], number])
    return columns


def _arguments(database: Database, run: Run, events: set[int]) -> dict[int, dict[str, str]]:
    """The arguments of some events."""
    keys, names, values = _pools.Keys(), _pools.Names(), _pools.Names()
    ids = [event for event in sorted(events) if keys.intern(event) >= 0]
    columns = database.scan(
        run.table(schema.ARGUMENTS),
        schema.argument_fields(keys, names, values),
        keep=_column.KnownKeys(keys),
        capacity=len(ids),
    )
    text_of, value_of = names.texts(), values.texts()
    result: dict[int, dict[str, str]] = {}
    rows = (columns[name].tolist() for name in ("event_id", "name", "value"))
    for event, name, value in zip(*rows, strict=True):
        if event >= 0 and name >= 0 and value >= 0:
            result.setdefault(ids[event], {})[text_of[name]] = value_of[value]
    return result


def _payload(arguments: dict[str, str]) -> dict[str, int] | None:
    """Size, communicator and peer of a call; None if the size is unknown."""
    count = next((_number(arguments[name]) for name in _COUNTS if name in arguments), None)
    kind = arguments.get("datatype", "")
    number = _NAMES.get(kind, _number(kind))
    if count is None or number is None or not 0 <= number < len(_SIZES):
        return None
    result = {"Message size [bytes]": count * _SIZES[number]}
    for name, key in (("comm", "NCCL communicator ID"), ("peer", "Peer rank")):
        value = _number(arguments.get(name, ""))
        if value is not None:
            result[key] = value
    return result


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
