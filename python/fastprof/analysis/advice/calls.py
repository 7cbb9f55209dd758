"""Groups of equal calls, their time in a step, and what a rule found in them.

The calls of a group have the same GPU, phase, direction, layer (indices folded), source line,
operator and shapes. A trace of a million kernels has a few thousand groups, so rules are plain
Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.regex import regex
from fastprof._system.threads import computed_once
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.grouping import Grouping, group, numbers, texts
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.ideal import Ideals, ideals_of
from fastprof.model.arrays import Bools, Int32
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.numbers import quantity, without_index
from fastprof.profile.data import ProfileData
from fastprof.profile.program import Program
from fastprof.profile.steps.kernel_steps import StepsOfKernels

Judgement = TypeVar("Judgement")

_KEYS = ("device", "phase", "dir", "line", "op", "shape")
_OPTIMIZER = "optimizer"
_OF_PART: Final = {
    "name": "name", "kernel": "kernel", "kind": "class", "compute_type": "compute_type", "tc": "tc",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelPart:
    """The kernels of a call group that have one name, class and grid.

    Attributes
    ----------
    id : int
        Its index, unique in the profile.
    name, kernel : str
        Full and short name; "" if the capture lacks it.
    kind : str
        Class: gemm, elementwise, copy, ...
    compute_type : str or None
    tc : str or None
        "1" uses tensor cores, "0" does not, "-" cannot.
    is_helper : bool
        It has no share of the call's cost.
    blocks : int or None
        Blocks of the grid.
    kernels : float
        Kernels a step, the mean over GPUs, as are the following.
    ns : float
        GPU time a step.
    ideal_ns : float
        Time a step at the practical roof; 0 if unknown.
    has_ideal : bool
        Whether `ideal_ns` is known.
    bytes : float
        Bytes read and written a step; 0 if unknown.
    flops : float
        FLOPs a step; 0 if unknown.
    """

    id: int
    name: str
    kernel: str
    kind: str
    compute_type: str | None
    tc: str | None
    is_helper: bool
    blocks: int | None
    kernels: float
    ns: float
    ideal_ns: float
    has_ideal: bool
    bytes: float
    flops: float

    @property
    def ns_per_kernel(self) -> float:
        """Mean GPU time of a kernel."""
        return self.ns / self.kernels


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls that agree in the attributes from `device` to `shape`.

    Attributes
    ----------
    device : Device
        One of the GPUs of this model.
    layer : tuple of str
        Enclosing layers, outermost first, indices folded.
    phase, dir, line, op, shape : str or None
    calls : float
        Calls a step.
    first : int
        The first kernel row.
    parts : list of KernelPart
    ns : float
        GPU time a step.
    ideal_ns : float
        Time a step at the practical roof.
    kernels : float
        Kernels a step.
    kind : str
        The class of most of its time.
    has_ideal : bool
        Whether the ideal time of all work is known.
    """

    device: Device
    layer: tuple[str, ...]
    phase: str | None
    dir: str | None
    line: str | None
    op: str | None
    shape: str | None
    calls: float
    first: int
    parts: list[KernelPart] = field(repr=False)
    ns: float
    ideal_ns: float
    kernels: float
    kind: str
    has_ideal: bool

    @property
    def kernels_per_call(self) -> float:
        """Kernels of a call, 0 if calls are not recorded."""
        return self.kernels / self.calls if self.calls else 0.0

    @property
    def ns_per_kernel(self) -> float:
        """Mean GPU time of its kernels."""
        return self.ns / self.kernels if self.kernels else 0.0


@dataclass(frozen=True)
class CallGroups:
    """The call groups of a profile.

    Attributes
    ----------
    groups : list of CallGroup
        In order of their first kernel.
    part_of_kernel : int32 [kernels]
        `Part.id` of each.
    optimizer_ns : float
        From the first to the last kernel of the optimizer in a step; 0 without steps or times.
    program : Program
        What kind of program it is.
    """

    groups: list[CallGroup]
    part_of_kernel: Int32
    optimizer_ns: float = 0.0
    program: Program = field(default_factory=Program)
    _judged: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def judged(self, judge: Callable[[CallGroups], Judgement]) -> Judgement:
        """judge(calls), which is computed once: rules share what they judge."""
        if judge not in self._judged:
            self._judged[judge] = judge(self)
        result: Judgement = self._judged[judge]
        return result

    @computed_once
    def has_ops(self) -> bool:
        """Whether operators are recorded."""
        return any(call_group.op for call_group in self.groups)

    @computed_once
    def has_shapes(self) -> bool:
        """Whether the shapes of calls are recorded."""
        return any(call_group.shape for call_group in self.groups)

    @computed_once
    def ns(self) -> float:
        """GPU time a step."""
        return sum(call_group.ns for call_group in self.groups)

    @computed_once
    def kernel_ns(self) -> float:
        """GPU time a step without copies and memsets."""
        parts = (part for call_group in self.groups for part in call_group.parts)
        return sum(part.ns for part in parts if part.kind not in ("memcpy", "memset"))


