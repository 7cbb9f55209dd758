"""Columns -> Parquet files, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import BinaryIO

from fastprof._system.optional import import_optional
from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.model.dataframe import arrow_tables


def write_columns(columns: Mapping[str, Column], file: BinaryIO) -> None:
    """Write columns of one length as Parquet; memory holds one group of rows.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    parquet = import_optional("pyarrow.parquet", "Parquet needs")
    tables = arrow_tables(columns)
    first = next(tables)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def write(columns: Mapping[str, Column], chosen: Sequence[ColumnInfo], file: BinaryIO) -> None:
    """Write the chosen columns of a report."""
    write_columns({column.key: columns[column.key] for column in chosen}, file)
