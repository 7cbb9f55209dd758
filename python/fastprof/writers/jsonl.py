"""Write dict lines as JSON: the same keys, one object per kernel."""

from __future__ import annotations

from typing import BinaryIO

from fastprof.writers.dict_lines import DictColumns, in_order
from fastprof.writers.objects import JSON, write_objects


def write(columns: DictColumns, file: BinaryIO) -> None:
    """Write one JSON object per kernel."""
    write_objects(in_order(columns), JSON, file)
