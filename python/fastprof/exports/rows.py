"""Rows of kernels or of a report as CSV or Parquet."""

from __future__ import annotations

import io
from typing import BinaryIO, Literal

import numpy as np

from fastprof.analysis.reports import report_of
from fastprof.model.column_table import COLUMN_OF_KEY
from fastprof.profile.data import ProfileData, inside_part
from fastprof.writers import write_report


def write_csv(profile: ProfileData, file: BinaryIO, table: str | None = None) -> None:
    """Write CSV; every field is quoted, unknown values are `na`.

    Parameters
    ----------
    profile : the profile
    file : binary file
    table : a report; None for the kernels

    Raises
    ------
    ReportError, StepsError, BadInputError
        There is no such report, or see the report.
    """
    if table is None:
        _write_kernels(profile, file, "csv")
        return
    text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="", write_through=True)
    report_of(profile, table).write_csv(text)
    text.detach()


def write_parquet(profile: ProfileData, file: BinaryIO, table: str | None = None) -> None:
    """Write Parquet; unknown values are null. See `write_csv`.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    if table is None:
        _write_kernels(profile, file, "parquet")
        return
    report_of(profile, table).write_parquet(file)


def _write_kernels(profile: ProfileData, file: BinaryIO, style: Literal["csv", "parquet"]) -> None:
    keys = [name for name in profile.names if name in COLUMN_OF_KEY]
    inside = inside_part(profile)
    columns = {name: profile.column(name) for name in keys}
    if inside is not None:
        rows = np.flatnonzero(inside)
        columns = {name: column.take(rows) for name, column in columns.items()}
    write_report(columns, keys, style, file)
