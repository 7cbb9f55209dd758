"""Count the contents of a trace or of dict lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._groups import sum_where
from fastprof._system.classes import dataclass
from fastprof.model.arrays import Int32, Int64, unique
from fastprof.model.by_number import ByNumber
from fastprof.model.call import Call, Tensor
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Activity, Trace
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.program import TORCH, TRAINING, Program, program_of

# The name under which ranges of each kind are counted.
RANGES = {
    Kind.TORCH: "operators",
    Kind.ARGUMENT: "annotations",
    Kind.MODULE: "annotations",
    Kind.TRACE: "annotations",
    Kind.LAYER: "layers",
    Kind.USER: "user",
    Kind.FRAME: "python",
    Kind.HIDDEN: "python",
}


@dataclass(frozen=True)
class Contents:
    """Counts of the contents of a file. None: not recorded; dict lines contain only kernels.

    Parameters
    ----------
    work : dict of str to (int, int)
        By kind (kernel, graph, memcpy, memset): number and GPU time in ns. Only kinds that occur.
    span : (int, int) or None
        Start of the first and end of the last GPU work, ns on the trace's clock.
    devices : mapping of int to int
        Number of rows by device.
    processes : list of int or None
        Ids of the processes with ranges or launches.
    threads : int
        Number of threads with ranges or launches; in dict lines, with launches.
    launches : int or None
        Number of API calls that launched work.
    ranges : dict of str to int, or None
        Number of ranges by kind: operators, annotations, layers, user, python; phases (ranges
        that end on another thread). Only kinds that occur.
    shapes, types, stacks, layers, sequence_numbers : bool
        Whether any call, range or line contains them.
    program : Program
        What kind of program it is.
    """

    work: dict[str, tuple[int, int]]
    span: tuple[int, int] | None
    devices: Mapping[int, int]
    processes: list[int] | None
    threads: int
    launches: int | None
    ranges: dict[str, int] | None
    shapes: bool
    types: bool
    stacks: bool
    layers: bool
    sequence_numbers: bool
    program: Program


def contents_of(trace: Trace, attribution: Attribution) -> Contents:
    """Count the contents of a trace; linear in its rows."""
    kernels, appended = trace.kernels, trace.appended
    ranges, n_ranges = attribution.ranges, len(attribution.ranges) - appended.ranges
    n_configs = len(kernels.configs)
    of_configs = np.bincount(kernels.config, minlength=n_configs)
    time = sum_where(kernels.config, kernels.duration, None, n_configs)
    is_used = np.zeros(len(trace.launches) + 1, bool)  # the last for kernels without a launch
    is_used[kernels.launch] = True
    counts = np.bincount(ranges.label[:n_ranges], minlength=len(attribution.meanings))
    meanings = [m for m, n in zip(attribution.meanings, counts.tolist(), strict=True) if n]
    shapes, types = _tensors(m.call for m in meanings if m.call is not None and m.has_arguments)
    own_processes = trace.processes[: len(trace.processes) - appended.processes]
    pids = sorted({int(pid) for pid in own_processes.tolist() if pid >= 0})
    work = _work(kernels.configs.kind, of_configs, time)
    return Contents(
        work=work,
        span=_span(kernels.start, kernels.duration),
        devices=_counts(kernels.configs.device, of_configs),
        processes=pids,
        threads=len(trace.threads) - appended.threads,
        launches=int(np.count_nonzero(is_used[:-1])),
        ranges=_ranges(trace, attribution.meanings, counts.tolist()),
        shapes=shapes,
        types=types,
        stacks=any(m.frames for m in meanings),
        layers=any(m.kind == Kind.LAYER or m.layers for m in meanings),
        sequence_numbers=bool(np.any(ranges.seq[:n_ranges] >= 0)),
        program=program_of(
            trace.about,
            _kernel_names(trace),
            meanings,
            has_gradients=bool(np.any(ranges.seq[:n_ranges] > 0)),
            has_graphs="graph" in work,
        ),
    )


def _kernel_names(trace: Trace) -> list[str]:
    """The distinct names of kernels, without copies and memsets."""
    configs = trace.kernels.configs
    names = unique(configs.name[configs.kind == Activity.KERNEL]).tolist()
    return [name for each in names if each >= 0 and (name := trace.strings[each])]


def contents_of_lines(columns: dict[str, Any], calls: CallsOfKernels) -> Contents:
    """Count the contents of dict lines: kernels, and the ranges around their launches."""
    duration = columns["kDuration"].values
    ones = np.ones(len(duration), np.int64)
    shapes, types = _tensors([name.call for name in calls.named if name.call is not None])
    some = {key: any(columns[key].values) for key in ("layer", "trace")}
    return Contents(
        work=_work(np.zeros(len(duration), np.int32), ones, np.maximum(duration, 0)),
        span=None,
        devices=_counts(columns["device"].values, ones),
        processes=None,
        threads=len(_counts(columns["tid"].values, ones)),
        launches=None,
        ranges=None,
        shapes=shapes,
        types=types,
        stacks=some["trace"],
        layers=some["layer"],
        sequence_numbers=bool(len(columns["seqId"].values)),
        program=_of_lines(columns),
    )


def _of_lines(columns: dict[str, Any]) -> Program:
    """PyTorch, which trains if any kernel is of a backward pass."""
    directions = columns["dir"]
    if "bprop" in directions.values:
        return Program(TRAINING, "PyTorch training", "dict lines of PyProf; direction bprop")
    return Program(TORCH, "PyTorch", "dict lines of PyProf")


def _work(kind: Int32, kernels: Int64, time: Int64) -> dict[str, tuple[int, int]]:
    """Number and GPU time of each kind; kernels, time: [rows] of each row."""
    found = {}
    for activity in Activity:
        rows = kind == activity
        if n := int(kernels[rows].sum()):
            found[activity.name.lower()] = n, int(time[rows].sum())
    return found


def _span(start: Int64, duration: Int64) -> tuple[int, int] | None:
    if not len(start):
        return None
    return int(start.min()), int((start + np.maximum(duration, 0)).max())


def _counts(column: npt.NDArray[Any], kernels: Int64) -> ByNumber[int]:
    """The kernels with each number, -1 left out; kernels: [rows] of each row."""
    values, place = np.unique(column, return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, place, kernels)
    known = (values >= 0) & (counts > 0)
    distinct, ids = np.unique(counts[known], return_inverse=True)
    numbers = values[known].astype(np.int64)
    return ByNumber(numbers, ids.astype(np.int32), distinct.tolist())


def _ranges(trace: Trace, meanings: list[Meaning], counts: list[int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for meaning, n in zip(meanings, counts, strict=True):
        if n:
            name = RANGES[meaning.kind]
            found[name] = found.get(name, 0) + n
    if len(trace.phases):
        found["phases"] = len(trace.phases)
    return found


def _tensors(calls: Iterable[Call]) -> tuple[bool, bool]:
    """Whether any tensor argument has a shape, and whether any has a type."""
    shapes = types = False
    for call in calls:
        for argument in call.args:
            for each in argument.value if isinstance(argument.value, tuple) else (argument.value,):
                if isinstance(each, Tensor):
                    shapes |= bool(each.shape)
                    types |= each.dtype is not None
        if shapes and types:
            break
    return shapes, types
