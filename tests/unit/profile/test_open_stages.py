"""Each stage of `open` releases the data that later stages do not need."""

import gc
from typing import Any

import pytest

import fastprof
from fastprof.model.trace import Recording
from fastprof.profile import load
from fastprof.profile.callpath.attribution import Attributed
from fastprof.profile.callpath.nesting import NestedRanges, Nesting
from support.exports import Export
from support.kineto_files import KinetoFile


@pytest.fixture
def traces(tmp_path):
    export = Export().push_pop(0, 100, "layer:a", tid=1).launch(10, 11, corr=1, tid=1)
    export.kernel(20, 30, corr=1)
    trace = KinetoFile().op(0, 100, "aten::mm").launch(10, 11, corr=1).kernel(20, 30, corr=1)
    return [export.write(tmp_path / "x.sqlite"), trace.write(tmp_path / "x.json")]


def alive(*types: type) -> list[Any]:
    gc.collect()
    return [get_object for get_object in gc.get_objects() if isinstance(get_object, types)]


def test_range_times_are_released_before_attribution(traces, monkeypatch):
    attribute = load.attribute
    seen = []

    def check(nesting):
        seen.append(alive(Recording))
        return attribute(nesting)

    monkeypatch.setattr(load, "attribute", check)
    for path in traces:
        fastprof.open(path)
    assert seen == [[], []]


def test_a_profile_keeps_neither_threads_of_ranges_nor_frames_of_launches(traces):
    profiles = [fastprof.open(path) for path in traces]
    assert alive(Recording, Nesting, NestedRanges, Attributed) == []
    assert [len(profile) for profile in profiles] == [1, 1]
