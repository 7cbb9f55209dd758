"""A training step of LeNet with a real NVTX tool attached: all calls, frames, layers and FLOPs."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastprof.model.call import Tensor
from fastprof.model.markers import Kind
from fastprof.ops.registry import work
from support.nvtx_read_back import ReadRange, assert_agrees

pytest.importorskip("torch", reason="torch is not installed")

TESTS = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("lenet_step.py")
MODULE = "/_run_module_as_main/_run_code/<module>"  # python -m support.torch_server
SERVER = f"{MODULE}/_become/run_path/_run_module_code/_run_code"
LAYERS = ["conv1", "conv2", "fc1", "fc2", "fc3"]


@pytest.fixture(scope="module")
def lenet(tmp_path_factory):
    from support import nvtx_recorder

    reason = nvtx_recorder.why_not()
    if reason:
        pytest.skip(reason)
    recording = nvtx_recorder.record(
        PROGRAM, env={"PYTHONPATH": str(TESTS)}, directory=tmp_path_factory.mktemp("lenet")
    )
    return recording, assert_agrees(recording), json.loads(recording.stdout)


def of_kind(read: list[ReadRange], kind: Kind) -> list[ReadRange]:
    return [range_ for range_ in read if range_.meaning.kind == kind]


def calls(read: list[ReadRange]) -> list[ReadRange]:
    return of_kind(read, Kind.ARGUMENT)


def outermost(read: list[ReadRange], ops: set[str] | None = None) -> list[ReadRange]:
    """Outermost argument markers (of some operators)."""

    def counts(range_: ReadRange) -> bool:
        call = range_.meaning.call
        return range_.meaning.kind == Kind.ARGUMENT and (ops is None or call.op in ops)

    return [
        range_
        for range_ in read
        if counts(range_) and not any(counts(around) for around in range_.chain()[:-1])
    ]


def in_forward(range_: ReadRange) -> bool:
    """Whether a call belongs to the forward pass or loss of the annotated step."""
    ops = {around.meaning.call.op for around in range_.chain() if around.meaning.call}
    lines = PROGRAM.read_text().splitlines()
    outer = lines[int(range_.parent.meaning.frames[0].rpartition(":")[2]) - 1]
    return outer.startswith("step(") and not ops & {"backward", "step", "DataLoader"}


def tensors(args: list[Any]) -> list[Any]:
    return [arg for arg in args if isinstance(arg, Tensor)]


def test_no_range_is_left_open_and_none_is_closed_twice(lenet):
    recording, _, _ = lenet
    assert recording.open_ranges == [] and recording.stray == 0


def test_every_call_of_the_step_has_its_ranges(lenet):
    _, read, told = lenet
    result = [range_ for range_ in outermost(read) if in_forward(range_)]
    seen = [
        [call.op, [list(tensor.shape) for tensor in tensors([arg.value for arg in call.args])]]
        for call in (each.meaning.call for each in result)
    ]
    assert seen == [call for call in told["calls"] if call[0] not in ("size", "dim")]
    assert [op for op, _ in seen][:3] == ["conv2d", "relu", "max_pool2d"]


def test_backward_the_optimizer_and_the_loader_have_theirs(lenet):
    _, read, _ = lenet
    names = [(each.meaning.call.mod, each.meaning.call.op) for each in outermost(read)]
    assert ("Tensor", "backward") in names
    assert ("SGD", "step") in names
    assert ("torch.utils.data.dataloader", "DataLoader") in names
    of_step = [call for call in calls(read) if "'op': 'step'" in call.chain()[1].label]
    assert {"add_", "_foreach_add_"} & {each.meaning.call.op for each in of_step}


def test_a_call_stands_in_its_trace_marker(lenet):
    _, read, _ = lenet
    for call in calls(read):
        assert call.parent is not None and call.parent.meaning.kind == Kind.TRACE


def test_arguments_are_true(lenet):
    _, read, _ = lenet
    conv1, conv2 = (each.meaning.call for each in outermost(read, {"conv2d"}))
    assert (conv1.mod, conv1.op) == ("torch.nn.functional", "conv2d")
    values = [arg.value for arg in conv1.args]
    assert values[:3] == [
        Tensor((4, 1, 32, 32), "float32"),
        Tensor((6, 1, 5, 5), "float32"),
        Tensor((6,), "float32"),
    ]
    assert values[3:] == [(1, 1), (0, 0), (1, 1), 1]
    assert conv2.args[0].value == Tensor((4, 6, 14, 14), "float32")
    (loss,) = outermost(read, {"cross_entropy"})
    named = {arg.name: arg.value for arg in loss.meaning.call.args if arg.name}
    assert loss.meaning.call.args[1].value == Tensor((4,), "int64")
    assert not named  # positional
    (backward,) = (r for r in outermost(read) if r.meaning.call.op == "backward")
    assert backward.meaning.call.args[0].value == Tensor((), "float32")  # a number, not read


def test_frames_are_the_users_lines(lenet):
    _, read, _ = lenet
    lines = PROGRAM.read_text().splitlines()
    for call in [each for each in outermost(read) if in_forward(each)]:
        frames = call.parent.meaning.frames
        assert frames and all(frame.startswith(str(PROGRAM)) for frame in frames)
        comment = lines[int(frames[-1].rpartition(":")[2]) - 1].partition("# ")[2].split()
        layers = [each.meaning.name for each in call.chain() if each.meaning.kind == Kind.LAYER]
        assert call.meaning.call.op in comment or layers[-1] in comment
    (backward,) = (r for r in outermost(read) if r.meaning.call.op == "backward")
    line = int(backward.parent.meaning.frames[-1].rpartition(":")[2])
    assert "loss.backward()" in lines[line - 1]


def test_layers_are_the_modules(lenet):
    _, read, _ = lenet
    assert [each.meaning.name for each in of_kind(read, Kind.LAYER)] == LAYERS * 2
    assert all(each.depth == 0 for each in of_kind(read, Kind.LAYER))
    linear = [each.parent.parent.meaning.name for each in outermost(read, {"linear"})]
    assert linear == ["fc1", "fc2", "fc3"]


def test_after_uninit_only_layers_are_left(lenet):
    _, read, _ = lenet
    last = of_kind(read, Kind.LAYER)[-len(LAYERS) :]
    assert not [call for call in calls(read) if call.start > last[0].start]


def test_flops_of_the_markers_are_those_of_flop_counter_mode(lenet):
    _, read, told = lenet
    counted = [r.meaning.call for r in outermost(read, {"conv2d", "linear"})]
    products = [work(call, "fprop").parts[0] for call in counted]
    assert [part.role for part in products] == ["main"] * 5
    assert sum(part.cost.flops for part in products) == told["flops"]


def test_function_stacks_name_functions_and_modules(tmp_path):
    from support import nvtx_recorder

    reason = nvtx_recorder.why_not()
    if reason:
        pytest.skip(reason)
    recording = nvtx_recorder.record(
        PROGRAM,
        "--functions",
        env={"PYTHONPATH": str(TESTS)},
        directory=tmp_path,
        with_torch=True,
    )
    read = assert_agrees(recording)
    (first, *_) = outermost(read, {"conv2d"})
    assert first.parent.meaning.function_stack == f"{SERVER}/<module>/step/LeNet::forward/conv1"
    (view,) = outermost(read, {"view"})
    assert view.parent.meaning.function_stack == f"{SERVER}/<module>/step/LeNet::forward"