def calls_of(
    profile: ProfileData,
    devices: Mapping[int, Device],
    is_in: Bools,
    n_steps: int,
    steps: StepsOfKernels | None,
) -> CallGroups:
    """The call groups of a profile.

    devices : the GPUs by number, with the user's peaks
    is_in : bool [kernels], those of the steps that count
    n_steps : steps times GPUs, which times are divided by
    steps : None if the capture is one step
    """
    # First of all: phases take memory that is free again when the groups need it.
    span = 0.0 if steps is None else _optimizer_ns(profile, steps, is_in) / n_steps
    cells = cells_of(profile, _KEYS)
    keys = {name: key_of(cells, name) for name in _KEYS}
    layers = texts(cells, "layer").mapped(lambda names: tuple(map(without_index, names)))
    model = keys["device"].mapped(lambda number: devices[number].name or "")
    of_name: dict[str | None, Device] = {device.name or "": device for device in devices.values()}
    of_name[None] = Device(None)
    grouping = group([model, layers, *(keys[name] for name in _KEYS[1:])], len(cells))
    of_part, parts = _parts(
        cells, grouping, is_in, ideals_of(cells, devices, "practical"), 1 / n_steps
    )
    n_calls = _objects(_calls(cells, grouping, is_in) / n_steps)
    first = np.full(grouping.n, len(profile), np.int64)
    np.minimum.at(first, grouping.ids, cells.first)
    groups = [
        CallGroup(
            of_name[model.at(row)],
            layers.at(row) or (),
            **{name: keys[name].at(row) for name in _KEYS[1:]},
            calls=n,
            first=int(first[i]),
            parts=parts[i],
            ns=_total([part.ns for part in parts[i]]),
            ideal_ns=_total([part.ideal_ns for part in parts[i]]),
            kernels=_total([part.kernels for part in parts[i]]),
            kind=max(parts[i], key=lambda part: (not part.is_helper, part.ns)).kind,
            has_ideal=all(part.has_ideal for part in parts[i]),
        )
        for i, (row, n) in enumerate(zip(grouping.first.tolist(), n_calls, strict=True))
        if parts[i]
    ]
    groups.sort(key=lambda call_group: call_group.first)
    program = profile.contents.program
    return CallGroups(groups, take(of_part, cells.of_kernel), span, program)


def _total(values: list[float]) -> float:
    """The sum; a single number itself, which its part has too: a capture may have many groups."""
    return values[0] if len(values) == 1 else sum(values)


def _optimizer_ns(profile: ProfileData, steps: StepsOfKernels, is_in: Bools) -> float:
    """The length of the optimizer's work, the sum over steps and GPUs; 0 without times."""
    phase = key_of(profile, "phase")
    if "start" not in profile.names or _OPTIMIZER not in phase.values:
        return 0.0
    rows = np.flatnonzero(is_in & (phase.ids == phase.values.index(_OPTIMIZER)))
    if not len(rows):
        return 0.0
    device = key_of(profile, "device")
    place = steps.of_kernel[rows].astype(np.int64) * len(device.values) + device.ids[rows]
    order = np.argsort(place, kind="stable")
    begins = np.flatnonzero(np.diff(place[order], prepend=-1))
    start, end = (numbers(profile, name)[rows][order] for name in ("start", "end"))
    return float((np.maximum.reduceat(end, begins) - np.minimum.reduceat(start, begins)).sum())


def _calls(cells: ReportCells, grouping: Grouping, is_in: Bools) -> npt.NDArray[np.int64]:
    """[groups] Distinct calls in the counted steps; kernels where calls are not recorded."""
    if "call" not in cells.names:
        return grouping.counts
    ids = np.where(is_in, numbers(cells.profile, "call"), -1).astype(np.int32)
    return cells.grouped(grouping).distinct_counts(ids)


