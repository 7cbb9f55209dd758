"""Side: what a comparison needs of one capture, or of all ranks of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.diff.plan import NOT_PLANNED, PlanData
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values

# What the kernels of a group have in common. `kind` and `kernel` tell the kernels of a call apart.
UNIT_KEYS: Final = ("phase", "dir", "layer", "range", "op", "shape", "line", "part")
KEYS: Final = (*UNIT_KEYS, "kind", "kernel")
COMPUTE, COMMUNICATION, COPIES = "compute", "communication", "copies"


def not_planned() -> PlanData:
    """No plan."""
    return NOT_PLANNED


@dataclass(frozen=True)
class Side:
    """A capture as small tables of integers.

    Parameters
    ----------
    names : the files
    gpus : their GPUs
    steps : what the steps are, one line
    has_steps : False if the window is all of the capture
    windows : columns [windows] by name, int64: step, device, pid, rank, and times in ns: wall, the
        parts of `steps` and host times, see `fastprof.analysis.steps.columns`; -1 if unknown. Of
        stored sides, `sm_clock_hz` may be absent
    idle : int64 [windows, causes], ns; see `fastprof.analysis.idle.causes`
    keys : the keys of each group, [groups] by name; groups are in order of their first kernel
    calls, kernels, gpu_ns : int64 [groups], of all windows; a call counts where its first kernel is
    group, window, own_ns : [pieces], the busy time that is a group's own in a window
    notes : what is missing or uncertain, one line each
    plan : makes the plan of the capture, or returns the one that is stored
    """

    names: tuple[str, ...]
    gpus: str
    steps: str
    has_steps: bool
    windows: Mapping[str, Int64]
    idle: Int64
    keys: Mapping[str, Values]
    calls: Int64
    kernels: Int64
    gpu_ns: Int64
    group: Int32
    window: Int32
    own_ns: Int64
    notes: tuple[str, ...] = ()
    plan: Callable[[], PlanData] = not_planned

    @property
    def n_windows(self) -> int:
        """The number of windows: steps times GPUs."""
        return len(self.windows["wall_ns"])

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.calls)

    @computed_once
    def own(self) -> Int64:
        """[groups] The busy time that is each group's own, ns, over all windows."""
        result = np.zeros(self.n_groups, np.int64)
        np.add.at(result, self.group, self.own_ns)
        return result

    def texts(self, key: str) -> list[str | None]:
        """The values of a key, [groups]."""
        column = self.keys[key]
        values = [*column.values, None]
        return [values[i] for i in column.ids.tolist()]

    def known_share(self, key: str) -> float:
        """The share of the busy time whose groups have a value of a key."""
        known = self.own[self.keys[key].ids >= 0].sum()
        return float(known / max(int(self.own.sum()), 1))


def combined(sides: Sequence[Side]) -> Side:
    """The ranks of a run as one side: windows of all ranks, groups with equal keys are one."""
    if len(sides) == 1:
        return sides[0]
    ids: dict[tuple[Any, ...], int] = {}
    place = [_numbered(side, ids) for side in sides]
    n, first = len(ids), np.cumsum([0, *(side.n_windows for side in sides)])
    rank = np.repeat(np.arange(len(sides)), np.diff(first))
    names = [name for name in sides[0].windows if all(name in side.windows for side in sides)]
    windows = {name: np.concatenate([side.windows[name] for side in sides]) for name in names}
    columns = list(zip(*ids, strict=True)) if ids else [()] * len(KEYS)
    return Side(
        tuple(name for side in sides for name in side.names),
        ", ".join(dict.fromkeys(side.gpus for side in sides)),
        ", ".join(dict.fromkeys(side.steps for side in sides)),
        all(side.has_steps for side in sides),
        {**windows, "rank": rank},
        np.concatenate([side.idle for side in sides]),
        {name: values_of(column) for name, column in zip(KEYS, columns, strict=True)},
        _sums(place, [side.calls for side in sides], n),
        _sums(place, [side.kernels for side in sides], n),
        _sums(place, [side.gpu_ns for side in sides], n),
        np.concatenate([place[i][side.group] for i, side in enumerate(sides)]),
        np.concatenate([side.window + np.int32(first[i]) for i, side in enumerate(sides)]),
        np.concatenate([side.own_ns for side in sides]),
        tuple(dict.fromkeys(note for side in sides for note in side.notes)),
    )


def _numbered(side: Side, ids: dict[tuple[Any, ...], int]) -> Int32:
    keys = zip(*(side.texts(name) for name in KEYS), strict=True)
    return np.array([ids.setdefault(key, len(ids)) for key in keys], np.int32)


def _sums(place: Sequence[Int32], values: Sequence[Int64], n: int) -> Int64:
    """[groups] The sums of numbers of all sides."""
    sums = np.zeros(n, np.int64)
    np.add.at(sums, np.concatenate(place), np.concatenate(values))
    return sums


def values_of(items: Sequence[Any]) -> Values:
    """A column of any values, None where unknown."""
    ids: dict[Any, int] = {}
    numbers = [-1 if item is None else ids.setdefault(item, len(ids)) for item in items]
    return Values(np.array(numbers, np.int32), list(ids))
