"""The times of ranges and API calls that opening keeps, against a second reading."""

import time
from functools import partial

import numpy as np
import pytest

import fastprof
from fastprof._system.file_state import SameFile
from fastprof.api.open import open_trace
from fastprof.profile import load
from support.exports import Export
from support.kineto_files import KinetoFile
from support.real_data import real, traces
from support.waiting import in_threads


def several_threads():
    """Calls in another order than launches, on threads that launch nothing, without a name."""
    export = Export().push_pop(0, 100, "step", tid=1).push_pop(10, 90, "aten::add", tid=2)
    export.launch(30, 35, corr=3, tid=3, name="cudaFree_v3020")
    export.launch(5, 6, corr=1, tid=1, name="cudaMalloc_v3020")
    export.launch(40, 45, corr=8, tid=2, name="cuLaunchKernel")
    export.launch(20, 30, corr=7, tid=1).launch(21, 22, corr=7, tid=1)
    export.launch(50, 60, corr=7, pid=200, tid=4).launch(70, 71, corr=9, pid=200, tid=4)
    return export.kernel(40, 70, corr=7).kernel(80, 90, corr=8).kernel(95, 99, corr=7, pid=200)


def values(column):
    return (column.array() if hasattr(column, "array") else column).tolist()


def assert_equal(path):
    again, kept = fastprof.open(path, copies=True), open_trace(path, host=True)
    for name in ("start", "end", "thread", "tid", "pid", "name", "call_class", "correlation"):
        assert values(getattr(kept.api, name)) == values(getattr(again.api, name)), name
    for name in ("start", "end", "tid", "pid", "text", "level", "parent", "domain", "of_kernel"):
        assert values(getattr(kept.ranges, name)) == values(getattr(again.ranges, name)), name
    np.testing.assert_array_equal(kept.api.of_kernel, again.api.of_kernel)
    assert values(kept.ranges.is_push_pop) == values(again.ranges.is_push_pop)
    assert values(kept.synchronisations.start) == values(again.synchronisations.start)
    assert kept.contents == again.contents
    for name, column in vars(again.memory_events).items():
        np.testing.assert_array_equal(getattr(kept.memory_events, name), column, name)
    for name in again.names:
        assert values(kept.column(name)) == values(again.column(name)), name


def test_they_equal_those_of_a_second_reading(tmp_path):
    assert_equal(several_threads().write(tmp_path / "net.sqlite"))


@pytest.mark.parametrize("path", traces("nsys/*.sqlite"))
def test_they_equal_those_of_a_second_reading_of_real_traces(path):
    assert_equal(real(path))


def test_threads_that_need_the_times_at_once_sort_them_once(monkeypatch):
    """To sort what is kept twice mixes the columns of its calls up."""
    result = []

    def slow(*_):
        result.append("begun")
        time.sleep(0.1)
        return f"timeline {len(result)}"

    monkeypatch.setattr(load, "_timeline", slow)
    read = load._reader_of_times(SameFile(__file__, "net.json"))
    results = []
    in_threads(*[lambda: results.append(read(None, None))] * 3)
    assert results == ["timeline 1"] * 3


def test_the_file_is_read_once_for_calls_and_ranges(tmp_path, monkeypatch):
    path = several_threads().write(tmp_path / "net.sqlite")
    monkeypatch.setattr(load, "read_timeline", None)
    profile = open_trace(path, host=True)
    assert profile.api.name.array().tolist()[0] == "cudaMalloc_v3020"
    assert profile.ranges.parent.tolist() == [-1, -1]
    for report in ("steps", "idle", "launches", "copies"):
        profile.report(report)


def test_a_part_has_the_times_of_the_whole(tmp_path):
    path = several_threads().write(tmp_path / "net.sqlite")
    for opened in (fastprof.open, partial(open_trace, host=True)):
        profile = opened(path)
        part = profile.trim("0ms:1ms")
        first, second = (values(each.api.tid) for each in (part, profile))
        assert first == second == values(fastprof.open(path).api.tid)


def test_those_of_torch_need_no_second_reading(tmp_path):
    trace = KinetoFile().op(0, 100, "aten::mm", tid=1).op(200, 300, "aten::add", tid=2)
    trace.launch(20, 30, corr=8, name="cuLaunchKernel", cat="cuda_driver")
    trace.launch(10, 15, corr=7).launch(40, 50, corr=9, tid=3, name="cudaFree")
    path = trace.kernel(16, 18, corr=7).kernel(50, 60, corr=8).write(tmp_path / "net.json.gz")
    profile = fastprof.open(path)
    path.unlink()
    assert values(profile.api.name) == ["cudaLaunchKernel", "cuLaunchKernel", "cudaFree"]
    assert profile.api.of_kernel.tolist() == [0, 1]
    assert values(profile.column("launch_end")) == [15, 30]
    assert values(profile.ranges.text) == ["aten::mm", "aten::add"]
    assert values(profile.trim("0ms:1ms").api.tid) == values(profile.api.tid) == [1, 1, 3]
