"""Annotations of nodes of CUDA graphs, in traces that torch's own exporter annotated.

The trace and the annotations, which need a GPU, are built here in torch's format.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.api.profile import Profile
from support.kineto_files import KinetoFile

GRAPH = 9 << 32
ANNOTATIONS: dict[int, list[Any]] = {
    GRAPH | 1: [{"name": "linear_fwd", "layer": "0"}],
    GRAPH | 2: [{"name": "all_gather", "dtype": "torch.float16", "Group size": 4}],
    GRAPH | 3: [{"str": "residual_add", "stream": 61}],
    GRAPH | 4: [{"module_fqn": "layers.0.attention.wq"}, {"stage": "decode"}],
    GRAPH | 5: [
        {
            "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024,
            "Group size": 2, "dtype": "Float", "Process Group Name": "0",
        }
    ],
}  # fmt: skip
KERNELS = ["k1", "ncclDevKernel_AllGather", "k3", "k4", "ncclDevKernel_AllReduce", "k6"]


def replay() -> KinetoFile:
    trace = KinetoFile().op(-50, 40, "layer:Net").launch(0, 10, 1, name="cudaGraphLaunch")
    for i, name in enumerate(KERNELS, 1):
        node = {"graph node id": GRAPH | i, "graph id": 9, "queued": i, "warps per SM": 0.5 * i}
        trace.kernel(100 * i, 100 * i + 50, 1, name, stream=13, **node)
    return trace


def annotated_by_torch(path: Path) -> Path:
    module = pytest.importorskip("torch.cuda._annotate_cuda_graph_trace")
    trace = replay()
    root = {**trace.root, "traceEvents": trace.events}
    assert module.annotate_trace(root, ANNOTATIONS) == len(ANNOTATIONS)
    path.write_text(json.dumps(root))
    return path


def beside(path: Path) -> Profile:
    notes = path.with_name("annotations.pkl")
    notes.write_bytes(pickle.dumps(ANNOTATIONS))
    return fastprof.open(replay().write(path), graph_annotations=notes)


def kept(path: Path) -> Path:
    """As `fastprof.capture` and `fastprof run` keep the annotations of the program."""
    trace = replay()
    trace.root["fastprof_graph_annotations"] = {
        str(node): notes for node, notes in ANNOTATIONS.items()
    }
    return trace.write(path)


@pytest.fixture(params=["exported", "beside", "kept"])
def profile(request: pytest.FixtureRequest, tmp_path: Path) -> Profile:
    path = tmp_path / "t.json"
    if request.param == "beside":
        return beside(path)
    return fastprof.open(annotated_by_torch(path) if request.param == "exported" else kept(path))


def test_modules_layers_and_names_are_layers_inside_those_of_the_launch(profile: Profile) -> None:
    own = [("layer 0", "linear_fwd"), (), ("residual_add",), ("layers.0", "attention", "wq"), ()]
    layers = [("Net", *path) for path in (*own, ())]
    assert profile.column("layer").array().tolist() == layers


def test_collectives_have_type_group_and_size(profile: Profile) -> None:
    def values(name: str) -> list[Any]:
        return [profile.column(name).at(row) for row in (1, 4)]

    assert values("collective") == ["all_gather", "all_reduce"]
    assert values("message_type") == ["fp16", "fp32"]
    assert values("group_size") == [4, 2]
    assert values("message_bytes") == [None, 4096]


def test_fields_are_keys(profile: Profile) -> None:
    table = profile.summary(by=["annotation:stage"], where=["annotation:stage!=na"])
    assert [table.columns["annotation:stage"].at(row) for row in range(table.n_rows)] == ["decode"]
    assert table.columns["gpu_ns"].at(0) == 50


def test_what_profilers_write_is_no_annotation(profile: Profile) -> None:
    assert profile.column("annotation").at(5) is None
    assert json.loads(profile.column("annotation").at(3)) == {
        "module_fqn": "layers.0.attention.wq", "stage": "decode",
    }  # fmt: skip


def test_a_trace_without_annotations_has_none(tmp_path: Path) -> None:
    profile = fastprof.open(replay().write(tmp_path / "t.json"))
    assert profile.column("annotation").array().tolist() == [None] * len(KERNELS)


def test_the_direction_of_an_annotation_is_that_of_its_kernels(tmp_path):
    notes = tmp_path / "annotations.json"
    directions = [{"module_fqn": "fc", "direction": name} for name in ("forward", "backward", "up")]
    notes.write_text(json.dumps({GRAPH | i: [each] for i, each in enumerate(directions, 1)}))
    profile = fastprof.open(replay().write(tmp_path / "trace.json"), graph_annotations=notes)
    column = profile.column("dir")
    assert [column.at(i) for i in range(4)] == ["fprop", "bprop", "fprop", "fprop"]
    assert profile.summary(by=["dir"]).columns["dir"].array().tolist() == ["fprop", "bprop"]
