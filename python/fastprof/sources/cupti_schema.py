"""Columns that CUPTI's tables have under the same names in Nsight Systems exports and NVProf files.

Source of names and meanings: the activity structures of https://docs.nvidia.com/cupti/.
"""

from __future__ import annotations

from fastprof import _column
from fastprof.sources.database import Field

I64, I32 = _column.I64, _column.I32


def work_fields() -> list[Field]:
    """Of all GPU work."""
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("deviceId", I32),
        Field("contextId", I32),
        Field("streamId", I32),
        Field("graphId", I32),
    ]


def kernel_fields() -> list[Field]:
    """Of kernels, beside those of all work."""
    sizes = [
        Field(size + axis, I32, array=size, side=side)
        for size in ("grid", "block")
        for side, axis in enumerate("XYZ")
    ]
    return [
        *sizes,
        Field("registersPerThread", I32),
        Field("staticSharedMemory", I32),
        Field("dynamicSharedMemory", I32),
        Field("graphNodeId", I64),
    ]


def copy_fields() -> list[Field]:
    """Of memory copies and memsets, beside those of all work."""
    return [
        Field("bytes", I64),
        Field("copyKind", I32),  # CUpti_ActivityMemcpyKind
        Field("graphNodeId", I64),
    ]
