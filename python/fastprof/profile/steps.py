"""The steps of torch.profiler's schedule."""

from __future__ import annotations

import re

import numpy as np

from fastprof._core._take import take
from fastprof.model.markers import Meaning
from fastprof.model.metadata import Steps
from fastprof.model.trace import Recording

_STEP = re.compile(r"ProfilerStep\s*#(\d{1,18})\Z")


def steps_of(recording: Recording, meanings: list[Meaning]) -> Steps:
    """The steps that ranges named `ProfilerStep#N` mark, in order of start.

    meanings : [labels] of the recording
    """
    number_of_label = {
        label: int(match[1])
        for label, meaning in enumerate(meanings)
        if meaning.name.startswith("ProfilerStep") and (match := _STEP.match(meaning.name))
    }
    if not number_of_label:
        return Steps()
    numbers = np.full(len(meanings), -1, np.int64)
    numbers[list(number_of_label)] = list(number_of_label.values())
    ranges = recording.ranges
    n_own = len(ranges) - recording.appended.ranges
    number = numbers[ranges.label[:n_own]]
    rows = np.flatnonzero(number >= 0)
    process = take(recording.process_of_thread, np.ascontiguousarray(ranges.thread[rows]))
    pid = take(recording.processes, process).astype(np.int64)
    return Steps(number[rows], ranges.start[rows], ranges.end[rows], pid)
