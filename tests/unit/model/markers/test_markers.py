"""The meaning of range names: all forms, texts that resemble them, and hostile texts."""

import ast
import json
import math
import time

import pytest

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.model.markers import Kind, op_name, read, read_event
from support.real_data import open_read_only, real

LINEAR = (
    "{'mod': 'torch.nn.functional', 'op': 'linear', 'args': ["
    "{'name': '', 'type': 'tensor', 'shape': (8, 16), 'dtype': 'float32'}, "
    "{'name': 'bias', 'type': 'NoneType', 'value': None}]}"
)


def argument(text: str) -> object:
    """The value of an argument with these fields."""
    meaning = read(f"{{'mod': 'm', 'op': 'o', 'args': [{{'name': '', {text}}}]}}", False)
    assert meaning.kind == Kind.ARGUMENT
    (arg,) = meaning.call.args
    return arg.value


def test_argument_marker_gives_its_call():
    meaning = read(LINEAR, False)
    args = (Arg("", Tensor((8, 16), "float32")), Arg("bias", None))
    assert meaning.kind == Kind.ARGUMENT
    assert meaning.call == Call("torch.nn.functional", "linear", args)
    assert meaning.has_arguments
    assert meaning.name == meaning.label == LINEAR
    assert op_name(meaning) == "linear"


def test_argument_marker_without_arguments_has_them_all():
    meaning = read("{'mod': 'torch', 'op': 'rand', 'args': []}", False)
    assert meaning.call == Call("torch", "rand", ())
    assert meaning.has_arguments


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'type': 'int', 'value': 7", 7),
        ("'type': 'float', 'value': 0.5", 0.5),
        ("'type': 'float', 'value': 'inf'", math.inf),
        ("'type': 'float', 'value': '-inf'", -math.inf),
        ("'type': 'str', 'value': 'inf'", "inf"),
        ("'type': 'bool', 'value': True", True),
        ("'type': 'NoneType', 'value': None", None),
        ("'type': 'str', 'value': 'bilinear'", "bilinear"),
        ("'type': 'list', 'value': [1, [2, 3]]", (1, (2, 3))),
        ("'type': 'tuple', 'value': (1, 1)", (1, 1)),
        ("'type': 'tuple', 'value': (1, -inf)", (1, -math.inf)),
        ("'type': 'tensor', 'shape': (2, 3), 'dtype': 'bfloat16'", Tensor((2, 3), "bfloat16")),
        ("'type': 'tensor', 'shape': [2], 'dtype': 'torch.int8'", Tensor((2,), "int8")),
        ("'type': 'tensor', 'shape': (), 'dtype': 'float32'", Tensor((), "float32")),
        ("'type': 'tensor', 'shape': (0, 4)", Tensor((0, 4), None)),
        ("'type': 'ndarray', 'shape': (4,), 'dtype': 'float64'", Tensor((4,), "float64")),
        ("'type': 'complex', 'value': 1+2j", "(1+2j)"),
        ("'type': 'dict', 'value': {'a': 1}", "{'a': 1}"),
    ],
)
def test_argument_of_each_type_is_read(text, value):
    result = argument(text)
    assert result == value
    assert type(result) is type(value)
    hash(result)


def test_nan_argument_is_a_float():
    assert math.isnan(argument("'type': 'float', 'value': 'nan'"))


@pytest.mark.parametrize(
    "text",
    [
        "'type': 'tensor'",
        "'type': 'tensor', 'shape': 'big', 'dtype': 'float32'",
        "'type': 'tensor', 'shape': (2, -3)",
        "'type': 'tensor', 'shape': (2, 3.0)",
        "'type': 'tensor', 'shape': (True,)",
        "'type': 'tensor', 'shape': (9223372036854775808,)",
        "'type': 'int', 'value': " + "0x" + "f" * 1000,
        "'type': 'list', 'value': [torch.float32]",
        "'type': 'list', 'value': {[]: 1}",
        "'type': 'int', 'value': print('no')",
        "'kind': 'int'",
    ],
)
def test_argument_that_cannot_be_read_keeps_its_place(text):
    label = f"{{'mod': 'm', 'op': 'o', 'args': [{{'name': 'x', {text}}}, 5, {{'value': 2}}]}}"
    assert read(label, False).call.args == (Arg("x", None), Arg("", None), Arg("", 2))


