"""Allocations and frees of an Nsight Systems export: `nsys profile --cuda-memory-usage=true`."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof.model.metadata import MANAGED, PINNED, Memory
from fastprof.readers.nsys import schema
from fastprof.readers.sqlite.database import Database

_GPU, _CPU = 1, 0  # c10::DeviceType
# By memKind: pageable, pinned, device, array, managed, static, managed static.
_DEVICE_TYPES: Final = np.array([_CPU, PINNED, _GPU, _GPU, MANAGED, _GPU, MANAGED, -1], np.int32)


def read(database: Database) -> Memory:
    """Read the allocations of CUDA; empty if the export has none.

    Raises
    ------
    BadInputError
        The file is damaged.
    """
    rows = database.scan(schema.MEMORY, schema.memory_fields())
    kind = rows["memKind"]
    known = (kind >= 0) & (kind < len(_DEVICE_TYPES))
    device_type = _DEVICE_TYPES[np.where(known, kind, -1)]
    size = np.maximum(rows["bytes"], 0)
    is_of_cpu = (device_type == _CPU) | (device_type == PINNED)
    unknown = np.full(len(kind), -1, np.int64)
    pid = rows["globalPid"] >> schema.PROCESS_SHIFT & schema.LOW_24_BITS
    return Memory(
        time=rows["start"],
        address=rows["address"],
        bytes=np.where(rows["memoryOperationType"] == _FREE, -size, size),
        device_type=device_type,
        device=np.where(is_of_cpu, np.int32(-1), rows["deviceId"]),
        total_allocated=unknown,
        total_reserved=unknown,
        pid=np.where(pid > 0, pid, -1),
        tid=unknown,
        correlation=rows["correlationId"],
    )


_FREE: Final = 1  # memoryOperationType
