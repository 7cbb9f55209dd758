"""Profiles of real torch.profiler traces of 2021 to 2025 agree with their JSON."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from fastprof.profile.callpath.attribution import attribute
from fastprof.profile.callpath.nesting import nest
from fastprof.readers.kineto import reader
from real.open_traces import events, profile
from support.real_data import real, traces

GPU_WORK = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
every_trace = pytest.mark.parametrize("path", traces("kineto/*.json.gz"))


def gpu_work(path: str, kinds: set[str]) -> list[dict[str, Any]]:
    return [event for event in events(path) if str(event.get("cat", "")).lower() in kinds]


@every_trace
def test_every_kernel_has_one_row(path: str) -> None:
    truth = gpu_work(path, {"kernel"})
    kernels = profile(path).kernels
    assert Counter(kernels["name"].tolist()) == Counter(event["name"] for event in truth)
    assert sorted(kernels["correlation"].tolist()) == sorted(
        event["args"]["correlation"] for event in truth
    )
    assert profile(path).coverage.total == sum(round(event["dur"] * 1000) for event in truth)


@every_trace
def test_copies_and_memsets_have_rows_with_their_bytes(path: str) -> None:
    truth = gpu_work(path, GPU_WORK - {"kernel"})
    kernels = profile(path, copies=True).kernels
    copies = kernels["kind"] != "kernel"
    assert Counter(kernels["copied"][copies].tolist()) == Counter(
        event["args"].get("bytes") for event in truth
    )
    moved = [event for event in truth if "memcpy" in event["cat"].lower()]
    directions = Counter(event["name"].split()[1] for event in moved)
    assert Counter(kernels["copy_direction"][kernels["kind"] == "memcpy"].tolist()) == directions


@every_trace
def test_every_kernel_that_has_a_launch_event_is_launched(path: str) -> None:
    launched = {
        event["args"]["correlation"]
        for event in events(path)
        if str(event.get("cat", "")).lower() in ("cuda_runtime", "cuda_driver", "runtime")
    }
    kernels = profile(path).kernels
    has_launch = np.isin(kernels["correlation"], list(launched))
    assert [each is not None for each in kernels["launch"]] == has_launch.tolist()


def test_all_kernels_of_2024_have_an_operator() -> None:
    ops = profile("kineto/resnet_v100_2024_fwdbwd.json.gz").kernels["op"]
    assert len(ops) == 4350 and all(op is not None for op in ops)


def test_546_kernels_of_2022_have_no_launch_event() -> None:
    launches = profile("kineto/train_v100_2022.json.gz").kernels["launch"]
    assert (len(launches), sum(launch is None for launch in launches)) == (9876, 546)


@pytest.mark.parametrize(
    ("path", "arrows"),
    [("kineto/resnet_v100_2024_fwdbwd.json.gz", 905), ("kineto/resnet18_mi300_full.json.gz", 355)],
)
def test_the_rule_alone_finds_what_the_arrows_say(path: str, arrows: int) -> None:
    trace = reader.read(real(path))
    told = trace.recorded_forward
    assert told is not None
    ends = np.flatnonzero(told >= 0)
    assert len(ends) == arrows
    by_arrows = attribute(nest(trace)).attribution.meaning_of_frame
    trace.recorded_forward = None
    result = attribute(nest(trace)).attribution
    assert np.array_equal(result.meaning_of_frame, by_arrows)
    frame_of_range = np.full(len(trace.ranges), -1)
    frame_of_range[result.frame_range] = np.arange(len(result.frame_range))
    forward = result.frame_range[result.meaning_of_frame[frame_of_range[ends]]]
    assert np.array_equal(forward, told[ends])


def test_modules_and_lines_of_a_trace_with_stacks_are_layers_and_frames() -> None:
    kernels = profile("kineto/resnet18_mi300_full.json.gz").kernels
    forward = kernels["dir"] == "fprop"
    assert any("Conv2d" in (layer or ("",))[-1] for layer in kernels["layer"][forward])
    assert any("resnet.py" in frames[-1] for frames in kernels["trace"][forward] if frames)
    assert not any("/torch/nn/" in frame for frames in kernels["trace"] for frame in frames or ())