def test_tensors_of_a_list_share_a_name():
    tensor = "{'name': 'tensors', 'type': 'tensor', 'shape': (2,), 'dtype': 'float32'}"
    meaning = read(f"{{'mod': 'torch', 'op': 'cat', 'args': [{tensor}, {tensor}]}}", False)
    assert meaning.call.args == (Arg("tensors", Tensor((2,), "float32")),) * 2


def test_module_marker_gives_its_text():
    meaning = read("{'mod': 'LSTMCell', 'strRepr': '512, 512'}", False)
    assert (meaning.kind, meaning.module_repr, meaning.call) == (Kind.MODULE, "512, 512", None)


def test_trace_marker_gives_the_users_frames_in_their_order():
    frames = [
        "train.py:310",
        "/site-packages/torch/nn/modules/module.py:532",
        "/site-packages/torch/nn/functional.py:1371",
        "/site-packages/torch/tensor.py:400",
        "/site-packages/torch/_tensor.py:40",
        "/site-packages/torch/autograd/function.py:2",
        "/site-packages/torch/_jit_internal.py:3",
        "/site-packages/torch/_utils.py:4",
        "/site-packages/torch/optim/adam.py:5",
        "/site-packages/apex/optimizers/fused_adam.py:6",
        "/site-packages/pyprof/nvtx/nvmarker.py:7",
        "/site-packages/fastprof/annotate/wrap.py:8",
        "C:\\env\\torch\\nn\\modules\\conv.py:9",
        "nvmarker.py:10",
        "/home/me/torch/models/net.py:11",
        "/home/me/my_functional.py:12",
    ]
    stack = "/<module>/main/Net::forward/conv1"
    meaning = read(str({"traceMarker": frames, "funcStack": stack}), False)
    assert meaning.kind == Kind.TRACE
    assert meaning.frames == (frames[0], *frames[-2:])
    assert meaning.function_stack == stack


def test_trace_marker_without_function_stack_has_none():
    meaning = read("{'traceMarker': ['a.py:1', 2]}", False)
    assert (meaning.frames, meaning.function_stack) == (("a.py:1",), None)


@pytest.mark.parametrize("name", ["conv1", "a:b", " padded ", "Bottleneck_3, seq = x", "{}"])
@pytest.mark.parametrize("torch_suffix", [False, True])
def test_layer_is_all_that_follows_the_first_colon(name, torch_suffix):
    meaning = read(f"layer:{name}", torch_suffix)
    assert (meaning.kind, meaning.name, meaning.label) == (Kind.LAYER, name, f"layer:{name}")


def test_torch_range_gives_its_call_with_sizes():
    meaning = read("aten::mm, sizes = [[2, 3], []]", True)
    assert (meaning.kind, meaning.name) == (Kind.TORCH, "aten::mm")
    assert meaning.call == Call("aten", "mm", (Arg("", Tensor((2, 3))), Arg("", Tensor(()))))
    assert meaning.has_arguments


def test_torch_range_with_no_inputs_still_has_arguments():
    meaning = read("aten::rand, sizes = []", False)
    assert (meaning.kind, meaning.call.args, meaning.has_arguments) == (Kind.TORCH, (), True)


