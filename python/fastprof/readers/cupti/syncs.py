"""CUPTI's records of synchronisation, common to Nsight Systems exports and NVProf files."""

from __future__ import annotations

import numpy as np

from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.timeline import SYNC_KINDS, RecordedSyncs
from fastprof.readers.sqlite.database import Columns


def syncs_of(
    columns: Columns, process: Int32, device: Int64, kind: Int64, is_known: bool | Bools = True
) -> RecordedSyncs:
    """The synchronisations of a table with `sync_fields`.

    is_known : whether `kind` is CUPTI's number; else it is unknown
    """
    is_known &= (kind >= 0) & (kind < len(SYNC_KINDS))
    return RecordedSyncs(
        start=columns["start"],
        end=np.maximum(columns["start"], columns["end"]),
        process=process,
        device=_narrow(device),
        stream=_narrow(columns["streamId"]),
        kind=np.where(is_known, kind, 0).astype(np.int32),
        correlation=columns["correlationId"],
    )


def _narrow(column: Int64) -> Int32:
    """int64 to int32; 0xFFFFFFFF, for none, and other values out of range are -1."""
    limit = np.iinfo(np.int32).max
    return np.where((column < 0) | (column > limit), -1, column).astype(np.int32)
