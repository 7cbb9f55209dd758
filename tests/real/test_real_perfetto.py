"""Perfetto exports of real traces: parsed by Perfetto's schema, with the totals of the profile."""

from collections import Counter

import numpy as np
import pytest

from fastprof.model.trace import NEVER
from real import open_traces
from support import perfetto_traces
from support.real_data import traces

TRACES = traces("nsys/*.sqlite", "pyprof/*.sqlite", "nvprof/*", "kineto/*.json.gz")


@open_traces.kept
def exported(path, folder):
    out = folder / "x.pftrace"
    open_traces.profile(path, copies=True).export(out, "perfetto")
    return perfetto_traces.read(out)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("perfetto")


every_trace = pytest.mark.parametrize("path", TRACES)


@every_trace
def test_gpu_time_of_each_stream_and_flops(path, folder):
    profile, trace = open_traces.profile(path, copies=True), exported(path, folder)
    columns = [
        profile.kernels[name].filled(-1).tolist() for name in ("device", "stream", "sil", "flops")
    ]
    time, kernels, flops = Counter(), Counter(), 0
    for device, stream, sil, of_kernel in zip(*columns, strict=True):
        place = device, f"stream {stream if stream >= 0 else 'unknown'}"
        time[place] += max(sil, 0)
        kernels[place] += 1
        flops += max(of_kernel, 0)
    found_time, found_kernels, found_flops = Counter(), Counter(), 0
    slices = [*trace.on("GPU")]
    for slice_ in slices:
        gpu, stream = trace.path(slice_.track)[-2:]
        place = int(gpu.split()[1]), stream.partition(",")[0].partition(" (")[0]
        found_time[place] += slice_.end - slice_.start
        found_kernels[place] += 1
        found_flops += slice_.args.get("FLOPs", 0)
    assert {slice_.depth for slice_ in slices} <= {0}
    assert found_time == time
    assert found_kernels == kernels
    assert found_flops == flops


@every_trace
def test_kernels_have_their_columns_and_times(path, folder):
    profile, trace = open_traces.profile(path, copies=True), exported(path, folder)
    slices = sorted(trace.on("GPU"), key=lambda each: each.flow_ends or [0])
    shift = _shift(profile, trace)
    expected, result = Counter(), Counter()
    names = ("start", "kernel", "op", "layer", "line", "dir")
    for start, kernel, op, layer, line, direction in zip(
        *(profile.kernels[name].tolist() for name in names), strict=True
    ):
        expected[start, kernel, op, ":".join(layer or ()) or None, line, direction] += 1
    for slice_ in slices:
        args = (slice_.args.get(name) for name in ("op", "layer", "line", "direction"))
        result[(slice_.start - shift, slice_.name, *args)] += 1
    assert result == expected


def _shift(profile, trace):
    """Of the clock: times before 0 cannot be on Perfetto's."""
    starts = profile.kernels["start"]
    gpu = trace.on("GPU")
    return min(each.start for each in gpu) - int(starts.min()) if gpu else 0


@every_trace
def test_host_slices_and_flows(path, folder):
    profile, trace = open_traces.profile(path, copies=True), exported(path, folder)
    ranges, api = profile.ranges, profile.api
    categories = Counter(slice_.category for slice_ in trace.slices)
    gpu = {"kernel", "graph", "memcpy", "memset"}
    n_steps, n_across = len(trace.on("steps")), len(ranges.ended_elsewhere.start)
    assert categories["api"] == len(api)
    assert categories["step"] == n_steps
    on_host = {name: n for name, n in categories.items() if name not in gpu | {"api", "step"}}
    assert sum(on_host.values()) == ranges.n_own + n_across
    unfinished = sum(slice_.end is None for slice_ in trace.slices)
    assert unfinished == int((ranges.end[: ranges.n_own] == NEVER).sum() + (api.end == NEVER).sum())
    launched, linked = int((api.of_kernel >= 0).sum()), int((ranges.forward >= 0).sum())
    kinds = Counter()
    for start, end in trace.flows.values():
        kinds[start.category, "gpu" if "launch latency (ns)" in end.args else end.category] += 1
    assert len(trace.flows) == launched + linked
    assert sum(n for (start, _), n in kinds.items() if start == "api") == launched


@every_trace
def test_flow_ends_at_the_kernel_of_the_call(path, folder):
    trace = exported(path, folder)
    for start, end in trace.flows.values():
        if start.category == "api":
            assert start.args.get("correlation") == end.args.get("correlation")


@every_trace
def test_memory_counters_are_those_of_the_profile(path, folder):
    profile, trace = open_traces.profile(path, copies=True), exported(path, folder)
    memory = profile.memory_events
    if not len(memory):
        assert trace.counters == {}
        return
    allocated = [
        max(value for _, value in values)
        for uuid, values in trace.counters.items()
        if trace.path(uuid)[-1].endswith("allocated")
    ]
    if (memory.total_allocated >= 0).any():
        assert max(allocated) == int(memory.total_allocated.max())
    assert allocated and np.all(np.array(allocated) >= 0)
