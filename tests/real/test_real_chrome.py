"""Chrome JSON exports of real traces, read again: the same columns, as far as the format goes."""

import json
import re
from itertools import chain

import numpy as np
import pytest

import fastprof
from real import open_traces
from support.real_data import traces

KINETO = traces("kineto/*.json.gz")
OTHERS = traces("nsys/*.sqlite", "pyprof/*.sqlite", "nvprof/*")
# Numbers of rows and nodes, which depend on the order of the file.
NUMBERED = {"idx", "path", "call", "home_range", "range"}
TIMES = ("start", "end", "launch_start")
# torch.profiler names copies and API calls otherwise, and has no unexpanded graphs.
RENAMED = {"name", "kernel", "kind", "launch"}
# torch.profiler writes one file per process: ids are unique, and processes those of launches.
OF_PROCESS = {"correlation", "pid"}
# Custom operators without shapes and sequence number cannot be told from annotations, from which
# the phase follows.
OF_RANGES = {"ranges", "launch_ranges", "phase"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("chrome")


@open_traces.kept
def again(path, folder):
    out = folder / "x.json.gz"
    open_traces.profile(path, copies=True).export(out, "chrome")
    return fastprof.open(out, copies=True)


def values(profile, name, shift=0):
    """A column in order of (start, device, stream, correlation)."""
    keys = ("correlation", "stream", "device", "start")
    order = np.lexsort([profile.kernels[key].filled(-9) for key in keys])
    result = [profile.column(name).at(row) for row in order.tolist()]
    if name in TIMES:
        return [None if each is None else each - shift for each in result]
    return result


def shift_of(profile, other):
    """Times in the file are not negative; earlier ones shift all."""
    starts = [each.kernels["start"] for each in (profile, other)]
    return int(starts[1].min() - starts[0].min()) if len(profile) else 0


@pytest.mark.parametrize("path", KINETO)
def test_traces_of_torch_profiler_are_the_same_in_all_columns(path, folder):
    profile, result = open_traces.profile(path, copies=True), again(path, folder)
    for name in [name for name in profile.names if name not in NUMBERED]:
        assert values(result, name) == values(profile, name), name


@pytest.mark.parametrize("path", OTHERS)
def test_other_traces_are_the_same_but_for_what_the_format_lacks(path, folder):
    profile, result = open_traces.profile(path, copies=True), again(path, folder)
    assert len(result) == len(profile)
    lacking = NUMBERED | RENAMED
    if len({*profile.ranges.threads.pid.tolist(), *profile.api.threads.pid.tolist()}) > 1:
        lacking |= OF_PROCESS
    if "emit_nvtx" in path or path == "nsys/fsdp_upload_2gpu_h100.sqlite":
        lacking |= OF_RANGES
    shift = shift_of(profile, result)
    for name in [name for name in profile.names if name not in lacking]:
        assert values(result, name, shift) == values(profile, name), name
    kernels = [i for i, kind in enumerate(values(profile, "kind")) if kind == "kernel"]
    names, others = values(profile, "name"), values(result, "name")
    assert [names[i] for i in kernels] == [others[i] for i in kernels]
    launches = [re.sub(r"_v\d{4,}$", "", value or "") for value in values(profile, "launch")]
    assert [value or "" for value in values(result, "launch")] == launches


@pytest.mark.parametrize("path", [*KINETO, *OTHERS])
def test_ranges_calls_links_and_memory_are_the_same(path, folder):
    profile, result = open_traces.profile(path, copies=True), again(path, folder)
    assert result.ranges.n_own == profile.ranges.n_own
    assert len(result.api) == len(profile.api)
    assert np.count_nonzero(result.ranges.forward >= 0) == np.count_nonzero(
        profile.ranges.forward >= 0
    )
    recorded = profile.memory_events
    known = recorded.device_type < 1000  # kinds of torch.profiler
    assert len(result.memory_events) == int(known.sum())
    assert result.memory_events.bytes.tolist() == recorded.bytes[known].tolist()


def test_rows_have_the_keys_of_torch_profiler(folder, tmp_path):
    """Every key of an event of torch.profiler's own file that its reader can use."""
    path = "kineto/transformer_a100_2024.json.gz"
    out = tmp_path / "x.json"
    open_traces.profile(path, copies=True).export(out, "chrome")
    written, recorded = json.loads(out.read_text()), open_traces.json_of(path)
    lost = {
        "cpu_op": {"Record function id", "Concrete Inputs", "Input Strides", "Fwd thread id"},
        "user_annotation": {"External id", "Record function id", "Input type", "Input Dims"}
        | {"Concrete Inputs", "Input Strides", "Ev Idx"},
        "kernel": {"queued", "blocks per SM", "warps per SM", "est. achieved occupancy %"},
        "cuda_runtime": {"External id"},
        "gpu_memcpy": {"memory bandwidth (GB/s)"},
        "gpu_memset": {"memory bandwidth (GB/s)"},
    }
    for category, missing in lost.items():
        keys = [
            set(chain(*(event["args"] for event in file["traceEvents"] if _is(event, category))))
            for file in (recorded, written)
        ]
        assert keys[0] - keys[1] <= missing, category


def _is(event, category):
    return event.get("cat") == category and "args" in event
