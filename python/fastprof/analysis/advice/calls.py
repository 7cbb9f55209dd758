"""Groups of equal calls, with their time in a step: the input of the rules of kernels.

The calls of a group have the same GPU, phase, direction, layer (indices folded), source line,
operator and shapes. A trace of a million kernels has a few thousand groups, so rules are plain
Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof.analysis.cells import Cells, cells_of, computing_costs
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.grouping import Grouping, group
from fastprof.analysis.ideal import Ideals, ideals_of
from fastprof.analysis.keys import key_of
from fastprof.analysis.measures import in_counted_steps
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.numbers import without_index
from fastprof.profile.facts import step_count
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["CallGroup", "Calls", "Part", "calls_of"]

_KEYS = ("device", "phase", "dir", "line", "op", "shape")
_SPANNED = "optimizer"


@dataclass(frozen=True)
class Part:
    """The kernels of a call group that have one name, class and grid.

    Attributes
    ----------
    id : int
        Its index, unique in the profile.
    name, kernel : str
        Full and short name.
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


@dataclass(frozen=True)
class CallGroup:
    """Calls that agree in all attributes but `calls` and `parts`.

    Attributes
    ----------
    device : Device
        One of the GPUs of this model.
    phase, dir, line, op, shape : str or None
    layer : tuple of str
        Enclosing layers, outermost first, indices folded.
    calls : float
        Calls a step.
    first : int
        The first kernel row.
    parts : list of Part
    """

    device: Device
    phase: str | None
    dir: str | None
    line: str | None
    op: str | None
    shape: str | None
    layer: tuple[str, ...]
    calls: float
    first: int
    parts: list[Part] = field(repr=False)

    @cached_property
    def ns(self) -> float:
        """GPU time a step."""
        return sum(part.ns for part in self.parts)

    @cached_property
    def ideal_ns(self) -> float:
        """Time a step at the practical roof."""
        return sum(part.ideal_ns for part in self.parts)

    @cached_property
    def kernels(self) -> float:
        """Kernels a step."""
        return sum(part.kernels for part in self.parts)

    @property
    def kernels_per_call(self) -> float:
        """Kernels of a call, 0 if calls are not recorded."""
        return self.kernels / self.calls if self.calls else 0.0

    @property
    def ns_per_kernel(self) -> float:
        """Mean GPU time of its kernels."""
        return self.ns / self.kernels if self.kernels else 0.0

    @cached_property
    def kind(self) -> str:
        """The class of most of its time."""
        return max(self.parts, key=lambda part: (not part.is_helper, part.ns)).kind

    @cached_property
    def has_ideal(self) -> bool:
        """Whether the ideal time of all work is known."""
        return all(part.has_ideal for part in self.parts)


@dataclass(frozen=True)
class Calls:
    """The call groups of a profile.

    Attributes
    ----------
    groups : list of CallGroup
        In order of their first kernel.
    n_steps : int
        Counted steps; 0 if there are none, and times are those of the capture.
    n_gpus : int
        GPUs with work.
    has_ops, has_shapes : bool
        Whether calls and their shapes are recorded.
    spans : dict of str to float
        ns a step from the first to the last kernel of the optimizer, by phase; without steps empty.
    """

    groups: list[CallGroup]
    n_steps: int
    n_gpus: int
    has_ops: bool
    has_shapes: bool
    spans: dict[str, float]

    @cached_property
    def ns(self) -> float:
        """GPU time a step."""
        return sum(each.ns for each in self.groups)

    @cached_property
    def kernel_ns(self) -> float:
        """GPU time a step without copies and memsets."""
        parts = (part for each in self.groups for part in each.parts)
        return sum(part.ns for part in parts if part.kind not in ("memcpy", "memset"))


