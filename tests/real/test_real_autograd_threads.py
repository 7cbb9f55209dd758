"""Autograd's thread in real traces from which everything that names it was taken."""

import json
import shutil
from typing import Any

import numpy as np
import pytest

import fastprof
from oracle.links import BACKWARD, direction
from real import open_traces
from support.real_data import real
from support.sqlite_files import execute

RTX3070 = "nsys/ranges_rtx3070_nsys2025.sqlite"
OF_TORCH = {"cpu_op", "python_function", "ac2g", "fwdbwd"}
TRAININGS = [
    f"kineto/{name}.json.gz"
    for name in (
        "resnet_v100_2024_fwdbwd", "nccl_params", "graph_replay_2024", "train_v100_2022",
        "train_v100_2022_control", "recommender_2023", "dlrm_rank0", "dlrm_rank3",
        "resnet18_mi300_full", "resnet_intermittent_loader", "toy_mi250",
    )
]  # fmt: skip


@pytest.mark.parametrize("change", [
    "DROP TABLE ThreadNames",
    "UPDATE ThreadNames SET nameId = (SELECT id FROM StringIds WHERE value = 'python')",
])  # fmt: skip
def test_without_its_name_the_thread_has_the_same_work(tmp_path, change):
    path = tmp_path / "export.sqlite"
    shutil.copyfile(real(RTX3070), path)
    execute(path, change)
    wanted, result = open_traces.profile(RTX3070).kernels, fastprof.open(path, copies=False).kernels
    assert (wanted["dir"] == "bprop").sum() == 6135
    for key in ("dir", "phase", "ranges", "launch_ranges", "range", "step"):
        assert result[key].tolist() == wanted[key].tolist(), key


@pytest.mark.parametrize("path", TRAININGS)
def test_without_torchs_ranges_the_thread_is_found_by_what_it_does(path, tmp_path):
    capture = open_traces.capture(path)
    engine = {thread for _, thread in capture.autograd_threads}
    truth = [
        direction(capture, kernel)
        for kernel in capture.kernels
        if kernel.launched is not None and kernel.thread in capture.autograd_threads
    ]
    trace = tmp_path / "own_ranges.json"
    trace.write_text(json.dumps({"traceEvents": [*without_torch(path, engine)]}, default=float))
    kernels = fastprof.open(trace, copies=False).kernels
    tid = np.isin(kernels["tid"], list(engine))
    assert tid.any()
    assert set(kernels["dir"][tid]) == {"bprop"}
    assert "bprop" not in set(kernels["dir"][~tid])
    assert set(kernels["phase"][tid]) <= {"backward", "communication"}
    assert int(tid.sum()) == truth.count(BACKWARD)


def without_torch(path: str, engine: set[Any]) -> Any:
    """The events but those of torch's operators, of the engine's own ranges, and names."""
    for event in open_traces.json_of(path)["traceEvents"]:
        category = event.get("cat")
        if category in OF_TORCH or event.get("name") == "thread_name":
            continue
        if category == "user_annotation" and event["tid"] in engine:
            continue
        args = {key: value for key, value in event.get("args", {}).items() if key != "External id"}
        yield event | {"args": args}
