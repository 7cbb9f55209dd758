"""Hardware counters of rocpd databases."""

import math

import pytest

import fastprof
from fastprof.errors import ReportError
from support.rocpd_files import Rocpd
from support.rocprof_files import RocprofFile


def run() -> Rocpd:
    """Kernels with and without counters; values of two parts of the GPU."""
    made = Rocpd("3.0.2").call(0, 5, 1)
    made.kernel(30, 40, 1, "add").counter("SQ_WAVES", 4)
    made.kernel(10, 20, 1).counter("FETCH_SIZE", 1.5, 2.25).counter("SQ_WAVES", 8, 8)
    return made.copy(50, 60, 1).kernel(70, 80, None)


@pytest.mark.parametrize("copies", [False, True])
def test_values_are_sums_over_parts_in_the_order_of_kernels(copies, tmp_path):
    profile = fastprof.open(run().write(tmp_path / "run.db"), copies=copies)
    fetched, waves = (profile.counters[name].tolist() for name in ("FETCH_SIZE", "SQ_WAVES"))
    nothing = [math.nan] * (1 + copies)
    assert str(fetched) == str([3.75, math.nan, *nothing])
    assert str(waves) == str([16.0, 4.0, *nothing])


def test_columns(tmp_path):
    profile = fastprof.open(run().write(tmp_path / "run.db"))
    fetched, waves = (profile.column(f"counter:{name}") for name in ("FETCH_SIZE", "SQ_WAVES"))
    assert [fetched.at(i) for i in range(4)] == [3.75, None, None, None]
    assert [waves.at(i) for i in range(4)] == [16, 4, None, None]
    with pytest.raises(ReportError, match=r"unknown counter 'SQ_WAVE'; .*SQ_WAVES"):
        profile.column("counter:SQ_WAVE")


def test_without_counters(tmp_path):
    profile = fastprof.open(Rocpd().kernel(0, 10, 1).write(tmp_path / "run.db"))
    assert profile.counters == {}
    with pytest.raises(ReportError, match="no counter X: the file has no counters; record with"):
        profile.column("counter:X")


def test_each_run_has_its_own_events(tmp_path):
    other = Rocpd(suffix="_b", pid=200).kernel(5, 6, 1).counter("SQ_WAVES", 100)
    profile = fastprof.open(run().write(tmp_path / "run.db", other), copies=False)
    assert profile.counters["SQ_WAVES"].tolist()[:3] == [100, 16, 4]


def test_values_of_samples_and_of_other_types_are_left_out(tmp_path):
    made = Rocpd().kernel(0, 10, 1).counter("A", 1, 2)
    made.add("pmc_event", event_id=None, pmc_id=1, value=5)
    made.add("pmc_event", event_id=99, pmc_id=1, value=5)
    made.add("pmc_event", event_id=1, pmc_id=7, value=5)
    profile = fastprof.open(made.write(tmp_path / "run.db"))
    assert {name: values.tolist() for name, values in profile.counters.items()} == {"A": [3]}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("copies", [False, True])
def test_counters_in_json(copies, bare, keep, tmp_path):
    trace = RocprofFile().hip(0, 5, 1).kernel(30, 40, 1, "add").kernel(10, 20, 1).copy(5, 8, 1, 64)
    other = RocprofFile(pid=9).kernel(25, 26, 1).count([("SQ_WAVES", 100)], keep=keep, bare=bare)
    trace.count(
        [("SQ_WAVES", 4)],
        [("FETCH_SIZE", 1.5), ("FETCH_SIZE", 2.25), ("SQ_WAVES", 8)],
        keep=keep,
        bare=bare,
    )
    path = trace.with_process(other).write(tmp_path / "1_results.json.gz")
    profile = fastprof.open(path, copies=copies)
    before = [math.nan] * copies
    assert str(profile.counters["FETCH_SIZE"].tolist()) == str([*before, 3.75, math.nan, math.nan])
    assert str(profile.counters["SQ_WAVES"].tolist()) == str([*before, 8.0, 100.0, 4.0])


def test_counters_of_some_kernels_in_json(tmp_path):
    trace = (
        RocprofFile().kernel(10, 20, 1).kernel(30, 40, 2).count([("A", 1)], [("A", 2)], keep=True)
    )
    del trace.counted[0]
    profile = fastprof.open(trace.write(tmp_path / "1_results.json"))
    assert str(profile.counters["A"].tolist()) == str([math.nan, 2.0])


@pytest.mark.parametrize(
    "records",
    [None, 5, [5], [{}], [{"counter_id": {"handle": 9}, "value": 1}], [{"value": 1}],
     [{"counter_id": {"handle": 1000}, "value": "x"}], [{"counter_id": [1000], "value": 1}]],
)  # fmt: skip
def test_damaged_counters_in_json(records, tmp_path):
    trace = RocprofFile().kernel(10, 20, 1).count([("A", 1)])
    trace.counted[0]["records"] = records
    assert fastprof.open(trace.write(tmp_path / "1_results.json")).counters == {}


def test_json_without_counters(tmp_path):
    profile = fastprof.open(RocprofFile().kernel(0, 10, 1).write(tmp_path / "1_results.json"))
    assert profile.counters == {}
