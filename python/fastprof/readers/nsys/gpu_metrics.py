"""Samples of GPU counters in an Nsight Systems export: nsys profile --gpu-metrics-devices=all.

GPU_METRICS has a row per sample and counter; TARGET_INFO_GPU_METRICS names the counters of each
type of GPU. The low byte of a type is the number of the GPU. Names differ between chips and
versions: `SM Active`, `SMs Active [Throughput %]`. Source: the SQLite schema and the list of GPU
metrics of https://docs.nvidia.com/nsight-systems/UserGuide/index.html.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._pools import pairs
from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32
from fastprof.model.timeline import METRICS, GpuSamples
from fastprof.readers.nsys import schema
from fastprof.readers.sqlite.database import Database, Field
from fastprof.readers.trace_columns import text

_SAMPLES: Final = "GPU_METRICS"
_COUNTERS: Final = "TARGET_INFO_GPU_METRICS"
_NAMES: Final = (
    ("sm_clock_hz", regex(r"(?i)GPC Clock")),
    ("sm_active", regex(r"(?i)SMs? Active")),
    ("tensor_active", regex(r"(?i)Tensor Active")),
    ("dram", regex(r"(?i)DRAM (?:Read|Write) (?:Bandwidth|Throughput)")),
    ("nvlink", regex(r"(?i)NVLink (?:RX|TX) (?:Requests|Responses) (?:User|Protocol) Data")),
)
_GPU: Final = 0xFF  # bits of a type that number the GPU
_IN_MHZ: Final = 1e6  # smaller clocks are in MHz, others in Hz whatever their name says


def gpu_samples(database: Database) -> GpuSamples | None:
    """The samples of known counters; None if the export has none.

    Raises
    ------
    BadInputError
        The file is damaged.
    """
    metric_of = _counters(database)
    if not metric_of:
        return None
    fields = [Field(name, schema.I64, needed=True) for name in _COLUMNS]
    columns = database.scan(_SAMPLES, fields)
    kind, first = pairs(*(_ids(columns[name]) for name in ("typeId", "metricId")))
    keys = zip(columns["typeId"][first].tolist(), columns["metricId"][first].tolist(), strict=True)
    known = [metric_of.get(key, -1) for key in keys]
    counters = [number for number, metric in enumerate(known) if metric >= 0]
    place = np.full(len(known) + 1, -1, np.int32)
    place[counters] = np.arange(len(counters))
    rows = np.flatnonzero(place[kind] >= 0)
    rows = rows[np.argsort(columns["timestamp"][rows], kind="stable")]
    counter = place[kind[rows]]
    metric = np.array([known[number] for number in counters], np.int32)
    value = columns["value"][rows].astype(np.float64)
    is_clock = (metric == METRICS.index("sm_clock_hz"))[counter]
    scale = np.where(value < _IN_MHZ, 1e6, 1.0)
    return GpuSamples(
        time=columns["timestamp"][rows],
        device=take(_devices(database), (columns["typeId"][rows] & _GPU).astype(np.int32)),
        counter=counter,
        value=np.where(is_clock, value * scale, value / 100),
        metric=metric,
    )


_COLUMNS: Final = ("timestamp", "typeId", "metricId", "value")


def _counters(database: Database) -> dict[tuple[int, int], int]:
    """By type and number, the metric of each counter that has one."""
    if not set(_COLUMNS) <= set(database.tables.get(_SAMPLES, ())):
        return {}
    result = {}
    columns = "typeId metricId metricName"
    for kind, number, name in schema.table_rows(database, _COUNTERS, columns):
        label = text(name) or ""
        metric = next((metric for metric, pattern in _NAMES if pattern.search(label)), None)
        if metric is not None and isinstance(kind, int) and isinstance(number, int):
            result[kind, number] = METRICS.index(metric)
    return result


def _devices(database: Database) -> Int32:
    """int32 [256], the device of kernels by the number of the GPU; of CUDA where both are known."""
    result = np.arange(_GPU + 1, dtype=np.int32)
    mapped: dict[int, set[int]] = {}
    for gpu, device in schema.table_rows(database, "TARGET_INFO_CUDA_DEVICE", "gpuId cudaId"):
        if isinstance(gpu, int) and isinstance(device, int) and 0 <= gpu <= _GPU:
            mapped.setdefault(gpu, set()).add(device)
    for gpu, devices in mapped.items():
        if len(devices) == 1:
            result[gpu] = min(devices)
    return result


def _ids(column: np.ndarray) -> Int32:
    return np.unique(column, return_inverse=True)[1].astype(np.int32)
