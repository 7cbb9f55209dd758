"""All API calls of an Nsight Systems export, read together with its kernels.

Allocations and frees of an Nsight Systems export: `nsys profile --cuda-memory-usage=true`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Int32
from fastprof.model.metadata import MANAGED, PINNED, Memory
from fastprof.model.timeline import KeptHost, RecordedCalls
from fastprof.model.trace import Kernels, Launches
from fastprof.readers.lost_launches import lost_launches
from fastprof.readers.nsys import host_events, schema
from fastprof.readers.nsys.launches import LaunchReading, process_of
from fastprof.readers.nsys.pieces import Pieces
from fastprof.readers.nsys.schema import texts_of
from fastprof.readers.sqlite.database import Database, TableColumns


class ReadingAll(LaunchReading):
    """The table of API calls while it is read; all calls are kept.

    Calls have their own pools: those of the Recording contain what its launches and ranges use.
    """

    def _pieces(self, database: Database, pools: schema.NsysPools, n_kernels: int) -> Pieces:
        self._own = schema.NsysPools()
        return Pieces(database, schema.LAUNCHES, schema.call_fields, lambda: None)

    def adopt(self, pools: schema.NsysPools) -> None:
        """As in Reading."""
        self.pieces.adopt(self._own)
        self._calls = calls = self.pieces.together()
        np.maximum(calls["start"], calls["end"], out=calls["end"])
        keys = self._own.threads.values() >> self._shift
        results = [pools.processes.find(key) for key in keys.tolist()]
        process = take(np.array(results, np.int32), calls["globalTid"])
        self._launches = self._join.matching(process, calls["correlationId"])
        self._find_lost(np.array(results, np.int32))
        self._ids = {
            "globalTid": self._interned("globalTid", self._own.threads, pools.threads),
            "nameId": self._interned("nameId", self._own.strings, pools.strings),
        }

    def _find_lost(self, process_of_thread: Int32) -> None:
        """Set `lost`.

        process_of_thread : [own threads]
        """
        calls = self._calls
        worked = np.zeros(len(calls["start"]), bool)
        worked[self._launches] = True
        meaning = take(self._effects_of(self._own), calls["nameId"])
        rows = np.flatnonzero((meaning != -1) & ~worked)
        self.lost = lost_launches(
            meaning[rows], calls["start"][rows], calls["globalTid"][rows],
            np.zeros(len(rows), bool), process_of_thread,
        )  # fmt: skip

    def _interned(self, name: str, own: Any, pool: Any) -> Int32:
        """The ids of a column of launches in a pool of the Recording."""
        column, values = self._calls[name][self._launches], own.values().tolist()
        ids, first = alike([column])
        of_first = [pool.intern(values[i]) if i >= 0 else -1 for i in column[first].tolist()]
        return take(np.array(of_first, np.int32), ids)

    def _columns(self) -> TableColumns:
        """As in Reading."""
        rows = self._launches
        return {
            "start": self._calls["start"][rows],
            "correlationId": self._calls["correlationId"][rows],
            **self._ids,
        }

    def finish(
        self, pools: schema.NsysPools, kernels: Kernels, nodes: dict[str, Any] | None
    ) -> Launches:
        """As in Reading."""
        launches = super().finish(pools, kernels, nodes)
        known = [pools.threads.find(key) for key in self._own.threads.values().tolist()]
        self.lost.thread = take(np.array(known, np.int32), self.lost.thread)
        rows = self._join.rows(kernels.process, kernels.correlation)
        self._of_kernel = take(self._launches.astype(np.int32), rows)
        return launches

    def host(self, database: Database) -> KeptHost:
        """As in Reading."""
        own, calls = self._own, self._calls
        syncs = host_events.syncs(database, own)
        threads = own.threads.values()
        numbers = np.arange(len(threads), dtype=np.int32)
        return KeptHost(
            calls=RecordedCalls(
                start=calls["start"],
                end=calls["end"],
                thread=calls["globalTid"],
                name=calls["nameId"],
                correlation=calls["correlationId"],
            ),
            syncs=syncs,
            memory=read(database),
            strings=texts_of(database, own.strings),
            threads=(threads & schema.LOW_24_BITS).astype(np.int32),
            process_of_thread=process_of(numbers, own, schema.PROCESS_SHIFT),
            processes=schema.process_ids(own.processes.values()),
            call_of_kernel=self._of_kernel,
        )


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