@pytest.mark.parametrize(
    ("label", "call"),
    [
        ("aten::mm", Call("aten", "mm")),
        ("mm", Call("aten", "mm")),
        ("c10d::alltoall_base_", Call("c10d", "alltoall_base_")),
        ("flash_attn::_flash_attn_forward", Call("flash_attn", "_flash_attn_forward")),
        ("torch::autograd::AccumulateGrad", Call("torch::autograd", "AccumulateGrad")),
        ("autograd::engine::evaluate_function: AddmmBackward0", Call("aten", "AddmmBackward0")),
        ("torch::jit::(anonymous namespace)::Graph", Call("torch::jit", "Graph")),
        ("FSDP::pre_forward (blocks.1.a::b)", Call("FSDP", "pre_forward (blocks.1.a::b)")),
        ("my step, two", Call("aten", "my step, two")),
        ("", Call("aten", "")),
        ("::", Call("aten", "::")),
    ],
)
def test_torch_range_without_sizes_names_its_operator(label, call):
    meaning = read(label, True)
    assert (meaning.kind, meaning.name, meaning.call) == (Kind.TORCH, label, call)
    assert not meaning.has_arguments


@pytest.mark.parametrize(
    "label",
    [
        "aten::mm",
        "aten::convolution_backward",
        "torchvision::nms",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
    ],
)
def test_torch_name_needs_no_suffix(label):
    assert read(label, False).kind == Kind.TORCH


@pytest.mark.parametrize("prefix", ["", "struct "])
def test_pytorch_1_gradient_accumulation_without_a_number_is_not_taken_for_backward(prefix):
    # PyProf took it for a user range: work inside it is fprop in its dict lines.
    name = prefix + "torch::autograd::AccumulateGrad"
    assert read(name, False).kind == Kind.USER
    assert read(name, True).backward


@pytest.mark.parametrize(
    "label",
    [
        "",
        "{",
        "{}",
        "my layer: x",
        "Layer:x",
        "layer:",
        "layer: ",
        "layer",
        "{'mod': 1}",
        "{'mod': 'x'}",
        "{'mod': 'x', 'op': 'y'}",
        "{'mod': 'x', 'op': 'y', 'args': 'z'}",
        "{'mod': 'x', 'op': 1, 'args': []}",
        "{'mod': 'x', 'op': 'y', 'args': [}",
        "{'mod': 'x', 'strRepr': 5}",
        "{'traceMarker': 'a.py:1'}",
        "{'mod', 'op', 'args'}",
        "{**{'mod': 'x', 'strRepr': 'y'}}",
        " {'mod': 'x', 'strRepr': 'y'}",
        "{'mod': 'x', 'strRepr': 'y'} and more",
        "see {'mod': 'x', 'strRepr': 'y'}",
        "{'mod': 'x\0', 'strRepr': '\ud800'}",
        "Backward pass",
        "backward",
        "nll_loss_backward",
        "MulBackward0",
        "loss, seq = x",
        "loss, op_id = ",
        "my aten::mm",
        "aten::",
        "aten::mm please",
        "std::sort",
        "mm, sizes = [[2, x]]",
        "mm, sizes = [[2,, 3]]",
        "mm, sizes = [[2, ]]",
        "mm, sizes = [[2], ]",
        "mm, sizes = [[2][3]]",
        "mm, sizes = [[2, 3]",
        "mm, sizes = [[2, 3]] done",
        "mm, sizes = [[" + "9" * 30 + "]]",
    ],
)
def test_what_only_resembles_a_form_is_the_users(label):
    meaning = read(label, False)
    assert (meaning.kind, meaning.name, meaning.label) == (Kind.USER, label, label)
    assert meaning.call is None
    assert not (meaning.backward or meaning.recompute or meaning.has_arguments)


