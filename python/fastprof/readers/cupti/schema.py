"""Columns of CUPTI's tables with the same names in Nsight Systems exports and NVProf files.

Source of names and meanings: the activity structures of https://docs.nvidia.com/cupti/.
"""

from __future__ import annotations

from typing import Any

from fastprof._core import _column
from fastprof.readers.sqlite.database import Field

I64, I32 = _column.I64, _column.I32

SIZES, AXES = ("grid", "block"), "XYZ"
# Kinds of memory: of a copy, and of a memset in Nsight Systems exports and in NVProf files.
MEMORY = ("srcKind", "dstKind", "memKind", "memoryKind")


def config_field(name: str, kind: int = I32, pool: Any = None) -> Field:
    """A field of the launch configuration; distinct configurations are stored once."""
    return Field(name, kind, pool=pool, together=True)


def work_fields() -> list[Field]:
    """Fields of all GPU work."""
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        *map(config_field, ("deviceId", "contextId", "streamId", "graphId")),
    ]


def kernel_fields() -> list[Field]:
    """Additional fields of kernels."""
    sizes = [size + axis for size in SIZES for axis in AXES]
    others = ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory")
    return [*map(config_field, (*sizes, *others)), config_field("graphNodeId", I64)]


def copy_fields() -> list[Field]:
    """Additional fields of memory copies and memsets."""
    return [
        Field("bytes", I64),
        config_field("copyKind"),  # CUpti_ActivityMemcpyKind
        *map(config_field, MEMORY),
        config_field("graphNodeId", I64),
    ]


def sync_fields() -> list[Field]:
    """Of synchronisations."""
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("streamId", I64),
        Field("correlationId", I64),
    ]
