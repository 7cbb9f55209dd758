"""The ranges that may mark steps, kept with their times while a trace is read."""

from __future__ import annotations

import numpy as np

from fastprof._core._take import take, where
from fastprof._system.regex import regex
from fastprof.model.markers import Kind, Meaning
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.trace import Recording, UserRanges

_STEP = regex(r"ProfilerStep\s*#(\d{1,18})\Z")


def profiler_step(label: str) -> int | None:
    """N of the label `ProfilerStep#N`, None for other labels."""
    match = _STEP.match(label) if label.startswith("ProfilerStep") else None
    return int(match[1]) if match else None


def profiler_steps(recording: Recording, meanings: list[Meaning]) -> ProfilerSteps:
    """The steps that ranges named `ProfilerStep#N` mark, in order of start.

    meanings : [labels] of the recording
    """
    number_of_label = {
        label: step
        for label, meaning in enumerate(meanings)
        if (step := profiler_step(meaning.name)) is not None
    }
    if not number_of_label:
        return ProfilerSteps()
    numbers = np.full(len(meanings), -1, np.int64)
    numbers[list(number_of_label)] = list(number_of_label.values())
    ranges = recording.ranges
    n_own = len(ranges) - recording.appended.ranges
    number = numbers[ranges.label[:n_own]]
    rows = np.flatnonzero(number >= 0)
    process = take(recording.process_of_thread, np.ascontiguousarray(ranges.thread[rows]))
    pid = take(recording.processes, process).astype(np.int64)
    return ProfilerSteps(number[rows], ranges.start[rows], ranges.end[rows], pid)


def user_ranges(recording: Recording, meanings: list[Meaning]) -> UserRanges:
    """The user's own ranges, in order of start.

    meanings : [labels] of the recording
    """
    return _ranges(recording, [meaning.kind == Kind.USER for meaning in meanings])


def step_marks(recording: Recording, meanings: list[Meaning]) -> UserRanges:
    """The ranges of data loaders and optimizers, in order of start.

    meanings : [labels] of the recording
    """
    return _ranges(recording, [is_loader(meaning) or is_optimizer(meaning) for meaning in meanings])


def _ranges(recording: Recording, wanted: list[bool]) -> UserRanges:
    """The ranges with a wanted label; wanted: [labels]."""
    if not any(wanted):
        return UserRanges()
    ranges = recording.ranges
    n_own = len(ranges) - recording.appended.ranges
    rows = where(np.array(wanted, bool), ranges.label[:n_own])
    return UserRanges(ranges.start[rows], ranges.end[rows], ranges.thread[rows], ranges.label[rows])


def is_loader(meaning: Meaning) -> bool:
    """Whether a range fetches a batch: of torch's DataLoader, Lightning or fastprof.init()."""
    if meaning.kind == Kind.ARGUMENT:
        return meaning.call is not None and meaning.call.op == "DataLoader"
    return meaning.name.endswith(LOADER_ENDS) and _LOADER.match(meaning.name) is not None


def is_optimizer(meaning: Meaning) -> bool:
    """Whether a range is a step of an optimizer."""
    return _OPTIMIZER.match(meaning.name) is not None


_LOADER = regex(
    r"enumerate\(DataLoader\)#\w+\.__next__\Z|DataLoader\Z|.*\btrain_(?:dataloader_)?next\Z"
)
LOADER_ENDS = ("__next__", "DataLoader", "_next")  # of all names that fit
_OPTIMIZER = regex(r"Optimizer\.step#\S+\Z")