def calls_of(profile: Profile, steps: StepsOfKernels, devices: Mapping[int, Device]) -> Calls:
    """The call groups of a profile, in counted steps or, without steps, in the capture.

    devices : the GPUs by number, with the user's peaks
    """
    with computing_costs(profile):
        cells = cells_of(profile, _KEYS)
    n_steps = 0 if steps.source == "none" else step_count(steps)
    is_in = in_counted_steps(steps) if n_steps else np.ones(len(profile), bool)
    keys = {name: key_of(cells, name) for name in _KEYS}
    layers = texts(cells, "layer").mapped(lambda names: tuple(map(without_index, names)))
    model = keys["device"].mapped(lambda number: devices[number].name)
    found = group([model, layers, *(keys[name] for name in _KEYS[1:])], len(cells))
    per = 1 / (max(n_steps, 1) * max(len(devices), 1))
    parts = _parts(cells, found, is_in, ideals_of(cells, devices, "practical"), per)
    n_calls = _calls(cells, found, is_in) * per
    first = np.full(found.n, len(profile), np.int64)
    np.minimum.at(first, found.ids, cells.first)
    groups = [
        CallGroup(
            devices[keys["device"].at(row)],
            *(keys[name].at(row) for name in _KEYS[1:]),
            layers.at(row) or (),
            n,
            int(first[i]),
            parts[i],
        )
        for i, (row, n) in enumerate(zip(found.first.tolist(), n_calls.tolist(), strict=True))
        if i in parts
    ]
    known = (any(getattr(each, name) for each in groups) for name in ("op", "shape"))
    groups.sort(key=lambda each: each.first)
    return Calls(groups, n_steps, len(devices), *known, _spans(profile, steps, is_in, per))


def _spans(
    profile: Profile, steps: StepsOfKernels, is_in: Bools, per: float
) -> dict[str, float]:
    """Mean length of the optimizer's work in a step; {} without steps or times."""
    phases = texts(profile, "phase")
    if steps.source == "none" or "start" not in profile.names or _SPANNED not in phases.values:
        return {}
    rows = np.flatnonzero(is_in & (phases.ids == phases.values.index(_SPANNED)))
    device = key_of(profile, "device")
    place = steps.of_kernel[rows].astype(np.int64) * len(device.values) + device.ids[rows]
    order = np.argsort(place, kind="stable")
    begins = np.flatnonzero(np.diff(place[order], prepend=-1))
    if not len(begins):
        return {}
    start, end = (numbers(profile, name)[rows][order] for name in ("start", "end"))
    spans = np.maximum.reduceat(end, begins) - np.minimum.reduceat(start, begins)
    return {_SPANNED: float(spans.sum() * per)}


def _calls(cells: Cells, found: Grouping, is_in: Bools) -> npt.NDArray[np.int64]:
    """[groups] Distinct calls in the counted steps; kernels where calls are not recorded."""
    if "call" not in cells.names:
        return found.counts
    ids = np.where(is_in, numbers(cells.profile, "call"), -1).astype(np.int32)
    return cells.grouped(found).distinct_counts(ids)


def _parts(
    cells: Cells, found: Grouping, is_in: Bools, ideal: Ideals, per: float
) -> dict[int, list[Part]]:
    """The parts of each group with kernels in the counted steps.

    per : the factor of times to a step and GPU
    """
    names = ("name", "kernel", "class", "compute_type", "tc")
    columns = [texts(cells, name) for name in names]
    blocks, helper = _blocks(cells), numbers(cells, "helper") == 1
    keys = [Values(found.ids, [None] * found.n), *columns, _key(blocks), _key(helper)]
    of_part = group(keys, len(cells))
    all_time = np.maximum(numbers(cells, "sil"), 0)
    time = cells.sum_where(numbers(cells.profile, "sil"), is_in)
    share = np.divide(time, all_time, out=np.zeros(len(cells)), where=all_time > 0) * per
    n = np.bincount(cells.of_kernel[is_in], minlength=len(cells))
    sums = [
        of_part.sums(values * share).tolist()
        for values in (
            all_time,
            ideal.ideal,
            *(np.maximum(numbers(cells, name), 0) for name in ("bytes", "flops")),
        )
    ]
    kernels = (of_part.sums(n) * per).tolist()
    parts: dict[int, list[Part]] = {}
    for i, row in enumerate(of_part.first.tolist()):
        if kernels[i]:
            ns, best, moved, work = (each[i] for each in sums)
            parts.setdefault(int(found.ids[row]), []).append(
                Part(
                    i,
                    *(column.at(row) for column in columns),
                    bool(helper[row]),
                    int(blocks[row]) if blocks[row] >= 0 else None,
                    kernels[i],
                    ns,
                    best,
                    bool(ideal.is_counted[row]),
                    moved,
                    work,
                )
            )
    return parts


def _blocks(cells: Cells) -> npt.NDArray[np.int64]:
    """[cells] The number of blocks; -1 if unknown."""
    grid = numbers(cells, "grid").astype(np.int64)
    return np.where(grid[:, 0] < 0, -1, grid.prod(axis=1))


def _key(values: npt.NDArray[Any]) -> Values:
    """Numbers as a key."""
    distinct, ids = np.unique(values, return_inverse=True)
    return Values(ids.astype(np.int32), distinct.tolist())
