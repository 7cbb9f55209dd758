"""Questions to which replays of real traces gave wrong answers, with the truth from their files."""

from __future__ import annotations

import numpy as np
import pytest

import fastprof
from fastprof.analysis.grouping import numbers, texts
from real.open_traces import profile

LOADER = "kineto/resnet50_2021_01_loader0.json.gz"
UNLAUNCHED = "kineto/qwen_h100_unlaunched.json.gz"
FIRST_CALLS = "kineto/particle_first_calls_a100.json.gz"
UPLOADS = "nsys/fsdp_upload_2gpu_h100.sqlite"


def busy_ns(trace: fastprof.Profile, rows: np.ndarray) -> int:
    """The time during which at least one of some rows runs."""
    start = numbers(trace, "start")[rows]
    end = start + numbers(trace, "sil")[rows]
    before = np.append(start[0], np.maximum.accumulate(end)[:-1])
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


def on_path(table: fastprof.Table) -> dict[str, float]:
    return {row["value"]: row["path_ns"] for row in table.rows() if row["key"] == "resource"}


def test_faster_kernels_make_no_step_longer() -> None:
    """The work before the first step became shorter too, and the step began sooner."""
    change = profile(LOADER, copies=True).whatif(scale="kernel=*:0.5").facts["changes"][0]
    assert change["saved_ns"] > 0


@pytest.mark.parametrize("change", [{"no_sync": True}, {"scale": "host:0"}, {"graph": True}])
def test_work_without_a_launch_remains(change: dict[str, object]) -> None:
    """One stream: no step is shorter than its work, of which a third has no launch."""
    trace = profile(UNLAUNCHED, copies=True)
    busy = busy_ns(trace, np.arange(len(trace)))
    assert busy == pytest.approx(45.65e6, rel=0.001)
    assert trace.whatif(**change).facts["changes"][0]["wall_ns"] >= busy


def test_the_loading_of_code_is_no_host_time() -> None:
    """A launch of 1337 ms loads code: idle and the replay say so."""
    trace = profile(FIRST_CALLS, copies=True)
    result = on_path(trace.whatif())
    assert result["code loading"] == pytest.approx(1337e6, rel=0.01)
    idle = {row["cause"]: row["ns"] for row in trace.idle().rows()}
    for cause in ("code loading", "allocation"):
        assert result[cause] == pytest.approx(idle[cause], rel=0.01, abs=3e6)
    rows = {row["value"]: row for row in trace.whatif().rows()}
    assert rows["code loading"]["saved_100_ns"] == pytest.approx(result["code loading"], rel=0.01)


@pytest.mark.parametrize("selector", ["class=memcpy", "direction=HtoD"])
def test_overlap_saves_at_most_what_copies_can_hide_behind(selector: str) -> None:
    trace = profile(UPLOADS, copies=True)
    change = trace.whatif(overlap=selector).facts["changes"][0]
    is_copy = texts(trace, "class").fits(lambda each: each in ("memcpy", "memset"))
    device = numbers(trace, "device")
    most = []
    for each in np.unique(device):
        own = device == each
        span = change["wall_ns"] + change["saved_ns"]
        idle = span - busy_ns(trace, np.flatnonzero(own))
        most.append(idle + busy_ns(trace, np.flatnonzero(own & ~is_copy)))
    assert 10e6 < change["saved_ns"] <= max(most)
