"""Write PyProf's dict lines: one Python dict literal per kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from fastprof.model.columns import Column, SeqMarkers
from fastprof.writers.objects import PYTHON, write_objects

KEYS = (
    "kShortName",
    "kDuration",
    "layer",
    "trace",
    "reprMarkers",
    "marker",
    "seqMarker",
    "seqId",
    "subSeqId",
    "altSeqId",
    "dir",
    "mod",
    "op",
    "tid",
    "device",
    "stream",
    "grid",
    "block",
    "kLongName",
)

DictColumns = Mapping[str, Column | SeqMarkers]


def in_order(columns: DictColumns) -> DictColumns:
    """Order the columns as in a dict line; missing keys are omitted."""
    return {key: columns[key] for key in KEYS if key in columns}


def write(columns: DictColumns, file: BinaryIO) -> None:
    """Write the lines. `ast.literal_eval` reads them back, with tuples of strings as lists."""
    write_objects(in_order(columns), PYTHON, file)
