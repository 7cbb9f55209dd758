"""Write report columns as JSON lines: one object per row, null for unknown values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO

from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.writers.objects import JSON, write_objects


def write(columns: Mapping[str, Column], chosen: Sequence[ColumnInfo], file: BinaryIO) -> None:
    """Write the chosen columns. List columns, seq, altseq, grid and block become arrays."""
    write_objects({column.key: columns[column.key] for column in chosen}, JSON, file)
