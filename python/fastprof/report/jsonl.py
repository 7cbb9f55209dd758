"""Columns keyed as in PyProf's dict lines -> the same lines in JSON."""

from __future__ import annotations

from typing import BinaryIO

from fastprof.report.dict_lines import DictColumns, in_order
from fastprof.report.objects import JSON, write_objects


def write(columns: DictColumns, file: BinaryIO) -> None:
    """Write one JSON object a kernel, its keys those of dict lines."""
    write_objects(in_order(columns), JSON, file)