def _parts(
    cells: ReportCells, grouping: Grouping, is_in: Bools, ideal: Ideals, per: float
) -> tuple[Int32, list[list[KernelPart]]]:
    """`Part.id` of each cell, and of each group the parts with kernels in the counted steps.

    per : the factor of times to a step and GPU
    """
    columns = {field: texts(cells, name) for field, name in _OF_PART.items()}
    for name in ("name", "kernel", "kind"):  # the capture may lack names
        columns[name] = columns[name].completed("")
    blocks, helper = _blocks(cells), numbers(cells, "helper") == 1
    keys = [
        Values(grouping.ids, [None] * grouping.n),
        *columns.values(),
        _key(blocks),
        _key(helper),
    ]
    of_part = group(keys, len(cells))
    all_time = np.maximum(numbers(cells, "sil"), 0)
    time = cells.sum_where(numbers(cells.profile, "sil"), is_in)
    share = np.divide(time, all_time, out=np.zeros(len(cells)), where=all_time > 0) * per
    n = np.bincount(cells.of_kernel[is_in], minlength=len(cells))
    sums = [
        _objects(of_part.sums(values * share))
        for values in (
            all_time,
            ideal.ideal,
            *(np.maximum(numbers(cells, name), 0) for name in ("bytes", "flops")),
        )
    ]
    kernels = _objects(of_part.sums(n) * per)
    parts: list[list[KernelPart]] = [[] for _ in range(grouping.n)]
    for i, row in enumerate(of_part.first.tolist()):
        if kernels[i]:
            ns, best, moved, work = (each[i] for each in sums)
            parts[grouping.ids[row]].append(
                KernelPart(
                    i,
                    **{field: column.at(row) for field, column in columns.items()},
                    is_helper=bool(helper[row]),
                    blocks=int(blocks[row]) if blocks[row] >= 0 else None,
                    kernels=kernels[i],
                    ns=ns,
                    ideal_ns=best,
                    has_ideal=bool(ideal.is_counted[row]),
                    bytes=moved,
                    flops=work,
                )
            )
    return of_part.ids, parts


def _objects(numbers: npt.NDArray[np.float64]) -> list[float]:
    """The numbers as a list, in which equal ones are one object: a capture may have many groups."""
    distinct, place = np.unique(numbers, return_inverse=True)
    result: list[float] = np.array(distinct.tolist(), object)[place].tolist()
    return result


def _blocks(cells: ReportCells) -> npt.NDArray[np.int64]:
    """[cells] The number of blocks; -1 if unknown."""
    grid = numbers(cells, "grid").astype(np.int64)
    return np.where(grid[:, 0] < 0, -1, grid.prod(axis=1))


def _key(values: npt.NDArray[Any]) -> Values:
    """Numbers as a key."""
    distinct, ids = np.unique(values, return_inverse=True)
    return Values(ids.astype(np.int32), distinct.tolist())


_NAME: Final = 60  # characters of a kernel's name


@dataclass(frozen=True)
class CallFinding:
    """A finding about calls.

    Parameters
    ----------
    what : one sentence
    groups : the calls concerned, the most important first
    saved : upper bound of the saving a step, ns, by `Part.id`; at most the part's time
    evidence : numbers and names by label; `_ns` and `_share` at the end of a label are units
    remedy : one or two changes, the simplest first
    confidence : "high", "medium" or "low"
    why : the reason for the confidence
    idle_ns : the saving a step of idle time by cause, ns
    cause, effect : see `Finding`
    """

    what: str
    groups: Sequence[CallGroup]
    saved: Mapping[int, float]
    evidence: Mapping[str, Any]
    remedy: tuple[str, ...]
    confidence: str
    why: str
    idle_ns: Mapping[str, float] = field(default_factory=dict)
    cause: str = ""
    effect: str = ""

    @property
    def saving_ns(self) -> float:
        """The saving of GPU time a step."""
        return sum(self.saved.values())

    def finding(self, calls: CallGroups) -> Finding:
        """The same for the report."""
        is_saved = np.zeros(max(self.saved, default=0) + 2, bool)
        is_saved[[part for part, ns in self.saved.items() if ns > 0]] = True
        place = np.minimum(calls.part_of_kernel, len(is_saved) - 1)  # the last is False
        return Finding(
            what=f"{self.what}.",
            remedy="; ".join(self.remedy),
            where=_where(self.groups),
            evidence="; ".join(_item(key, value) for key, value in self.evidence.items()),
            confidence=self.confidence,
            why=self.why,
            idle_ns=self.idle_ns,
            kernels=np.flatnonzero(is_saved[place]),
            gpu_ns=self.saving_ns,
            cause=self.cause,
            effect=self.effect,
        )


