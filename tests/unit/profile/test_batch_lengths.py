"""The range of a batch gives the sequence lengths of the attention inside."""

from types import SimpleNamespace

import numpy as np
import pytest

import fastprof
from fastprof.model.call import Arg
from fastprof.model.markers import read
from fastprof.profile.call_results import CallKinds, with_batches
from support.kineto_files import KinetoFile

DETAILED = "execute_5_context_1(sq4sk4sqsq16sqsk16)_generation_1(sq1sk9sqsq1sqsk9)"
ATTENTION = "vllm::unified_attention_with_output"
SIZED = f"{ATTENTION}, sizes = [[5, 4, 8], [5, 2, 8], [5, 2, 8]]"
DIMS = [[5, 4, 8], [5, 2, 8], [5, 2, 8], [5, 4, 8], []]
TYPES = ["c10::BFloat16"] * 4 + [""]


def attention(trace, start, corr):
    trace.op(start, start + 50, ATTENTION, dims=DIMS, types=TYPES)
    trace.launch(start + 10, start + 20, corr)
    return trace.kernel(start + 30, start + 40, corr, "attention_kernel")


def costs(trace, tmp_path):
    profile = fastprof.open(trace.write(tmp_path / "one.json"))
    return [(row["op"], row["flops"], row["bytes"]) for row in profile.rows()]


@pytest.mark.parametrize(
    ("name", "scores", "keys"),
    [
        (DETAILED, 25, 13),
        ("execute_context_1(5)_generation_0(0)", 25, 5),
        ("step[EXTEND bs=1 toks=5]", 25, 5),
        ("prefill[bs=1 tok=5 sqsk=40 sk=8]", 40, 8),
    ],
)
def test_lengths_reach_the_attention_inside(tmp_path, name, scores, keys):
    trace = KinetoFile().annotation(0, 200, name)
    attention(trace, 100, 1)
    moved = 2 * (2 * 5 * 4 * 8 + 2 * keys * 2 * 8)
    assert costs(trace, tmp_path) == [("unified_attention_with_output", 2 * 4 * 16 * scores, moved)]


def test_each_batch_tells_its_own(tmp_path):
    trace = KinetoFile()
    for start, corr, tokens in ((0, 1, 25), (1000, 2, 40)):
        trace.annotation(start, start + 300, f"prefill[bs=1 tok=5 sqsk={tokens} sk=8]")
        attention(trace, start + 100, corr)
    assert [flops for _, flops, _ in costs(trace, tmp_path)] == [128 * 25, 128 * 40]


@pytest.mark.parametrize("name", ["forward", "step[DECODE bs=5]", "prefill[bs=1 tok=4]"])
def test_a_range_that_does_not_tell_leaves_them_unknown(tmp_path, name):
    trace = KinetoFile().annotation(0, 200, name)
    attention(trace, 100, 1)
    assert costs(trace, tmp_path) == [("unified_attention_with_output", None, None)]


def found(around, launch=None):
    """Two kernels of one attention call, whose graph was captured under `around`."""
    meanings = [read(around, True), read(SIZED, True), read("prefill[bs=1 tok=5]", False)]
    meanings += [read(DETAILED, False), read("hipGraphLaunch", False)]
    frame = np.array([1, 1], np.int32)
    return SimpleNamespace(
        meanings=meanings,
        frame_parent=np.array([-1, 0, -1, 2, 3], np.int32),
        frame_of_kernel=frame,
        launch_frame_of_kernel=frame if launch is None else np.array(launch, np.int32),
    )


def kinds_of(*rows):
    """Kinds from (call, backward, work, gradient, helper) each."""
    calls = np.array([(call, work, helper) for call, _, work, _, helper in rows], np.int32)
    return CallKinds(calls, np.array([row[1] for row in rows]), np.array([row[3] for row in rows]))


def rows_of(kinds, place):
    return [
        (*kinds.calls[row].tolist(), bool(kinds.backward[row]), bool(kinds.gradient[row]))
        for row in place
    ]


FRAMES = np.arange(5, dtype=np.int32)
BOTH = kinds_of((1, False, 1, False, -1)), np.zeros(2, np.int32)


def test_without_batches_nothing_changes():
    here = found("forward")
    here.meanings[2:4] = [here.meanings[0]] * 2
    meanings, *kinds, batch = with_batches(here, here.meanings, FRAMES, *BOTH)
    assert meanings is here.meanings
    assert tuple(kinds) == BOTH
    assert batch is None


def test_a_batch_under_emit_nvtx_has_the_suffix_of_torch():
    here = found(DETAILED)
    meanings, kinds, kind, batch = with_batches(here, here.meanings, FRAMES, *BOTH)
    assert kinds.calls[kind].tolist() == [[5, 5, -1]] * 2
    assert meanings[5].call.args == (*meanings[1].call.args, Arg("batch", DETAILED))
    assert batch.tolist() == [0, 0]


def test_a_replayed_graph_works_for_the_batch_of_its_launch():
    here = found("capture_5", launch=[4, 0])
    kinds = kinds_of((1, True, 4, False, -1), (-1, False, 4, True, 1))
    for kind in (0, 1):
        of_kernel = np.full(2, kind, np.int32)
        meanings, changed, place, batch = with_batches(
            here, here.meanings, FRAMES, kinds, of_kernel
        )
        # The second was launched outside batches.
        (unchanged,) = rows_of(kinds, [kind])
        in_batch = [5 if call == 1 else call for call in unchanged[:3]]
        assert rows_of(changed, place) == [(*in_batch, *unchanged[3:]), unchanged]
    assert batch.tolist() == [3, -1]
    # Of the ranges around the launch, the inner one has the sums and counts.
    assert meanings[5].call.args[-1] == Arg("batch", DETAILED)
