"""Facts: what rules know of a profile, computed on first use; idle time by cause and place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof._system.memory import give_back
from fastprof._system.threads import computed_once, forget
from fastprof.analysis.advice.calls import CallGroups, calls_of
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.cells import FEW_CELLS, cells_of
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.grouping import Floats64, Grouping, group, numbers, texts
from fastprof.analysis.host.states import State, host_states
from fastprof.analysis.idle.causes import CAUSES, Cause, Host, Split
from fastprof.analysis.idle.gaps import WindowGaps, gaps_of_steps, places
from fastprof.analysis.keys import key_of
from fastprof.analysis.recorder import left_without_recorder
from fastprof.analysis.steps.windows import Windows, step_means, windows_of
from fastprof.model.arrays import Bools, Int64, unique
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.ops.tensor_cores import fp32_unit
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.gpu_work import launches_graph
from fastprof.profile.program import WITH_OPERATORS, Program
from fastprof.profile.recording_hints import recorder_of_calls
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_LEAST_STEPS = 3
_KNOWN: Final = 0.8  # of the GPU time; with less, the roof says little
_NOT_IN_GRAPHS = (State.BLOCKING_COPY, State.SYNC, State.DATA_LOADING)
_STREAM = ("process", "device", "stream")


class Facts:
    """What rules know of a profile.

    Times are ns per step and GPU: the mean over the counted steps of all GPUs. Without steps, the
    capture is one step.

    Attributes
    ----------
    profile : Profile
    devices : dict of int to Device, peaks of the GPUs with work
    steps_source : str or None, what a step is, see `Profile.find_steps`
    steps : StepsOfKernels
    windows : Windows, of all steps and GPUs; without rows if the file has no times
    rows : int64 [n_steps], the counted rows of `windows`
    """

    def __init__(
        self,
        profile: ProfileData,
        steps: str | None = None,
        devices: Mapping[int, Device] | None = None,
    ) -> None:
        self.profile, self.steps_source = profile, steps
        self.devices = profile.devices if devices is None else devices
        self.steps: StepsOfKernels = profile.find_steps(steps)
        self.windows: Windows = windows_of(profile, self.steps)
        self.rows: Int64 = np.flatnonzero(self.windows.is_counted)

    @property
    def program(self) -> Program:
        """What kind of program it is."""
        return self.profile.contents.program

    @computed_once
    def replays_graphs(self) -> bool:
        """Whether graphs do some of the counted work."""
        is_replay = key_of(self.profile, "launch").fits(launches_graph)
        return bool((is_replay & self.is_counted).any())

    @property
    def has_times(self) -> bool:
        """False for dict lines, and without GPU work."""
        return len(self.rows) > 0

    @property
    def has_steps(self) -> bool:
        """False if the capture, or a part of it, is one step."""
        return self.steps.unit == "step"

    @property
    def per_step(self) -> str:
        """`per step`, or `in the capture`: what the times of findings are for."""
        return f"per {self.steps.word}" if self.has_steps else f"in the {self.steps.unit}"

    @property
    def a_step(self) -> str:
        """`a step`, `an iteration` of an engine, or `the capture`."""
        if not self.has_steps:
            return "the capture"
        return f"{'an' if self.steps.word == 'iteration' else 'a'} {self.steps.word}"

    @property
    def n_steps(self) -> int:
        """Steps that count, times GPUs; 1 without times."""
        return max(len(self.rows), 1)

    @computed_once
    def step_ns(self) -> float:
        """Length of a step; GPU time of all work if the file has no times."""
        means = step_means(self.profile, self.steps)
        if means is None:
            return float(np.maximum(numbers(self.profile, "sil"), 0).sum())
        return means.wall

    @computed_once
    def left(self) -> Mapping[str, float]:
        """The share of idle time that remains without the recorder, by cause; {} if unknown."""
        return left_without_recorder(self.profile, self.steps)

    @property
    def times(self) -> Mapping[str, float]:
        """By the names of `steps_windows.TIMES`.

        Raises
        ------
        CannotJudge
            The file has no times.
        """
        self.need_times()
        means = step_means(self.profile, self.steps)
        return {} if means is None else means.times

    @computed_once
    def idle(self) -> IdleTime:
        """The idle time of the counted steps by cause.

        Raises
        ------
        CannotJudge
            The file has no times, or no API calls.
        """
        self.need_calls()
        return idle_time(self.profile, self.steps, self.windows)

    def idle_by_window(self, rows: Int64) -> Int64:
        """The idle time by cause of some rows of `windows`, ns [rows, causes].

        Raises
        ------
        CannotJudge
            The file has no times, or no API calls.
        """
        self.need_calls()
        return gaps_of_steps(self.profile, self.steps).by_window(rows)

    @computed_once
    def of_kernels(self) -> Floats64:
        """[kernels] The busy time that is each kernel's own; 0 outside the counted steps.

        Each moment with work belongs to one kernel: compute before communication before copies.
        The sum is the busy time.
        """
        result: Floats64 = np.zeros(len(self.profile))
        if not self.has_times:
            result += np.maximum(numbers(self.profile, "sil"), 0)
            return result
        work = self.windows.lanes.work
        result[work.work.rows] = work.own_ns()
        result[~self.is_counted] = 0
        result /= self.n_steps
        return result

    @computed_once
    def calls(self) -> CallGroups:
        """Groups of equal calls with their time in a step."""
        steps = self.steps if self.has_steps else None
        if len(self.profile.source.cells) > FEW_CELLS:
            give_back()  # groups of calls take the most
        return calls_of(self.profile, self.devices, self.is_counted, self.n_steps, steps)

    @computed_once
    def reach(self) -> float | str:
        """The share of the practical roof that the kernels reach; or why it is unknown."""
        calls = self.calls
        if not calls.has_ops:
            if self.program.kind not in WITH_OPERATORS:
                return "the file has no operators, so the cost of its kernels is unknown"
            return "no operators in the file; record with torch.profiler, or emit_nvtx under nsys"
        if not calls.has_shapes:
            return "no shapes in the file; record with record_shapes=True"
        why = [device.why for device in self.devices.values() if device.why]
        if why:
            return f"{why[0]}; --gpu NAME gives the peaks"
        parts = [part for group in calls.groups for part in group.parts]
        known = [part for part in parts if part.has_ideal and part.ideal_ns > 0]
        time, all_time = sum(part.ns for part in known), max(calls.kernel_ns, 1.0)
        if time < _KNOWN * all_time:
            return f"their cost is known of {percent(time / all_time)} of their time"
        return sum(part.ideal_ns for part in known) / time

    def forget_calls(self) -> None:
        """Release `calls`, which only findings and `reach` use: up to 700 bytes for a call."""
        forget(self, "calls")

    def own_ns(self, rows: Int64) -> float:
        """The busy time that is some kernels' own, ns per step and GPU."""
        return float(self.of_kernels[rows].sum())

    def hidden_ns(self, rows: Int64) -> float:
        """The most that a step saves if some work runs behind the rest, ns per step and GPU."""
        own = self.own_ns(rows)
        return min(own, self.step_ns - own)

    def lane_ns(self, rows: Int64) -> Floats64:
        """[lanes] The busy time that is some kernels' own on a GPU of a process, ns per step."""
        lanes = self.windows.lanes
        own = np.bincount(
            lanes.work.by_kernel(len(self.profile))[rows], self.of_kernels[rows], len(lanes)
        )
        n = np.bincount(self.windows.lane[self.rows], minlength=len(lanes))
        return np.asarray(own * self.n_steps / np.maximum(n, 1))

    def share_on_streams(self, rows: Int64, is_wanted: Callable[[Grouping], Bools]) -> float:
        """The share of the time of some kernels that is on some streams.

        is_wanted : which streams, bool [streams], of the groups of all kernels by stream
        """
        streams = group([key_of(self.profile, name) for name in _STREAM], len(self.profile))
        ns = self.of_kernels[rows]
        on = is_wanted(streams)[streams.ids[rows]]
        return float(ns[on].sum() / max(float(ns.sum()), 1.0))

    def count(self, rows: Int64) -> float:
        """How many of some kernels run per step and GPU."""
        return float(np.count_nonzero(self.is_counted[rows])) / self.n_steps

    def kernels(self, **keys: str | tuple[str, ...]) -> Int64:
        """The rows of kernels in counted steps by keys: `kernels(phase="backward", op="mm")`."""
        cells = cells_of(self.profile, tuple(keys))
        fits = np.ones(len(cells), bool)
        for name, values in keys.items():
            wanted = (values,) if isinstance(values, str) else values
            fits &= key_of(cells, name).fits(wanted.__contains__)
        return np.flatnonzero(self.is_counted & cells.flags(fits))

    @computed_once
    def is_counted(self) -> Bools:
        """[kernels] Whether each starts in a counted step."""
        if not self.has_times:
            return np.ones(len(self.profile), bool)
        chosen = np.append(self.windows.is_counted, False)
        result: Bools = chosen[self.windows.by_kernel(len(self.profile))]
        return result

    @computed_once
    def repeated_kernels(self) -> int:
        """How many kernels each counted step launches, if all launch the same ones in order; or 0.

        Several steps are required.
        """
        wanted = unique(self.windows.step[self.rows])
        if not self.has_steps or len(wanted) < _LEAST_STEPS:
            return 0
        name, kind = texts(self.profile, "name").ids, texts(self.profile, "kind")
        is_kernel = kind.fits(lambda each: each == "kernel")
        launched = numbers(self.profile, "launch_start")
        sequences = []
        for step in wanted.tolist():
            rows = np.flatnonzero((self.steps.of_kernel == step) & is_kernel)
            sequences.append(name[rows[np.argsort(launched[rows], kind="stable")]])
        same = all(np.array_equal(sequences[0], sequence) for sequence in sequences[1:])
        return len(sequences[0]) if same else 0

    @computed_once
    def fits_one_graph(self) -> bool:
        """Whether one graph can replay a step.

        All counted steps launch the same kernels, and the host waits for neither the GPU nor data.
        """
        if not self.repeated_kernels:
            return False
        begin, end = self.windows.start[self.rows].min(), self.windows.end[self.rows].max()
        events = kept(self.profile, host_states).events
        waits = np.concatenate([events[state].start for state in _NOT_IN_GRAPHS])
        return not bool(((waits >= begin) & (waits < end)).any())

    def top(self, column: str, rows: Int64, most: int = 3) -> list[tuple[str, float]]:
        """The values of a key with most time of some kernels, with their share of that time."""
        return top_shares(key_of(self.profile, column).take(rows), self.of_kernels[rows], most)

    def need(self, *names: str) -> None:
        """Raise CannotJudge unless the capture has what a rule needs.

        names : `work` of a GPU, `times`, API `calls`, operators (`ops`), their `shapes`, the
            `peaks` of the GPUs, the `name` of a known GPU, its number of multiprocessors (`sms`)
        """
        for name in names:
            _NEEDS[name](self)

    def need_work(self) -> None:
        """Raise CannotJudge if no GPU did anything."""
        if not self.step_ns:
            raise CannotJudge("no GPU work: use the original trace of a run on a GPU")

    def need_calls(self) -> None:
        """Raise CannotJudge if the file has no times, or no API calls."""
        self.need_times()
        if not len(self.profile.api):
            raise CannotJudge(
                self.profile.source.host_omitted
                or "no API calls in the file: record with " + recorder_of_calls(self.profile.about)
            )

    def need_times(self) -> None:
        """Raise CannotJudge if the file has no times."""
        if not self.has_times:
            what = "no GPU work" if not len(self.profile) else "dict lines contain no times"
            raise CannotJudge(f"{what}: use the original trace of a run on a GPU")

    def need_ops(self) -> None:
        """Raise CannotJudge if no operators are recorded."""
        if not self.calls.has_ops:
            raise CannotJudge(
                "no operators in the file: record with torch.profiler, or emit_nvtx under nsys"
            )

    def need_shapes(self) -> None:
        """Raise CannotJudge if no operators or shapes are recorded."""
        self.need_ops()
        if not self.calls.has_shapes:
            raise CannotJudge("no shapes in the file: record with record_shapes=True")

    def need_peaks(self) -> None:
        """Raise CannotJudge if the peak rates of a GPU are unknown."""
        why = [device.why for device in self.devices.values() if device.why]
        if why or not self.devices:
            raise CannotJudge(f"{why[0] if why else 'no GPU work'}; --gpu NAME gives the peaks")

    def need_name(self) -> None:
        """Raise CannotJudge if no GPU is known by its name."""
        if not any(fp32_unit(device.name or "") for device in self.devices.values()):
            raise CannotJudge("the file does not name a known GPU: --gpu NAME names it")

    def need_sms(self) -> None:
        """Raise CannotJudge if the number of multiprocessors is unknown."""
        if not any(device.sms for device in self.devices.values()):
            raise CannotJudge("the multiprocessors of the GPU are unknown: --gpu NAME names it")


