"""Reports of every real trace: sums over any grouping equal the sums over its rows."""

from itertools import combinations

import pytest

from fastprof.analysis.key_names import KEY_NAMES
from real.open_traces import profile
from support.real_data import traces

TRACES = traces("*/*")
PAIRS = list(combinations(("dir", "layer", "op", "shape", "kernel", "kind", "phase", "line"), 2))


def known_sum(profile, name):
    return sum(each for each in profile.column(name).array().compressed().tolist())


@pytest.mark.parametrize("path", TRACES)
def test_sums_by_any_keys_are_those_of_the_rows(path):
    trace = profile(path, copies=True)
    expected = {
        "kernels": len(trace),
        "gpu_ns": known_sum(trace, "sil"),
        "flops": known_sum(trace, "flops"),
        "bytes": known_sum(trace, "bytes"),
    }
    for by in [*((name,) for name in KEY_NAMES), *PAIRS]:
        table = trace.summary(by)
        rows = list(table.rows())
        for name, total in expected.items():
            assert sum(row.get(name) or 0 for row in rows) == total, (by, name)
            assert (table.total.get(name) or 0) == total, (by, name)
        shares = [row["share"] for row in rows if row.get("share") is not None]
        assert sum(shares) == pytest.approx(1 if expected["gpu_ns"] else 0)


@pytest.mark.parametrize("path", TRACES)
def test_the_busy_time_is_the_union_of_the_work(path):
    trace = profile(path, copies=True)
    if "start" not in trace.names or not len(trace):
        return
    work = {}
    for row in zip(*(trace.kernels[name] for name in ("device", "start", "sil")), strict=True):
        device, start, time = (int(x) if x is not None else 0 for x in row)
        work.setdefault(device, []).append((start, start + max(time, 0)))
    busy = 0
    for intervals in work.values():
        reached = min(start for start, _ in intervals)
        for start, end in sorted(intervals):
            busy += max(0, end - max(start, reached))
            reached = max(reached, end)
    assert trace.summary().facts["busy_ns"] == pytest.approx(busy / len(work))


def test_r50_has_the_times_that_tensorboard_shows():
    """Kineto's TensorBoard plugin on this file: ms a step by kind of work, of six steps."""
    trace = profile("kineto/resnet50_2021_stack_memory.json.gz", copies=True)
    ns: dict[str, float] = {}
    for row in trace.summary(("kind", "step")).rows():
        if row["step"] is not None:
            ns[row["kind"]] = ns.get(row["kind"], 0) + row["gpu_ns"] / 6
    copies = ns.pop("memcpy"), ns.pop("memset")
    assert [round(each / 1000) for each in (sum(ns.values()), *copies)] == [98_589, 1_915, 89]
    phases = {row["phase"]: row["step_ns"] / 1e6 for row in trace.summary("phase").rows()}
    expected = {"backward": 64.4, "forward": 32.7, "optimizer": 1.3, "zero_grad": 0.2, "copy": 2.0}
    assert phases == pytest.approx(expected, abs=0.06)
    kernels = {row["phase"]: row["kernels"] / 6 for row in trace.summary("phase").rows()}
    assert kernels == {
        "backward": 538, "forward": 280, "optimizer": 483, "zero_grad": 161, "copy": 54,
    }  # fmt: skip