@pytest.mark.parametrize(
    ("label", "op"),
    [
        ("nll_loss_backward", "nll_loss"),
        ("NllLossBackward", "NllLoss"),
        ("MulBackward0", "Mul"),
        ("SumBackward12", "Sum"),
        ("ConvolutionBackwardBackward0", "Convolution"),
        ("_log_softmax_backward_data", "_log_softmax"),
        ("aten::_softmax_backward_data", "_softmax"),
        ("aten::embedding_dense_backward", "embedding_dense"),
        ("aten::convolution_backward", "convolution"),
        ("aten::cudnn_convolution_backward_input", "cudnn_convolution"),
        ("torch::autograd::AccumulateGrad", "AccumulateGrad"),
        ("struct torch::autograd::AccumulateGrad", "AccumulateGrad"),
        ("torch::autograd::CopyBackwards", "Copy"),
        ("torch::autograd::CopySlices", "CopySlices"),
        ("torch::autograd::GraphRoot", "GraphRoot"),
        ("torch::autograd::CppNode<Lookup<&f> >", "CppNode<Lookup<&f> >"),
        ("torch::jit::(anonymous namespace)::DifferentiableGraphBackward", "DifferentiableGraph"),
        ("All2All_Pooled_ReqBackward", "All2All_Pooled_Req"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "Addmm"),
        ("autograd::engine::evaluate_function: MyFunction", "MyFunction"),
    ],
)
def test_backward_names_are_told_and_stripped(label, op):
    meaning = read(label, True)
    assert (meaning.kind, meaning.backward, meaning.recompute) == (Kind.TORCH, True, False)
    assert op_name(meaning) == op
    assert read(f"{label}, sizes = [[1]]", False).backward


@pytest.mark.parametrize(
    ("label", "op"),
    [
        ("aten::mm", "mm"),
        ("mm", "mm"),
        ("RegisterPostBackwardFunction", "RegisterPostBackwardFunction"),
        ("forward_backward", "forward_backward"),
        ("forward_backward_step", "forward_backward_step"),
        ("my Backward", "my Backward"),
        ("aten::backwards_compatible", "backwards_compatible"),
        ("FSDP::post_forward (blocks.1._backward)", "post_forward (blocks.1._backward)"),
        ("MulBackward0x", "MulBackward0x"),
    ],
)
def test_forward_names_are_not_backward(label, op):
    meaning = read(label, True)
    assert (meaning.kind, meaning.backward, meaning.recompute) == (Kind.TORCH, False, False)
    assert op_name(meaning) == op


@pytest.mark.parametrize("prefix", ["", "autograd::engine::evaluate_function: ", "torch::utils::"])
@pytest.mark.parametrize("digits", ["", "0"])
def test_checkpoint_recomputes_and_is_no_backward(prefix, digits):
    meaning = read(f"{prefix}CheckpointFunctionBackward{digits}", True)
    assert (meaning.backward, meaning.recompute) == (False, True)
    assert op_name(meaning) == "CheckpointFunction"


def test_name_of_other_checkpoint_functions_is_backward():
    assert read("UnpackCheckpointFunctionBackward", True).backward


@pytest.mark.parametrize(
    ("label", "name"), [("phase one", "phase one"), ("layer:a:b", "a:b"), (LINEAR, "linear")]
)
def test_op_name_of_other_kinds_is_their_name(label, name):
    assert op_name(read(label, False)) == name


MILLION = 10**6
HOSTILE = {
    "a million characters": "x" * MILLION,
    "brackets": "[" * MILLION,
    "braces": "{" * MILLION,
    "nested value": "{'mod': " + "[" * 10**5 + "]" * 10**5 + "}",
    "unclosed nested value": "{'mod': " + "[" * 10**5 + "}",
    "just nested": "{'mod': " + "[" * 150 + "]" * 150 + "}",
    "minus signs": "{'mod': " + "-" * 10**5 + "1}",
    "chained sum": "{'mod': " + "1+" * 10**5 + "1}",
    "attributes": "{'mod': a" + ".a" * 10**5 + "}",
    "long value": "{'mod': '" + "x" * MILLION + "'}",
    "too long a marker": "{'mod': '" + "x" * (1 << 21) + "'}",
    "long number": "{'mod': " + "9" * 10**5 + "}",
    "backward again and again": "a_backward_" * 10**5 + " x",
    "Backward again and again": "Backward" * 10**5 + " x",
    "namespaces": "aten::" * 10**5 + " x",
    "long size": "aten::mm, sizes = [[" + "1" * MILLION + "]]",
    "sizes again and again": ", sizes = [" * 10**5 + "]",
    "open sizes": "aten::mm, sizes = [" + "[1, " * 10**5 + "]",
}


