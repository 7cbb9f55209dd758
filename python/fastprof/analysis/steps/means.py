"""The mean step of a profile: the figures that every report quotes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.steps.windows import mean_times, windows_of
from fastprof.model.arrays import unique
from fastprof.model.quantity import quantity
from fastprof.profile.data import ProfileData
from fastprof.profile.kept import kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels


class StepMeans(NamedTuple):
    """Means over the counted steps and their GPUs; without steps, over the GPUs of the capture.

    Parameters
    ----------
    n_steps, n_gpus : how many of each
    n_windows : pairs of a step and a GPU; all means divide by it
    wall, median, least, most : float, ns, the length of a step; of the capture, from the first to
        the last work of a GPU
    times : by the names of `steps_windows.TIMES`, ns; busy and idle add up to `wall`
    kernels : kernels, graphs, copies and memsets that a step launches
    is_step : False if the capture is one step
    unit : what the figures are of: step, capture, steady part or part
    """

    n_steps: int
    n_gpus: int
    n_windows: int
    wall: float
    median: float
    least: float
    most: float
    times: Mapping[str, float]
    kernels: float
    is_step: bool
    unit: str

    @property
    def busy(self) -> float:
        """ns, the time with GPU work."""
        return self.times["busy_ns"]

    @property
    def idle(self) -> float:
        """ns, the time without."""
        return self.times["idle_ns"]

    def text(self) -> str:
        """One line: length, busy and idle time."""
        wall = quantity(self.wall, "ns")
        if self.unit != "step":
            length = f"{self.unit} of {wall}"
        elif self.n_steps > 1:
            length = (
                f"step {wall} (median {quantity(self.median, 'ns')}, "
                f"{quantity(self.least, 'ns')} to {quantity(self.most, 'ns')})"
            )
        else:
            length = f"step {wall}"
        share = self.busy / self.wall if self.wall else 0.0
        return (
            f"{length}, {self.kernels:.0f} kernels and copies; GPU busy "
            f"{quantity(self.busy, 'ns')}, {share:.1%}, idle {quantity(self.idle, 'ns')}"
        )

    def basis(self) -> str:
        """What the figures are means of, and what counts, in a line."""
        several = [f"{self.n_gpus} GPUs"] if self.n_gpus > 1 else []
        if not self.is_step:
            of = f"mean of {several[0]}, each " if several else ""
            return f"{of}from its first to its last work; copies count as work"
        steps = [f"{self.n_steps} steps"] if self.n_steps > 1 else []
        of = f"mean of {' on '.join([*steps, *several])}, each " if steps or several else ""
        return f"{of}from the end of GPU work before to the end of its own; copies count"


def step_means(profile: ProfileData, steps: StepsOfKernels) -> StepMeans | None:
    """The mean step, kept; None if the file has no GPU work or no times."""
    return kept(profile, _step_means, steps)


def _step_means(profile: ProfileData, steps: StepsOfKernels) -> StepMeans | None:
    every = windows_of(profile, steps)
    windows = every if every.is_counted.all() else every.take(np.flatnonzero(every.is_counted))
    if not len(windows):
        return None
    wall = windows.wall
    is_counted = np.zeros(len(steps), bool)
    is_counted[windows.step] = True
    return StepMeans(
        n_steps=len(unique(steps.number[windows.step])),
        n_gpus=len(unique(windows.lane)),
        n_windows=len(windows),
        wall=float(wall.mean()),
        median=float(np.median(wall)),
        least=float(wall.min()),
        most=float(wall.max()),
        times=mean_times(windows),
        kernels=np.count_nonzero(take(is_counted, steps.of_kernel, False)) / len(windows),
        is_step=steps.source != "none",
        unit=steps.unit,
    )
