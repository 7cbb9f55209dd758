"""The calls of backward, recomputed, compiled and scripted work in real traces."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest

import fastprof
from real import open_traces
from support.real_data import real

CHECKPOINT = "kineto/resnet_checkpoint_mi300.json.gz"


@pytest.fixture(scope="module")
def checkpointed():
    return open_traces.profile(CHECKPOINT).kernels


def test_591_kernels_of_checkpointing_are_a_forward_pass_that_runs_again(checkpointed):
    again = checkpointed["phase"] == "recompute"
    assert int(again.sum()) == 591
    assert set(checkpointed["dir"][again]) == {"fprop"}
    assert {"conv2d", "batch_norm", "relu_"} <= set(checkpointed["op"][again])
    assert (checkpointed["seq"][again] > 0).any()


def test_sequence_numbers_alone_tell_what_runs_again(checkpointed, tmp_path):
    with gzip.open(real(CHECKPOINT)) as file:
        trace = json.load(file)
    kept = [event for event in trace["traceEvents"] if event.get("cat") != "python_function"]
    assert len(kept) < len(trace["traceEvents"])
    path = tmp_path / "no_stacks.json"
    path.write_text(json.dumps(trace | {"traceEvents": kept}))
    kernels = fastprof.open(path, copies=False).kernels
    for key in ("dir", "op", "params", "phase", "seq", "flops"):
        assert kernels[key].tolist() == checkpointed[key].tolist(), key


@pytest.mark.parametrize(
    ("name", "lookups"),
    [
        ("recommender_2023", {"split_embedding_codegen_lookup_rowwise_adagrad_function"}),
        ("train_v100_2022", {"split_embedding_codegen_lookup_rowwise_adagrad_function"}),
        (
            "dlrm_rank0",
            {
                "split_embedding_codegen_lookup_adagrad_function",
                "dense_embedding_codegen_lookup_function",
            },
        ),
    ],
)
def test_backward_of_a_lookup_belongs_to_the_lookup(name, lookups):
    kernels = open_traces.profile(f"kineto/{name}.json.gz").kernels
    launched = np.array([each is not None for each in kernels["launch"]])
    lookup = launched & ["split_embedding_backward" in each for each in kernels["name"]]
    assert set(kernels["op"][lookup]) == lookups
    assert set(kernels["dir"][lookup]) == {"bprop"}


def test_operators_inside_of_a_compiled_backward_pass_show_themselves():
    kernels = open_traces.profile("kineto/train_v100_2022.json.gz").kernels
    ops = Counter(kernels["op"][kernels["dir"] == "bprop"].tolist())
    assert ops["CompiledFunction"] == 2574  # launched outside all operators
    assert ops["nccl:all_reduce"] == 18 and ops["clone"] > 0


def test_no_script_function_hides_an_operator():
    kernels = open_traces.profile("kineto/recommender_2023.json.gz").kernels
    assert not {"forward", "<forward op>"} & set(kernels["op"])