def _where(groups: Sequence[CallGroup]) -> str:
    """The first group in words, and how many others there are."""
    first = groups[0]
    call = " ".join(filter(None, [first.op, (first.shape or "").rstrip(",")]))
    places = [":".join(first.layer[-3:]), first.line]
    parts = [f"{calls_text(first.calls)} {call}" if call else "", *places]
    others = f"and {len(groups) - 1} more" if len(groups) > 1 and any(parts) else ""
    return ", ".join(filter(None, [*parts, others]))


def cut_tensors(text: str) -> str:
    """A text with long lists of tensors, as those of the optimizer, cut to their number and first.

    `148 tensors [1024,1024]fp32 ...`
    """
    return _TENSORS.sub(_cut, _TUPLES.sub(_cut, text))


def _cut(found: re.Match[str]) -> str:
    tensors = operands(found[0])
    first = f"[{','.join(map(str, tensors[0].shape))}]{tensors[0].type}"
    return f"{len(tensors)} tensors {first} ..."


_MANY: Final = 9  # tensors in a list that is cut
_TENSORS: Final = regex(rf"\[[\d,]*\]\w+(?:;\[[\d,]*\]\w+){{{_MANY - 1},}}")
_TUPLES: Final = regex(rf"T=\[\([\d,]*\)(?:,\([\d,]*\)){{{_MANY - 1},}}\],\[(?:'\w*',?)+\]")


def _item(key: str, value: Any) -> str:
    """A label with its value."""
    label = key.removesuffix("_ns").removesuffix("_share").replace("_", " ")
    label = {"gpu": "GPU time"}.get(label, label) if key.endswith("_ns") else label
    if key.endswith("_ns"):
        return f"{label} {quantity(round(value), 'ns')}"
    if key.endswith("_share"):
        return f"{label} {value:.1%}"
    if isinstance(value, float):
        return f"{label} {value:.4g}"
    return f"{label} {str(value)[:_NAME]}"


def by_time(groups: Iterable[CallGroup]) -> list[CallGroup]:
    """The groups with the most time first."""
    return sorted(groups, key=lambda call_group: -call_group.ns)


def calls_text(n: float) -> str:
    """`24 x`, or `2.5 x` for a mean."""
    return f"{n:.3g} x" if n < 100 else f"{n:.0f} x"


def share_text(part: float, all_: float) -> str:
    """A share in percent."""
    return f"{part / all_:.0%}" if all_ else "0%"


def spread(parts: Iterable[KernelPart], saving: float) -> dict[int, float]:
    """A saving divided over parts by their time."""
    members = list(parts)
    total = sum(part.ns for part in members)
    return {part.id: saving * part.ns / total for part in members if total}


def claimed_by(
    calls: CallGroups, *judges: Callable[[CallGroups], list[CallFinding]]
) -> frozenset[int]:
    """The parts (`Part.id`) of which findings of some rules save time."""
    return frozenset(
        part
        for judge in judges
        for finding in calls.judged(judge)
        for part, ns in finding.saved.items()
        if ns > 0
    )


_SIZE: Final = regex(r"(?<!\w)([A-Za-z]\w*)=(\d+)")
_OPERAND: Final = regex(r"\[([\d,]*)\](\w*)")
_TUPLE: Final = regex(r"\(([\d,]*)\)")
_QUOTED: Final = regex(r"'(\w*)'")
_TYPE: Final = regex(r"(?:,|\A)([a-z]\w*\d\w*),?\Z")


class CallOperand(NamedTuple):
    """A tensor of a call: its shape and type."""

    shape: tuple[int, ...]
    type: str

    @property
    def elements(self) -> int:
        """The product of the shape."""
        n = 1
        for size in self.shape:
            n *= size
        return n


def sizes(shape: str | None) -> dict[str, int]:
    """The named sizes: `M=128,N=64,K=32,fp16,` has M, N and K."""
    return {name: int(value) for name, value in _SIZE.findall(shape or "")}


def operands(shape: str | None) -> list[CallOperand]:
    """The tensors: `[2,3]fp32;[3]fp32` are two, as are `T=[(2,3),(3,)],['float32','float32']`."""
    if shape and shape.startswith("T="):
        results = list(zip(_TUPLE.findall(shape), _QUOTED.findall(shape), strict=False))
    else:
        results = _OPERAND.findall(shape) if shape and shape.startswith("[") else []
    return [
        CallOperand(tuple(map(int, filter(None, dims.split(",")))), type_)
        for dims, type_ in results
    ]


def type_of(shape: str | None) -> str | None:
    """The type at the end of named sizes: `M=128,N=64,K=32,fp16,` has fp16."""
    result = _TYPE.search(shape or "")
    return result[1] if result else None
