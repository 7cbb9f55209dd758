"""Columns of GPU work of AMD's recordings to Kernels, and the kinds of copies by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import COPY_KINDS, MEMORY_KINDS, NO_TIME, Activity, Configs, Kernels

Columns = dict[str, Int64]

AXES: Final = "xyz"
_SIZES: Final = ("grid", "block")
_NOT_IN_CONFIG: Final = ("start", "end", "correlation", "bytes", "process")


def work_columns(start: Int64, end: Int64) -> Columns:
    """The columns of GPU work of which only the times are known; others are -1.

    start, end : ns, NO_TIME if not recorded
    """
    others = (
        *("process", "correlation", "device", "stream", "name", "shared_memory", "registers"),
        *("copy_kind", "source", "target", "bytes"),
        *(f"{size}_{axis}" for size in _SIZES for axis in AXES),
    )
    unknown = {key: np.full(len(start), -1, np.int64) for key in others}
    kind = np.full(len(start), Activity.KERNEL, np.int64)
    return {"start": start, "end": end, "kind": kind, **unknown}


def kernels_of(works: Sequence[Columns], copies: bool) -> Kernels:
    """GPU work in order of start, without launches.

    works : columns of `work_columns`, which are used up
    copies : also keep what is known of memory copies
    """
    first, *others = works
    columns = first
    if others:
        columns = {key: np.concatenate([work[key] for work in works]) for key in first}
    keys = [key for key in columns if key not in _NOT_IN_CONFIG]
    config, firsts = alike([columns[key] for key in keys])
    configs = {key: columns.pop(key)[firsts] for key in keys}
    duration = columns["end"] - columns["start"]
    duration[(columns.pop("end") < columns["start"]) | (columns["start"] == NO_TIME)] = -1
    columns["duration"] = duration
    if np.any(columns["start"][1:] < columns["start"][:-1]):
        order = np.argsort(columns["start"], kind="stable")
        config = config[order]
        columns = {key: column[order] for key, column in columns.items()}
    return Kernels(
        start=columns["start"],
        duration=columns["duration"],
        process=columns["process"].astype(np.int32),
        correlation=columns["correlation"],
        config=config,
        configs=_configs_of(configs, copies),
        launch=np.full(len(config), -1, np.int32),
        origin=None,
        copied=columns["bytes"] if copies else None,
    )


def _configs_of(columns: Columns, copies: bool) -> Configs:
    n = len(columns["kind"])
    nothing = np.full(n, -1, np.int32)
    grid, block = (
        np.stack([_narrow(columns[f"{size}_{axis}"]) for axis in AXES], axis=1) for size in _SIZES
    )
    for size in (grid, block):
        size[np.any(size < 0, axis=1)] = -1
    of_copies = ("copy_kind", "source", "target")
    copy_kind, source, target = (_narrow(columns[key]) if copies else None for key in of_copies)
    return Configs(
        device=_narrow(columns["device"]),
        context=nothing,
        stream=_narrow(columns["stream"]),
        name=_narrow(columns["name"]),
        grid=grid,
        block=block,
        registers=_narrow(columns["registers"]),
        shared_memory=_narrow(columns["shared_memory"]),
        graph_id=nothing,
        graph_node=np.full(n, -1, np.int64),
        kind=_narrow(columns["kind"]),
        copy_kind=copy_kind,
        source=source,
        target=target,
    )


def _narrow(column: Int64) -> Int32:
    """int64 to int32; values out of range are -1."""
    limit = np.iinfo(np.int32).max
    return np.where((column < 0) | (column > limit), -1, column).astype(np.int32)


def known(column: Int64) -> Int64:
    """Missing and negative values as -1."""
    return np.where(column < 0, np.int64(-1), column)


_HOST, _DEVICE = MEMORY_KINDS.index("host"), MEMORY_KINDS.index("device")
# A kind of copy: direction, and the kinds of memory of its ends; the names of operations with it,
# MEMORY_COPY_HOST_TO_DEVICE of rocprofiler-sdk and CopyHostToDevice of roctracer.
CopyKind = tuple[str, int, int]
_COPIES: Final = (
    (regex(r"(?i)\w*HOST_?TO_?DEVICE"), ("HtoD", _HOST, _DEVICE)),
    (regex(r"(?i)\w*DEVICE_?TO_?HOST"), ("DtoH", _DEVICE, _HOST)),
    (regex(r"(?i)\w*DEVICE_?TO_?DEVICE"), ("DtoD", _DEVICE, _DEVICE)),
    (regex(r"(?i)\w*HOST_?TO_?HOST"), ("HtoH", _HOST, _HOST)),
)
_PEER: Final = ("PtoP", _DEVICE, _DEVICE)
_UNKNOWN: Final = ("", -1, -1)


def copy_kind(operation: str | None, is_peer: bool) -> CopyKind:
    """The kind of a copy by the name of its operation.

    is_peer : whether its ends are different GPUs
    """
    if is_peer:
        return _PEER
    kinds = (kind for name, kind in _COPIES if name.match(operation or ""))
    return next(kinds, _UNKNOWN)


def copy_columns(kinds: Sequence[CopyKind], ids: Int32, add: Callable[[str], int]) -> Columns:
    """The columns of copies that their kinds decide.

    ids : the index of each copy's kind
    add : a function from a name to its index in `Recording.strings`
    """
    values = {
        "copy_kind": [COPY_KINDS.index(kind) if kind else -1 for kind, _, _ in kinds],
        "source": [memory for _, memory, _ in kinds],
        "target": [memory for _, _, memory in kinds],
        "name": [add(_copy_name(*kind)) for kind in kinds],
    }
    return {key: take(np.array(each, np.int64), ids) for key, each in values.items()}


def _copy_name(kind: str, source: int, target: int) -> str:
    """The name of a copy in the form of torch.profiler: `Memcpy HtoD (Host -> Device)`.

    source, target : indices into MEMORY_KINDS, -1 if unknown
    """
    if not kind:
        return "Memcpy"
    return f"Memcpy {kind} ({MEMORY_KINDS[source].title()} -> {MEMORY_KINDS[target].title()})"
