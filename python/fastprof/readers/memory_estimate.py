"""Lower bounds of the memory needed to read a file, from its row counts or size."""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

from fastprof._system import memory
from fastprof.readers.nsys import schema as nsys_schema
from fastprof.readers.nvprof import schema as nvprof_schema
from fastprof.readers.sqlite.database import Database

# Tables and their share of a work item or range per row. NVProf has two rows per range.
_WORK = {nsys_schema.KERNELS, nsys_schema.GRAPHS, *nvprof_schema.KERNELS}
_COPIES = {*nvprof_schema.COPIES, nvprof_schema.SETS}
_RANGES = {**dict.fromkeys(nsys_schema.RANGES, 1.0), nvprof_schema.MARKERS: 0.5}
_CALLS = {nsys_schema.LAUNCHES, *nvprof_schema.LAUNCHES}
_MIN_ROW = 30  # bytes per row in a file


def of_database(database: Database, copies: bool) -> float:
    """Bytes for the kernels and ranges of an open database."""
    work = _rows(database, _WORK | _COPIES if copies else _WORK)
    return work * memory.OF_KERNEL + _ranges(database) * memory.OF_RANGE


def of_page(database: Database) -> float:
    """Bytes for the page of an open database, of which the host's side is about half."""
    return (
        _rows(database, _WORK | _COPIES) * memory.OF_KERNEL_ON_PAGE
        + _ranges(database) * memory.OF_RANGE_ON_PAGE
        + _rows(database, _CALLS) * memory.OF_CALL_ON_PAGE
    )


def _rows(database: Database, tables: Set[str]) -> float:
    """How many rows some tables have together; a damaged file may claim too many."""
    most = database.path.stat().st_size / _MIN_ROW
    return sum(min(most, database.count(table)) for table in tables & database.tables.keys())


def _ranges(database: Database) -> float:
    return sum(share * _rows(database, {table}) for table, share in _RANGES.items())


def of_dict_lines(path: str | os.PathLike[str]) -> float:
    """Bytes for a file of dict lines."""
    return os.path.getsize(path) * memory.OF_DICT_BYTE


def of_json(path: str | os.PathLike[str], compressed: bool) -> float:
    """Bytes for a trace of torch.profiler."""
    size = os.path.getsize(path)
    if compressed:
        with Path(path).open("rb") as file:
            file.seek(max(0, size - 4))
            inflated = int.from_bytes(file.read(4), "little")  # of the last member, modulo 2^32
        size = max(size, inflated)
    return size * memory.OF_JSON_BYTE