def percent(share: float) -> str:
    """A share in text: `12 %`."""
    return f"{round(100 * share)} %"


_NEEDS: Final[dict[str, Callable[[Facts], None]]] = {
    "work": Facts.need_work,
    "times": Facts.need_times,
    "calls": Facts.need_calls,
    "ops": Facts.need_ops,
    "shapes": Facts.need_shapes,
    "peaks": Facts.need_peaks,
    "name": Facts.need_name,
    "sms": Facts.need_sms,
}


class IdleTime(NamedTuple):
    """The gaps of all steps on all GPUs.

    Parameters
    ----------
    inside : WindowGaps
    is_inside : bool [gaps], whether each is in a counted window
    counted : int64 [n], the counted windows
    means : float64 [causes], ns per counted window; the sum is the idle time of one
    places : where to look, by name of `idle_places.PLACES`, [gaps]
    """

    inside: WindowGaps
    is_inside: Bools
    counted: Int64
    means: Floats64
    places: dict[str, Values]

    @property
    def gaps(self) -> Gaps:
        """Those of at least 1 us."""
        return self.inside.gaps

    @property
    def causes(self) -> Split:
        """The causes of `gaps`."""
        return self.inside.causes

    def mean(self, cause: str) -> float:
        """ns per window."""
        return float(self.means[CAUSES.index(cause)])

    def time_by_window(self, cause: str) -> Int64:
        """[counted windows] ns."""
        return self.inside.time_by_cause(Cause(CAUSES.index(cause)))[self.counted]

    def first(self, cause: str, most: int, whole: Bools | None = None) -> float:
        """ns per window: of each gap at most so much of a cause.

        whole : bool [gaps], those of which all of it counts
        """
        parts, n = self.causes.parts, max(len(self.counted), 1)
        own = np.flatnonzero((parts.cause == CAUSES.index(cause)) & self.is_inside[parts.gap])
        ns = np.minimum(parts.ns[own], most)
        if whole is not None:
            ns = np.where(whole[parts.gap[own]], parts.ns[own], ns)
        return float(ns.sum()) / n

    def is_mainly(self, *causes: str) -> Bools:
        """[gaps] Whether each is in a counted window and one of these causes takes most."""
        wanted = np.isin(CAUSES, causes)
        return wanted[self.causes.main] & self.is_inside

    def top(self, place: str, rows: Bools, most: int = 3) -> list[tuple[str, float]]:
        """The places that take most of some gaps, with their share of the time of these gaps."""
        chosen = np.flatnonzero(rows)
        ns = self.causes.ns[chosen].astype(np.float64)
        return top_shares(self.places[place].take(chosen), ns, most)

    def by_cause(self, rows: Bools) -> Mapping[str, float]:
        """The time of the main cause of some gaps in counted windows, ns per window."""
        n, rows, causes = max(len(self.counted), 1), rows & self.is_inside, self.causes
        sums = np.bincount(causes.main[rows], causes.ns[rows], len(Cause)) / n
        return {cause: float(ns) for cause, ns in zip(CAUSES, sums.tolist(), strict=True) if ns}


def idle_time(profile: ProfileData, steps: StepsOfKernels, windows: Windows) -> IdleTime:
    """The gaps of the steps. Reads the file again on first use.

    windows : of all work in the steps
    """
    inside, counted = gaps_of_steps(profile, steps), np.flatnonzero(windows.is_counted)
    return IdleTime(
        inside,
        windows.is_counted[inside.window],
        counted,
        inside.totals(windows.is_counted) / max(len(counted), 1),
        kept(profile, _places, steps),
    )


def _places(profile: ProfileData, steps: StepsOfKernels) -> dict[str, Values]:
    inside = gaps_of_steps(profile, steps)
    return places(inside.gaps, inside.causes, Host(profile))


def top_shares(keys: Values, ns: Floats64, most: int) -> list[tuple[str, float]]:
    """The values with most time, and their share of it; ns : the time of each row."""
    sums = np.bincount(keys.ids + 1, ns, len(keys.values) + 1)[1:]
    order = np.argsort(-sums, kind="stable")[:most].tolist()
    total = max(float(ns.sum()), 1.0)
    return [(str(keys.values[i]), float(sums[i]) / total) for i in order if sums[i] > 0]
