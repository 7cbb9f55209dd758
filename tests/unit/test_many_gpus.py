"""Captures with more GPUs, streams or threads than a reader can use: output is cut, with a note."""

from __future__ import annotations

import json

import pytest

import fastprof
from commands import run
from fastprof.analysis.columns import numbers
from fastprof.analysis.step_timeline import StepTimelines
from fastprof.analysis.timeline_lanes import LANES, Window
from fastprof.page.section import Source
from fastprof.page.sections.timeline import section
from fuzz.many_units import write

N = LANES + 30


@pytest.mark.parametrize("shape", ["kineto/streams", "kineto/devices", "nsys/threads"])
def test_a_time_line_shows_the_busiest_lanes(shape, tmp_path):
    profile = fastprof.open(write(shape, N, tmp_path), copies=True)
    timelines = StepTimelines(profile)
    start = numbers(profile, "start")
    line = timelines.between(Window(int(start[0]), int(start[-1] + 1)))
    kinds = [lane.kind for lane in line.lanes]
    hosts = sum(kind in ("ranges", "calls", "system") for kind in kinds)
    assert kinds.count("work") <= LANES and hosts <= LANES
    assert max(kinds.count("work"), hosts) == LANES
    assert line.n_omitted >= 30


def test_the_page_says_how_many_lanes_are_omitted(tmp_path):
    """A quarter of the streams has work in the step that it shows."""
    profile = fastprof.open(write("kineto/streams", 4 * N, tmp_path), copies=True)
    lead = " ".join(section(Source(profile)).lead)
    assert "30 lanes are omitted: the 400 busiest of streams and of threads are shown." in lead


def test_many_gpus_share_a_flame_graph(tmp_path):
    def names(n):
        out = tmp_path / "out.json"
        run("export", "--to", "speedscope", "-o", out, write("kineto/devices", n, tmp_path))
        return [each["name"] for each in json.loads(out.read_text())["profiles"]]

    assert len(names(64)) == 64
    assert names(65) == ["65 GPUs"]


def test_overlap_prints_100_gpus_and_json_has_all(tmp_path):
    path = write("nsys/devices", 120, tmp_path)
    assert "... 20 more rows" in run("overlap", path).stdout.decode()
    assert len(json.loads(run("overlap", "--json", path).stdout)["gpus"]) == 120
