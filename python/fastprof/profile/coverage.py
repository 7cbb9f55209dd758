"""Coverage: the share of GPU time with a known launch, range, operator, ...; contents counted."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core._groups import sum_where
from fastprof._core._take import distinct
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.model.arrays import Bools, ByNumber, Int32, Int64, unique
from fastprof.model.call import Call, Tensor
from fastprof.model.columns import Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Activity, Trace
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.calls import ANNOUNCED, CallsOfKernels, Named
from fastprof.profile.program import TORCH, TRAINING, Program, program_of
from fastprof.profile.steps.losses import ranges_without_work

NO_SHAPES = "its range has no shapes (record_shapes=True records them)"
SHAPES_MISSING = "its range has no shapes, though record_shapes was on"
NEVER_HAS_SHAPES = "such a range never has shapes, and no operator inside it launched these kernels"
_NO_ARGUMENTS = frozenset({NO_SHAPES, SHAPES_MISSING, NEVER_HAS_SHAPES})


class RowCalls(NamedTuple):
    """The calls of rows: those of `CallsOfKernels`."""

    named: Sequence[Named]
    call: Int32
    backward: Bools

    @classmethod
    def of(cls, calls: CallsOfKernels, rows: Int32 | slice = slice(None)) -> RowCalls:
        """The calls of some kernels."""
        return cls(calls.named, calls.call[rows], calls.backward[rows])


class Without(enum.Enum):
    """Why the operator of a kernel is unknown."""

    LAUNCH = "launched before the recording began"
    RANGE = "launched outside all ranges; fastprof info says what to record"
    OPERATOR = "launched inside ranges that are not operators; fastprof info says what to record"
    CAPTURE = (
        "replayed from a graph: the trace of the graph's capture contains its operators "
        "(--graph-capture TRACE)"
    )
    NODES = "a graph recorded as a whole (nsys profile --cuda-graph-trace=node records its kernels)"


@dataclass(frozen=True, slots=True)
class UnknownCost:
    """An operator whose FLOPs are unknown.

    Parameters
    ----------
    op : its name with its module, None for kernels outside all operators
    direction : "fprop", "bprop", or "na" outside all operators
    kernels : number of its kernels
    time : their GPU time, ns
    reason : why its cost is unknown
    """

    op: str | None
    direction: str
    kernels: int
    time: int
    reason: str


class _Uncosted(NamedTuple):
    """Kernels of unknown cost by call (or reason for having none) and direction.

    Parameters
    ----------
    names : [n] the call or the reason
    backward : [n] 1 in the backward pass, else 0
    kernels : int64 [n], their number
    time : int64 [n], their GPU time, ns
    """

    names: list[Named | Without]
    backward: list[int]
    kernels: Int64
    time: Int64

    def rows(self) -> Iterator[tuple[Named | Without, str, int, int]]:
        """Name, direction, number of kernels and their time."""
        sums = self.kernels.tolist(), self.time.tolist()
        for name, backward, kernels, time in zip(self.names, self.backward, *sums, strict=True):
            yield name, _direction(name, backward), kernels, time


@dataclass(frozen=True)
class Coverage:
    """How much of the GPU time is known, by depth.

    Parameters
    ----------
    total : GPU time of all kernels, ns
    known : GPU time by depth, ns: of kernels with a launch, a range, an op, shapes, a known cost, a
        source line
    kernels : number of kernels
    record_shapes : whether torch recorded the shapes of any call
    """

    total: int
    known: dict[str, int]
    kernels: int
    record_shapes: bool
    _unknown: _Uncosted

    def __str__(self) -> str:
        parts = (f"{name} {self._percent(time)}" for name, time in self.known.items())
        text = f"GPU time {self.total / 1e6:.3f} ms, known: {', '.join(parts)}"
        names = {_qualified(name) for name, *_ in self._unknown.rows()} - {None}
        if names:
            rows = self._unknown.rows()
            time = sum(time for name, _, _, time in rows if isinstance(name, Named))
            one = "1 operator has" if len(names) == 1 else f"{len(names)} operators have"
            text += f"; {one} no known cost, {self._percent(time)}: --unknown lists them"
        return text

    def _percent(self, time: int) -> str:
        return f"{100 * time / self.total if self.total else 0:.1f} %"

    def unknown(self) -> list[UnknownCost]:
        """The operators whose FLOPs are unknown, longest GPU time first.

        Calls of one operator with the same reason are one entry.
        """
        merged: dict[tuple[str | None, str, str], tuple[int, int]] = {}
        for name, direction, kernels, time in self._unknown.rows():
            key = _qualified(name), direction, self._reason(name, direction)
            before = merged.get(key, (0, 0))
            merged[key] = before[0] + kernels, before[1] + time
        entries = [
            UnknownCost(op, direction, kernels, time, reason)
            for (op, direction, reason), (kernels, time) in merged.items()
        ]
        return sorted(entries, key=lambda entry: (-entry.time, entry.op or "", entry.reason))

    def without_formula(self) -> dict[str, int]:
        """The GPU time, ns, of each operator whose arguments are known, but not its FLOPs."""
        times: dict[str, int] = {}
        for name, direction, _, time in self._unknown.rows():
            op = _qualified(name)
            if op is not None and self._reason(name, direction) not in _NO_ARGUMENTS:
                times[op] = times.get(op, 0) + time
        return times

    def without(self, why: Without) -> int:
        """GPU time, ns, of kernels whose operator is unknown for this reason."""
        return sum(time for name, _, _, time in self._unknown.rows() if name is why)

    def _reason(self, name: Named | Without, direction: str) -> str:
        if isinstance(name, Without):
            return name.value
        if name.call is None:
            if name.mod is None and ANNOUNCED.match(name.op or ""):
                return NEVER_HAS_SHAPES
            return SHAPES_MISSING if self.record_shapes else NO_SHAPES
        return ops.why_unknown(name.call, direction) or "its formula gives no FLOPs"

    def unknown_text(self) -> str:
        """The entries of `unknown` as lines, with their shares of the GPU time."""
        if not self.kernels:
            return "no kernels, no costs; fastprof info says what to record"
        lines = [
            f"{self._percent(cost.time):>8} {cost.kernels:>9} kernels  {cost.direction:<5}"
            f"  {cost.op or '(no operator)'}: {cost.reason}"
            for cost in self.unknown()
        ]
        return "\n".join(["no known cost:", *lines] if lines else ["every cost is known"])


def _qualified(name: Named | Without) -> str | None:
    if isinstance(name, Without) or name.op is None:
        return None
    return f"{name.mod}.{name.op}" if name.mod else name.op


def cover(
    duration: Int64,
    launched: Bools,
    inside: Bools,
    lines: Values,
    calls: RowCalls,
    costed: Bools,
    record_shapes: bool,
    kernels: Int64 | None = None,
    counted: Bools | None = None,
    graphs: Callable[[], Sequence[Bools]] | None = None,
) -> Coverage:
    """Sum the known GPU time, by depth.

    Parameters
    ----------
    duration : ns [rows]; -1: unknown, counts as 0
    launched, inside : [rows] whether a launch, a range is known
    lines : tuples [rows], the source lines of each
    calls : [rows]
    costed : [rows] whether the FLOPs are known
    record_shapes : whether torch recorded the shapes of any call
    kernels : [rows] the kernels that each row stands for; default: one
    counted : [rows] which rows count; default: all
    graphs : returns two flags [rows]: replayed by a graph launch; a graph recorded as a whole; or
        nothing, if no row is of a graph
    """
    time = duration if duration.min(initial=0) >= 0 else np.maximum(duration, 0)
    if counted is not None:
        time = np.where(counted, time, 0)
    has_lines = np.array([bool(value) for value in lines.values] + [False])
    has_arguments = np.array([name.call is not None for name in calls.named] + [False])
    depths = {
        "launch": launched,
        "range": inside,
        "op": calls.call >= 0,
        "shapes": has_arguments[calls.call],
        "cost": costed,
        "source line": has_lines[lines.ids],
    }
    known = {name: int(time[rows].sum()) for name, rows in depths.items()}
    rows = np.flatnonzero(~costed if counted is None else ~costed & counted)
    why = np.where(launched, np.where(inside, _OPERATOR, _RANGE), _LAUNCH).astype(np.int32)
    if graphs is not None and np.any(calls.call[rows] < 0):
        for flags, number in zip(graphs(), (_CAPTURE, _NODES), strict=False):
            why[flags] = number
    if kernels is None:
        kernels = np.ones(len(time), np.int64)
    n = int(kernels.sum() if counted is None else kernels[counted].sum())
    unknown = _unknown(rows, calls, time, kernels, why)
    return Coverage(int(time.sum()), known, n, record_shapes, unknown)


_WHYS = list(Without)
_LAUNCH, _RANGE, _OPERATOR, _CAPTURE, _NODES = range(len(_WHYS))


def _unknown(
    rows: npt.NDArray[np.intp], calls: RowCalls, time: Int64, kernels: Int64, why: Int32
) -> _Uncosted:
    call = calls.call[rows]
    name = np.where(call >= 0, call + len(_WHYS), why[rows]).astype(np.int32)
    n = len(_WHYS)
    used, place = distinct(name * 2 + calls.backward[rows], 2 * (n + len(calls.named)))
    sums = np.zeros((2, len(used)), np.int64)
    np.add.at(sums[0], place, kernels[rows])
    np.add.at(sums[1], place, time[rows])
    names = [_WHYS[key // 2] if key < 2 * n else calls.named[key // 2 - n] for key in used]
    return _Uncosted(names, [key % 2 for key in used], *sums)


def _direction(name: Named | Without, backward: int) -> str:
    if backward:
        return "bprop"
    return "na" if isinstance(name, Without) else "fprop"


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
    lost_launches : int
        Number of further calls, which launched kernels that are not in the file.
    truncated_stacks : int
        Number of launches in Python functions whose callers are not in the file.
    ranges_without_work : int
        Number of the user's ranges that launch work, of which none is in the file.
    open_ranges : int
        Number of ranges that were open when the recording ended.
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
    lost_launches: int
    truncated_stacks: int
    ranges_without_work: int
    open_ranges: int
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
        lost_launches=len(trace.lost),
        truncated_stacks=len(trace.truncated),
        ranges_without_work=ranges_without_work(trace),
        open_ranges=trace.open_ranges,
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
        lost_launches=0,
        truncated_stacks=0,
        ranges_without_work=0,
        open_ranges=0,
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
    result = {}
    for activity in Activity:
        rows = kind == activity
        if n := int(kernels[rows].sum()):
            result[activity.name.lower()] = n, int(time[rows].sum())
    return result


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
    ranges: dict[str, int] = {}
    for meaning, n in zip(meanings, counts, strict=True):
        if n:
            name = RANGES[meaning.kind]
            ranges[name] = ranges.get(name, 0) + n
    if len(trace.phases):
        ranges["phases"] = len(trace.phases)
    return ranges


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
