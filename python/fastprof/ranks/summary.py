"""Profile to Summary: similar kernels are grouped and added up.

A trace of a million kernels becomes some thousand rows. Later stages need no kernels.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from fastprof._core._take import distinct
from fastprof._system.classes import dataclass
from fastprof._version import __version__
from fastprof.analysis.gpu_work import busy_by_device, owners
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.profile.data import ProfileData, inside_part
from fastprof.ranks.files import TraceFile

# Grouping keys (texts), and quantities that are added up.
KEYS: Final = ("mod", "op", "layer", "dir", "class", "collective")
SUMS: Final = ("kernels", "time", "flops", "flops_kernels", "bytes", "bytes_kernels")
COMMUNICATION: Final = "communication"
# Larger sums are from damaged numbers and count as unknown.
_LARGEST: Final = float(1 << 62)


@dataclass(frozen=True)
class Groups:
    """Groups of similar kernels of one process.

    Parameters
    ----------
    process : int32 [groups], index into Summary.processes
    keys : dict of str to Values [groups]
        mod, op, layer (names joined by `:`, `-` for none), dir, class (kind of kernel as
        returned by `ops.classify`; graph, memcpy, memset), collective (communication only: the
        operator, otherwise the kernel name; unknown for other kernels).
    sums : dict of str to int64 [groups]
        kernels; time (ns); flops and bytes of the kernels with known values, -1 if there are none;
        flops_kernels and bytes_kernels: number of these kernels.
    offsets : int64 [groups + 1]
        First row of each group in the arrays below. They contain communication kernels only, and
        only if the file records start times.
    start, duration : int64, ns, in order of start
    channel : int32, index of the kernel's stream among the process' communication streams
    """

    process: Int32
    keys: dict[str, Values]
    sums: dict[str, Int64]
    offsets: Int64
    start: Int64
    duration: Int64
    channel: Int32

    def __len__(self) -> int:
        return len(self.process)


@dataclass(frozen=True)
class Process:
    """A process of a file that has work on a GPU.

    Parameters
    ----------
    pid : None if unknown
    devices : of its kernels, ascending
    kernels : number of kernels, and of copies and memsets unless the batch excludes them
    time : total GPU time of these, ns
    span : start of the first and end of the last one, ns on the file's clock; None if unknown
    busy : the share of the time, from the first to the last work of a GPU, in which any work runs;
        of all its GPUs; None if unknown
    """

    pid: int | None
    devices: tuple[int, ...]
    kernels: int
    time: int
    span: tuple[int, int] | None
    busy: float | None


@dataclass(frozen=True)
class Summary:
    """The aggregated contents of one file.

    Parameters
    ----------
    source : the file
    format : nsys, nvprof, rocpd, kineto or dict
    rank, world_size : as recorded in the file, or None
    steps : number of steps of torch.profiler's schedule
    gpu_time, coverage : ns of all kernels, and of those attributed to each depth; without copies
    warnings : problems of the file
    processes, groups : see these classes
    version : version of fastprof
    options : key of the options, see `Options.text`
    seconds : time to read and summarise the file
    """

    source: TraceFile
    format: str
    rank: int | None
    world_size: int | None
    steps: int
    gpu_time: int
    coverage: dict[str, int]
    warnings: list[str]
    processes: list[Process]
    groups: Groups
    version: str = __version__
    options: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def path(self) -> str:
        """The path as given by the user."""
        return self.source.path

    @property
    def kernels(self) -> int:
        """The number of rows in the file."""
        return sum(process.kernels for process in self.processes)


def summarise(profile: ProfileData, source: TraceFile, options: str = "") -> Summary:
    """Aggregate the kernels of a profile. Takes about a fifth of the time of `open`."""
    kernels = _Kernels(profile)
    processes, process = _processes(kernels)
    coverage = profile.coverage_of_kernels
    distributed = profile.about.distributed
    return Summary(
        source=source,
        format=profile.about.format,
        rank=None if distributed is None else distributed.rank,
        world_size=None if distributed is None else distributed.world_size,
        steps=len(profile.about.steps),
        gpu_time=coverage.total,
        coverage=dict(coverage.known),
        warnings=list(profile.warnings),
        processes=processes,
        groups=_groups(kernels, process),
        options=options,
    )


def check_summary(summary: Summary) -> None:
    """Check the types and bounds of a summary that was read from a file.

    Raises
    ------
    ValueError
        Some value is impossible.
    """
    groups, processes = summary.groups, summary.processes
    lists = (groups.start, groups.duration, groups.channel)
    is_possible = (
        all(isinstance(text, str) for text in (summary.format, *summary.warnings))
        and all(
            number is None or _is_count(number) for number in (summary.rank, summary.world_size)
        )
        and all(map(_is_count, (summary.steps, summary.gpu_time, *summary.coverage.values())))
        and all(isinstance(text, str) for text in summary.coverage)
        and _is_share(summary.seconds)
        and all(map(_is_possible, processes))
        and ((groups.process >= 0) & (groups.process < len(processes))).all()
        and all((array >= -1).all() for array in groups.sums.values())
        and (groups.sums["kernels"] >= 0).all()
        and len(groups.offsets) == len(groups) + 1
        and (np.diff(groups.offsets) >= 0).all()
        and {len(array) for array in lists} == {int(groups.offsets[-1])}
        and (groups.channel >= 0).all()
        and all(isinstance(text, str) for key in groups.keys.values() for text in key.values)
    )
    if not is_possible:
        raise ValueError("a value is impossible")


def _is_possible(process: Process) -> bool:
    numbers = (*process.devices, process.kernels, process.time)
    span = process.span or (0, 0)
    return (
        (process.pid is None or _is_count(process.pid))
        and all(map(_is_count, numbers))
        and all(type(number) is int and abs(number) < _LARGEST for number in span)
        and len(span) == 2
        and (process.busy is None or _is_share(process.busy))
    )


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < _LARGEST


class _Kernels:
    """The kernels of a profile, or those in the part of `Profile.trim`.

    Attributes
    ----------
    profile : Profile
    rows : int64 [kernels], of the profile; None for all
    """

    def __init__(self, profile: ProfileData) -> None:
        inside = inside_part(profile)
        self.profile, self.names = profile, profile.names
        self.rows: Int64 | None = None if inside is None else np.flatnonzero(inside)

    def __len__(self) -> int:
        return len(self.profile if self.rows is None else self.rows)

    def column(self, name: str) -> Column:
        """A column of the profile."""
        column = self.profile.column(name)
        return column if self.rows is None else column.take(self.rows)

    def flags(self, wanted: Bools) -> Bools:
        """bool [kernels of the profile], from those of these."""
        if self.rows is None:
            return wanted
        result = np.zeros(len(self.profile), bool)
        result[self.rows[wanted]] = True
        return result


def _processes(profile: _Kernels) -> tuple[list[Process], Int32]:
    """The processes in order of devices, then pid; and the process of each kernel."""
    n, pids = len(profile), owners(profile.profile)
    if profile.rows is not None:
        pids = pids[profile.rows]
    used, place = np.unique(pids, return_inverse=True)
    device = _ints(profile, "device").values
    time = np.maximum(_ints(profile, "sil").values, 0).astype(np.int64)
    results = []
    for number, pid in enumerate(used.tolist()):
        rows = place == number
        devices = tuple(np.unique(device[rows][device[rows] >= 0]).tolist())
        span = busy = None
        if "start" in profile.names:
            is_all = len(used) == 1 and profile.rows is None
            part = None if is_all else profile.flags(rows)
            of_gpus = busy_by_device(profile.profile, part).values()
            length = sum(gpu.span for gpu in of_gpus)
            busy = sum(gpu.busy for gpu in of_gpus) / length if length else None
            start = _ints(profile, "start").values[rows]
            span = int(start.min()), int((start + time[rows]).max())
        kernels, total = len(device[rows]), int(time[rows].sum())
        results.append(Process(pid if pid >= 0 else None, devices, kernels, total, span, busy))
    order = sorted(range(len(results)), key=lambda i: (results[i].devices, results[i].pid or -1))
    rank = np.empty(len(results), np.int32)
    rank[order] = np.arange(len(results), dtype=np.int32)
    return [results[i] for i in order], rank[place] if n else np.empty(0, np.int32)


def _groups(profile: _Kernels, process: Int32) -> Groups:
    op, kinds = _texts(profile, "op"), _texts(profile, "class")
    communicates = kinds.ids == _index(kinds.values, COMMUNICATION)
    keys = {
        "mod": _texts(profile, "mod"),
        "op": op,
        "layer": _joined(_texts(profile, "layer")),
        "dir": _texts(profile, "dir"),
        "class": kinds,
        "collective": _collectives(communicates, op, _texts(profile, "kernel")),
    }
    place, first = _together([Values(process, []), *keys.values()])
    n = len(first)
    sums = _sums(profile, place, n)
    order = np.empty(0, np.intp)
    rows = np.flatnonzero(communicates)
    if "start" in profile.names:
        order = rows[np.argsort(place[rows], kind="stable")]
    counts = np.bincount(place[order], minlength=n)
    return Groups(
        process=process[first],
        keys={name: _picked(column, first) for name, column in keys.items()},
        sums=sums,
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        start=_times(profile, "start", order),
        duration=np.maximum(_times(profile, "sil", order), 0),
        channel=_channels(process[order], _ints(profile, "stream").values[order]),
    )


def _times(profile: _Kernels, name: str, rows: npt.NDArray[np.intp]) -> Int64:
    if not len(rows):
        return np.empty(0, np.int64)
    return _ints(profile, name).values[rows].astype(np.int64)


def _ints(profile: _Kernels, name: str) -> Ints:
    return cast(Ints, profile.column(name))


def _texts(profile: _Kernels, name: str) -> Values:
    return cast(Values, profile.column(name))


def _index(values: list[Any], value: str) -> int:
    return values.index(value) if value in values else -2


def _joined(layers: Values) -> Values:
    """Layers in the notation of the report."""
    texts: dict[str, int] = {}
    numbers = [texts.setdefault(":".join(value) or "-", len(texts)) for value in layers.values]
    return Values(np.array([*numbers, -1], np.int32)[layers.ids], list(texts))


def _collectives(communicates: npt.NDArray[np.bool_], op: Values, kernel: Values) -> Values:
    """The operator of each communication kernel, otherwise its kernel name."""
    by_kernel = np.where(kernel.ids >= 0, kernel.ids + len(op.values), np.int32(-1))
    ids = np.where(op.ids >= 0, op.ids, by_kernel)
    ids = np.where(communicates, ids, -1).astype(np.int32)
    return Values(ids, [*op.values, *kernel.values])


def _together(columns: list[Values]) -> tuple[Int32, npt.NDArray[np.intp]]:
    """The group of each row, by all columns; and the first row of each group."""
    place = np.zeros(len(columns[0]), np.int32)
    n = 1
    for column in columns:
        ids = column.ids + 1
        below = int(ids.max(initial=0)) + 1
        if n * below < _DIRECT:
            used, place = distinct(place * np.int32(below) + ids, n * below)
        else:
            both = place.astype(np.int64) * below + ids
            used, place = np.unique(both, return_inverse=True)
            place = place.astype(np.int32)
        n = len(used)
    first = np.empty(n, np.intp)
    first[place[::-1]] = np.arange(len(place) - 1, -1, -1)
    return place, first


_DIRECT: Final = 1 << 24


def _picked(column: Values, rows: npt.NDArray[np.intp]) -> Values:
    """The column at some rows, without unused values."""
    used, place = distinct(np.ascontiguousarray(column.ids[rows]), len(column.values))
    values = [column.values[i] for i in used if i >= 0]
    return Values(place - np.int32(1) if used and used[0] < 0 else place, values)


def _sums(profile: _Kernels, place: Int32, n: int) -> dict[str, Int64]:
    sums = {
        "kernels": np.bincount(place, minlength=n).astype(np.int64),
        "time": _added(np.maximum(_ints(profile, "sil").values, 0), place, n),
    }
    for name in ("flops", "bytes"):
        column = _ints(profile, name)
        known = column.values >= 0
        counts = np.bincount(place[known], minlength=n).astype(np.int64)
        total = _added(np.where(known, column.values, 0), place, n)
        counts[total < 0] = 0
        sums[name] = np.where(counts > 0, total, -1)
        sums[f"{name}_kernels"] = counts
    return {name: sums[name] for name in SUMS}


def _added(values: npt.NDArray[Any], place: Int32, n: int) -> Int64:
    """Exact sums by group; -1 above the plausible maximum."""
    total = np.zeros(n, np.int64)
    np.add.at(total, place, values.astype(np.int64, copy=False))
    return np.where(np.bincount(place, values, minlength=n) < _LARGEST, total, -1)


def _channels(process: Int32, stream: npt.NDArray[Any]) -> Int32:
    """Communication streams, numbered from 0 in each process.

    Stream ids differ between ranks, but ranks create streams in the same order.
    """
    channel = np.zeros(len(stream), np.int32)
    for number in np.unique(process):
        rows = process == number
        channel[rows] = np.unique(stream[rows], return_inverse=True)[1]
    return channel