@pytest.mark.parametrize("torch_suffix", [False, True])
@pytest.mark.parametrize("label", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_quickly_and_without_an_error(label, torch_suffix):
    began = time.process_time()
    meaning = read(label, torch_suffix)
    op_name(meaning)
    assert time.process_time() - began < 2
    assert meaning.kind in (Kind.USER, Kind.TORCH)
    assert meaning.label == label


def test_hundred_thousand_tensors_are_too_many_for_a_marker():
    tensor = "{'name': '', 'type': 'tensor', 'shape': (2,), 'dtype': 'float32'}, "
    label = "{'mod': 'torch', 'op': 'cat', 'args': [" + tensor * 10**5 + "]}"
    assert read(label, False).kind == Kind.USER
    thousand = "{'mod': 'torch', 'op': 'cat', 'args': [" + tensor * 1000 + "]}"
    assert len(read(thousand, False).call.args) == 1000


def test_every_marker_of_a_real_capture_is_read():
    connection = open_read_only(real("pyprof/vsr_a100_nsys2024.sqlite"))
    labels = [text for (text,) in connection.execute("SELECT DISTINCT text FROM NVTX_EVENTS")]
    meanings = [read(label, False) for label in labels]
    assert len(meanings) == 98
    for label, meaning in zip(labels, meanings, strict=True):
        fields = ast.literal_eval(label)
        if "op" in fields:
            assert meaning.kind == Kind.ARGUMENT
            assert (meaning.call.mod, meaning.call.op) == (fields["mod"], fields["op"])
            for arg, given in zip(meaning.call.args, fields["args"], strict=True):
                assert arg.name == given["name"]
                if given["type"] == "tensor":
                    assert arg.value == Tensor(given["shape"], given["dtype"])
        else:
            assert meaning.kind == Kind.TRACE
            assert set(meaning.frames) <= set(fields["traceMarker"])


def test_frames_and_ops_are_what_pyprof_printed():
    lines = real("pyprof/lm_v100_nvprof.author.dict").read_text().splitlines()
    connection = open_read_only(real("pyprof/lm_v100_nvprof.sql"))
    texts = [text for (text,) in connection.execute("SELECT value FROM StringTable")]
    frames = {read(text, False).frames for text in texts if text.startswith("{'traceMarker'")}
    for row in map(ast.literal_eval, lines):
        if row["trace"]:
            assert tuple(row["trace"]) in frames
        if row["dir"] == "fprop" and row["marker"]:
            ops = [op_name(read(marker, False)) for marker in row["marker"]]
            assert ops == row["op"]
        labels = [marker.partition(", seq = ")[0] for marker in row["seqMarker"]]
        backward = any(read(label, True).backward for label in labels)
        assert row["dir"] == ("bprop" if backward else "fprop")


def test_every_name_of_a_real_torch_2_capture_is_torchs():
    connection = open_read_only(real("nsys/emit_nvtx_2gpu_nsys2026.sqlite"))
    query = "SELECT DISTINCT text FROM NVTX_EVENTS WHERE text LIKE '%, op_id = %'"
    labels = {
        text.rpartition(", op_id = ")[0].partition(", seq = ")[0]
        for (text,) in connection.execute(query)
    }
    meanings = [read(label, True) for label in labels]
    assert len(meanings) > 60
    assert {meaning.kind for meaning in meanings} == {Kind.TORCH}
    assert not any(meaning.backward or meaning.recompute for meaning in meanings)


def test_an_escape_that_python_warns_of_is_read_in_silence(recwarn):
    assert read(r"{'traceMarker': ['C:\d.py:3']}", False).frames == ("C:\\d.py:3",)
    inputs = json.dumps([r"'\d'"])
    event = "\x1f".join(["cpu_op", "", "", "aten::mm", "[[]]", '["Scalar"]', "", inputs])
    assert read_event(event).call.args[0].value == "\\d"
    assert list(recwarn) == []


def test_a_concrete_input_that_python_cannot_make_stays_a_text():
    event = "\x1f".join(["cpu_op", "", "", "aten::mm", "[[]]", '["Scalar"]', "", '["{[]: 1}"]'])
    assert read_event(event).call.args[0].value == "{[]: 1}"


def test_arguments_of_more_tensors_than_any_call_has_are_not_told():
    def said(n):
        dims, types = json.dumps([[[4, 2]] * n]), json.dumps([["float"] * n])
        return read_event("\x1f".join(["cpu_op", "", "", "aten::cat", dims, types, "", ""]))

    assert len(said(50_000).call.args[0].value) == 50_000
    assert not said(200_000).has_arguments
    assert said(200_000).name == "aten::cat"


def recorded(**told):
    pairs = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 12,
             "Out msg nelems": 12, "Group size": 4} | told  # fmt: skip
    text = json.dumps({key: value for key, value in pairs.items() if value is not None})[1:-1]
    return read_event("\x1f".join(["cpu_op", "", "", "record_param_comms", "", "", "", "", text]))


