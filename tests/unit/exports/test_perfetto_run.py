"""The ranks of a run as one Perfetto trace: tracks, waits, flows, clocks, kernels."""

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bench.ranks import faults, programs, truth

from fastprof.errors import ReportError
from fastprof.exports.perfetto.run import write_run_perfetto
from fastprof.ranks.run.result import RunData
from support import perfetto_traces
from support.perfetto_traces import PerfettoTrace, Slice
from support.simulated_ranks import read

LATE = 2
OFFSET = 1_500_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """Four ranks, one of which loads data for 5 ms longer; another has a clock of its own."""
    folder = tmp_path_factory.mktemp("run")
    result = [faults.Data(rank=LATE, ns=5_000_000), faults.Clock(rank=1, offset=OFFSET)]
    truth.write(folder, programs.tp_dp(4, tensor=2), 4, 1, result)
    return read(folder)


def written(run: RunData, folder: Path, name: str = "run.pftrace", **options) -> PerfettoTrace:
    write_run_perfetto(run, folder / name, **options)
    return perfetto_traces.read(folder / name)


def rank_of(trace: PerfettoTrace, each: Slice) -> int:
    return int(trace.path(each.track)[0].removeprefix("rank "))


def test_a_rank_is_a_process_with_its_time_line(run, tmp_path):
    trace = written(run, tmp_path, kernels=False)
    processes = [track for track in trace.tracks.values() if track.HasField("process")]
    assert [track.name for track in processes] == [f"rank {number}" for number in run.numbers]
    assert len({track.process.pid for track in processes}) == len(run)
    for rank, record in enumerate(run.records):
        own = [slice_ for slice_ in trace.slices if rank_of(trace, slice_) == rank]
        line = [each for each in own if trace.path(each.track)[1] == "time line"]
        assert all(after.start == each.end for each, after in pairwise(line))
        assert line[-1].end - line[0].start == record.chain.time[-1] - record.chain.begin
        waits = sum(each.end - each.start for each in line if each.category == "wait")
        assert waits == run.exposed[rank].wait.sum()
        steps = [each for each in own if trace.path(each.track)[1] == "steps"]
        assert [step.name for step in steps] == [f"step {n}" for n in run.step_numbers[rank]]
    loading = [slice_ for slice_ in trace.slices if slice_.name == "idle: data loading"]
    assert rank_of(trace, max(loading, key=lambda each: each.end - each.start)) == LATE


def test_calls_have_their_waits_and_the_last_rank(run, tmp_path):
    trace = written(run, tmp_path, kernels=False)
    calls = [slice_ for slice_ in trace.slices if slice_.category == "collective"]
    assert len(calls) == len(run.instances.calls)
    by_instance: dict[int, list[Slice]] = {}
    for call in calls:
        by_instance.setdefault(call.args["instance"], []).append(call)
    assert len(by_instance) == len(run.instances)
    for members in by_instance.values():
        last = max(member.start for member in members)
        assert len({member.name for member in members}) == 1
        for member in members:
            if "wait (ns)" in member.args:
                assert member.start + member.args["wait (ns)"] == last
            if member.args["last rank"] == rank_of(trace, member):
                assert member.start == last
    named = calls[0].args
    assert {"group", "bytes", "transfer (ns)"} <= set(named)


def test_flows_lead_from_each_wait_to_the_last_rank(run, tmp_path):
    trace = written(run, tmp_path, kernels=False)
    calls = [slice_ for slice_ in trace.slices if slice_.category == "collective"]
    waiting = [call for call in calls if call.args.get("wait (ns)", 0) > 0]
    assert len(trace.flows) == len(waiting) > 0
    for start, end in trace.flows.values():
        assert start.args["instance"] == end.args["instance"] and start.start < end.start
        assert rank_of(trace, end) == start.args["last rank"]
    parts = Counter(slice_.category for slice_ in trace.slices if slice_.depth == 1)
    assert parts["wait"] == len(waiting)


def test_kernels_are_on_the_clock_of_the_run(run, tmp_path):
    trace = written(run, tmp_path, "run.pftrace.gz")
    assert gzip.decompress((tmp_path / "run.pftrace.gz").read_bytes())
    for rank in range(len(run)):
        own = [slice_ for slice_ in trace.slices if rank_of(trace, slice_) == rank]
        nccl = [each for each in own if each.name.startswith("ncclDevKernel")]
        calls = [each for each in own if each.category == "collective"]
        assert len(nccl) >= len(calls) > 0
        starts = np.sort([each.start for each in nccl])
        apart = [np.abs(starts - call.start).min() for call in calls]
        assert max(apart) < 1000
        names = {trace.path(each.track)[1] for each in own}
        assert any(name.startswith("GPU") for name in names) and len(names) > 4
    assert len(trace.flows) == len({id(flow[0]) for flow in trace.flows.values()})


def test_where_selects_kernels(run, tmp_path):
    trace = written(run, tmp_path, where={"op": "*mm*"})
    ops = {slice_.args.get("op") for slice_ in trace.slices if slice_.category == "kernel"}
    assert ops and all("mm" in op for op in ops)
    with pytest.raises(ReportError, match="unknown key"):
        write_run_perfetto(run, tmp_path / "x", where={"colour": "red"})
    assert not (tmp_path / "x").exists()


def test_a_call_without_other_ranks_has_no_wait(tmp_path):
    truth.write(tmp_path, programs.ddp(2), 2, 1, [faults.Missing(rank=1)])
    trace = written(read(tmp_path), tmp_path, kernels=False)
    calls = [slice_ for slice_ in trace.slices if slice_.category == "collective"]
    assert calls and not trace.flows
    assert not any("last rank" in call.args or "wait (ns)" in call.args for call in calls)
