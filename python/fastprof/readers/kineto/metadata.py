"""Metadata of a trace of torch.profiler: versions, GPUs, rank, names, memory events."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof.model.arrays import unique
from fastprof.model.metadata import (
    AFTER,
    UNRECORDED,
    About,
    Distributed,
    GpuFigures,
    Memory,
    positive,
    unrecorded_of,
)
from fastprof.readers.kineto.event_columns import KinetoFile
from fastprof.readers.kineto.timeline import numbers_of

_VERSION = re.compile(
    r"(cuda|cudnn|cupti|hip|rocm|roctracer|nccl|rccl|xpu|torch|pytorch)\w*_version\Z"
)
# The profiler adds text around the name: `thread 5213 (python3)`.
_THREAD = re.compile(r"thread -?\d+ \((.*)\)\Z", re.DOTALL)


def read(file: KinetoFile, threads: Collection[tuple[int, int]]) -> About:
    """Read the metadata.

    threads : process and thread ids of the threads to name
    """
    root = file.root
    plain = {key: value for key, value in root.items() if _is_plain(value)}
    schema = plain.pop("schemaVersion", None)
    distributed = root.get("distributedInfo")
    versions = {key: str(plain.pop(key)) for key in list(plain) if _VERSION.match(key)}
    if isinstance(distributed, dict) and isinstance(distributed.get("nccl_version"), str):
        versions["nccl_version"] = distributed["nccl_version"]
    about = About(
        "kineto",
        tool="torch.profiler",
        schema_version=None if schema is None else str(schema),
        versions=versions,
        settings=plain,
        gpus=_gpus(root.get("deviceProperties")),
        gpu_figures=_figures(root.get("deviceProperties")),
        distributed=_distributed(distributed),
        unrecorded=unrecorded_of(root.get(UNRECORDED), root.get(AFTER)),
    )
    _name_others(file, about)
    _read_names(file, about, set(threads))
    about.memory = _memory(file.tables["memory"])
    return about


def _memory(columns: Mapping[str, npt.NDArray[Any]]) -> Memory:
    names = set(vars(Memory())) - {"pid", "tid", "correlation"}
    return Memory(
        **{name: columns[name] for name in names},
        pid=numbers_of(columns["pid"]),
        tid=numbers_of(columns["tid"]),
        correlation=np.full(len(columns["time"]), -1, np.int64),
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _gpus(properties: Any) -> dict[int, str]:
    """Device to name. Some ROCm builds write empty names, which are skipped."""
    results = [each for each in _list(properties) if isinstance(each, dict)]
    return {
        mapping["id"]: mapping["name"]
        for mapping in results
        if type(mapping.get("id")) is int
        and isinstance(mapping.get("name"), str)
        and mapping["name"]
    }


def _figures(properties: Any) -> dict[int, GpuFigures]:
    """Figures by device. Clock and bandwidth are not recorded.

    For AMD GPUs the compute capability is the architecture number (9.4), which is skipped.
    """
    figures = {}
    for each in _list(properties):
        if isinstance(each, dict) and type(each.get("id")) is int:
            major, minor = positive(each.get("computeMajor")), each.get("computeMinor")
            is_amd = str(each.get("name", "")).startswith("AMD")
            figures[each["id"]] = GpuFigures(
                sms=positive(each.get("numSms")),
                capability=f"{major}.{minor}" if major and not is_amd else None,
                memory=positive(each.get("totalGlobalMem")),
            )
    return figures


def _name_others(file: KinetoFile, about: About) -> None:
    """Add devices of kernels without properties, if all GPUs have the same.

    With HIP_VISIBLE_DEVICES, properties are numbered by visible device, kernels by physical device.
    """
    devices = unique(file.tables["gpu"]["device"])
    for device in devices[devices >= 0].tolist():
        if len(set(about.gpus.values())) == 1:
            about.gpus.setdefault(device, next(iter(about.gpus.values())))
        if len(set(about.gpu_figures.values())) == 1:
            about.gpu_figures.setdefault(device, next(iter(about.gpu_figures.values())))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _distributed(info: Any) -> Distributed | None:
    if not isinstance(info, dict):
        return None
    backend, rank, size = (info.get(key) for key in ("backend", "rank", "world_size"))
    return Distributed(
        backend if isinstance(backend, str) else None,
        rank if type(rank) is int else None,
        size if type(size) is int else None,
        _groups(info.get("pg_config")),
    )


def _groups(config: Any) -> dict[str, tuple[int, ...]]:
    """The ranks of each process group that lists all of them."""
    result = {}
    for group in _list(config):
        if not isinstance(group, dict):
            continue
        name, ranks = group.get("pg_name"), _list(group.get("ranks"))
        if isinstance(name, str) and all(type(rank) is int and rank >= 0 for rank in ranks):
            result[name] = tuple(ranks)
    return result


def _read_names(file: KinetoFile, about: About, threads: set[tuple[int, int]]) -> None:
    """Names from metadata events; the last one counts, as in trace viewers.

    This format represents GPUs as processes and streams as threads. Their names are skipped.
    """
    events = file.tables["metadata"]
    pids = {pid for pid, _ in threads}
    columns = (events[key].tolist() for key in ("name", "value", "pid", "tid"))
    for key, value, pid, tid in zip(*columns, strict=True):
        if key < 0 or value < 0:
            continue
        name = file.names[value].strip()
        if file.names[key] == "process_name" and pid in pids:
            about.processes[pid] = name
        elif file.names[key] == "thread_name" and (pid, tid) in threads:
            match = _THREAD.match(name)
            about.threads[pid, tid] = match[1] if match else name