def test_a_recorded_collective_is_a_call_of_c10d_with_its_sizes():
    meaning = recorded()
    assert (meaning.kind, meaning.name) == (Kind.TORCH, "record_param_comms")
    assert meaning.has_arguments
    assert meaning.call == Call(
        "c10d", "allreduce_", (Arg("", (Tensor((12,), "float"),)), Arg("ranks", 4))
    )


def test_split_sizes_are_the_rows_of_each_rank():
    even, cut = {"In split size": "[]"}, {"In split size": "[1, 2, ...]"}
    told = {"In split size": "[3, 0, 5]", "Out split size": "[1, 1, 1]"}
    collectives = [recorded(**sizes).collective for sizes in (told, even, cut)]
    assert [collective.given_rows for collective in collectives] == [(3, 0, 5), (), ()]
    assert collectives[0].got_rows == (1, 1, 1)


@pytest.mark.parametrize(
    "name, op, values",
    [
        ("_allgather_base", "_allgather_base_", (48, 12)),
        ("_reduce_scatter_base", "_reduce_scatter_base_", (48, 12)),
        ("all_to_allv", "alltoall_base_", (48, 12)),
        ("all_gather", "allgather_", (((48,),), (12,))),
        ("reduce_scatter", "reduce_scatter_", ((48,), ((12,),))),
        ("broadcast", "broadcast_", ((48,),)),
        ("barrier", "barrier", ()),
    ],
)
def test_what_a_recorded_collective_gives_and_gets_stands_where_c10d_has_it(name, op, values):
    def counts(value):
        if isinstance(value, tuple):
            return tuple(map(counts, value))
        return value.shape[0]

    call = recorded(**{"Collective name": name, "Out msg nelems": 48}).call
    assert (call.mod, call.op) == ("c10d", op)
    assert tuple(counts(arg.value) for arg in call.args if not arg.name) == values


@pytest.mark.parametrize(
    "told",
    [
        {"Collective name": "wait"},
        {"Collective name": None},
        {"Collective name": 3},
        {"In msg nelems": None},
        {"In msg nelems": -1},
        {"Out msg nelems": 1.5},
    ],
)
def test_a_collective_that_tells_no_sizes_is_the_range_that_it_is(told):
    assert getattr(recorded(**told), "call", None) is None


def test_a_type_and_a_number_of_ranks_that_are_not_told_are_not_known():
    call = recorded(dtype=None, **{"Group size": None}).call
    assert call.args == (Arg("", (Tensor((12,), None),)), Arg("ranks", UNKNOWN))
