"""The calls of backward work: custom functions, hooks, recomputed passes, threads of the engine.

Captures of Nsight Systems (text ranges) and of torch.profiler (events).
"""

import pytest

from fastprof.model.markers.kineto import n_before
from fastprof.profile.callpath.node_makers import likeness
from support.exports import PID, Export, global_tid
from support.kineto_files import KinetoFile

ENGINE = "autograd::engine::evaluate_function: "
CPP_NODE = "torch::autograd::CppNode<LookupFunction_adagrad_Op>"


def backward_of(export, node, seq=4, start=500):
    """A kernel in the backward node with a sequence number, on the engine's thread."""
    texts = (f"{ENGINE}{node}, seq = {seq}", f"{node}, seq = {seq}")
    return export.nest(start, start + 90, *texts, tid=2).work(start + 50, tid=2)


# -- custom functions -----------------------------------------------------------------------------


def test_a_custom_node_belongs_to_the_operator_behind_the_last_carrier_of_its_number(rows):
    export = Export().nest(0, 50, "ext::check_bounds, op_id = 1", "aten::zero_, seq = 4")
    export.nest(60, 90, "ext::codegen_lookup_adagrad_function, op_id = 2").work(70)
    export.nest(100, 120, "aten::view, seq = 5")
    backward_of(export, CPP_NODE)
    assert rows(export, "dir", "op", "flops") == [
        ("fprop", "codegen_lookup_adagrad_function", None),
        ("bprop", "codegen_lookup_adagrad_function", None),
    ]


def test_of_several_operators_the_one_that_shares_most_words_made_a_custom_node(rows):
    export = Export().nest(0, 10, "aten::to, seq = 4")
    export.nest(20, 30, "ext::lookup_bounds, op_id = 1")
    export.nest(40, 90, "ext::lookup_adagrad, op_id = 2").nest(100, 120, "aten::view, seq = 5")
    export.nest(130, 140, "ext::lookup_function_adagrad_again, op_id = 3")
    assert rows(backward_of(export, CPP_NODE), "op") == ["lookup_adagrad"]


def test_a_custom_node_without_a_carrier_is_made_behind_that_of_a_smaller_number(rows):
    export = Export().nest(0, 10, "aten::to, seq = 2")
    export.nest(20, 30, "ext::lookup_adagrad, op_id = 1").nest(40, 50, "aten::view, seq = 6")
    assert rows(backward_of(export, CPP_NODE), "op") == ["lookup_adagrad"]


def test_a_custom_node_whose_name_says_nothing_is_made_by_the_operator_around_the_carrier(rows):
    export = Export().nest(0, 90, "ext::outer, seq = 4", "aten::to, seq = 4")
    export.nest(100, 120, "aten::view, seq = 5")
    assert rows(backward_of(export, "torch::autograd::CppNode<Xyz>"), "op") == ["outer"]


def test_a_custom_node_of_which_nothing_tells_keeps_its_own_name(rows):
    export = Export().nest(0, 10, "aten::zero_, seq = 4").nest(100, 120, "aten::view, seq = 5")
    assert rows(backward_of(export, "torch::autograd::CppNode<Xyz>"), "dir", "op", "flops") == [
        ("bprop", "CppNode<Xyz>", None)
    ]


def test_a_python_function_is_found_among_the_carriers_of_its_number(rows):
    export = Export().nest(0, 90, "layer:one", "Swish, seq = 4", "aten::detach, seq = 4")
    assert rows(backward_of(export, "SwishBackward"), "op", "layer") == [("Swish", ("one",))]


def test_a_generated_node_belongs_to_the_innermost_carrier_whatever_its_name(rows):
    export = Export().nest(0, 40, "aten::norm, seq = 4").nest(50, 90, "aten::mean, seq = 4")
    assert rows(backward_of(export, "SomethingElseBackward0"), "op") == ["mean"]


def test_an_old_node_without_a_number_is_told_by_its_operator(rows):
    export = (
        Export().nest(0, 40, "aten::to, seq = 4").nest(50, 90, "aten::nll_loss_forward, seq = 4")
    )
    assert rows(backward_of(export, "NllLossBackward"), "op") == ["nll_loss_forward"]


def test_likeness_is_of_words_and_never_of_torchs_own_operators_for_nodes_in_cpp():
    node = "torch::autograd::CppNode<ns::PermutePooledEmbsFunction<&ns::permute> >"
    assert likeness(node, "fbgemm", "permute_pooled_embs_auto_grad") == 1
    assert likeness(node, "fbgemm", "permute_indices") == pytest.approx(1 / 3)
    assert likeness(node, "aten", "permute") == 0
    assert likeness("NllLossBackward", "aten", "nll_loss_forward") == 2
    assert 0 < likeness("StdMeanBackward", "aten", "mean") < 0.1


# -- work that is not a derivative ----------------------------------------------------------------


def test_a_hook_beside_the_node_is_an_operator_of_its_own_and_backward(rows):
    sizes = ", sizes = [[8, 16], [8, 16]]"
    export = Export().nest(0, 90, f"aten::mul, seq = 4{sizes}").work(10)
    export.nest(500, 590, f"{ENGINE}MulBackward0, seq = 4", tid=2)
    export.nest(510, 530, "MulBackward0, seq = 4", "aten::mul, op_id = 8" + sizes, tid=2)
    export.work(520, tid=2).nest(540, 560, "aten::add_, op_id = 9" + sizes, tid=2).work(550, tid=2)
    assert rows(export, "dir", "op") == [("fprop", "mul"), ("bprop", "mul"), ("bprop", "add_")]


@pytest.mark.parametrize("own", ["c10d::allreduce_", "aten::mm"])
def test_an_operator_in_a_compiled_backward_pass_shows_itself(rows, own):
    export = Export().nest(0, 90, "CompiledFunction, seq = 4").work(10)
    node = "CompiledFunctionBackward"
    texts = (f"{ENGINE}{node}, seq = 4", f"{node}, seq = 4", f"{own}, op_id = 7")
    export.nest(500, 590, *texts, tid=2).work(540, tid=2)
    assert rows(export, "dir", "op") == [("fprop", "CompiledFunction"), ("bprop", own[6:])]


# -- threads of the engine ------------------------------------------------------------------------


def names_of_threads(export, **names):
    """Names the threads t1, t2, ..."""
    for thread, text in names.items():
        tid = global_tid(PID, int(thread[1:]))
        export.row("ThreadNames", nameId=export.string(text), priority=0, globalTid=tid)
    return export


def test_what_the_engine_launches_outside_all_ranges_is_of_the_ranges_that_wait(rows):
    export = Export().nest(0, 90, "step", "Forward").work(10)
    export.nest(100, 190, "step", "Backward").work(110, tid=2).work(150, tid=2).work(195, tid=2)
    result = rows(names_of_threads(export, t2="pt_autograd_0"), "dir", "ranges")
    assert result == [
        (None, ("step", "Forward")),
        ("bprop", ("step", "Backward")),
        ("bprop", ("step", "Backward")),
        ("bprop", ()),
    ]


def test_a_thread_of_another_name_keeps_to_itself(rows):
    export = Export().nest(100, 190, "step", "Backward").work(110, tid=2)
    assert rows(names_of_threads(export, t2="worker"), "dir", "ranges") == [(None, ())]


def test_sums_of_gradients_on_the_engines_thread_are_backward(rows):
    export = Export().nest(0, 90, "aten::mul, seq = 4").work(10)
    backward_of(export, "MulBackward0")
    export.nest(700, 790, "aten::add_, op_id = 3", tid=2).work(710, tid=2)
    assert rows(export, "dir", "op", "seq")[2] == ("bprop", "add_", None)


# -- recomputed passes ----------------------------------------------------------------------------


def forward_again(export, start, tid, first, count=4):
    """Numbered operators with one kernel each."""
    for i in range(count):
        sizes = f", sizes = [[8, {i + 2}]]"
        export.nest(
            start + 20 * i, start + 20 * i + 15, f"aten::gelu, seq = {first + i}{sizes}", tid=tid
        )
        export.work(start + 20 * i + 5, tid=tid)


def test_operators_with_numbers_inside_a_node_are_a_recomputed_forward_pass(rows):
    export = Export()
    forward_again(export, 0, 1, 10)
    for i in range(4):  # the nodes of the pass; the first requests a saved tensor
        start = 1000 + 300 * i
        texts = (f"{ENGINE}GeluBackward0, seq = {13 - i}", f"GeluBackward0, seq = {13 - i}")
        export.nest(start, start + 280, *texts, tid=2)
        if i == 0:
            forward_again(export, start + 10, 2, 70)
        export.nest(start + 200, start + 220, "aten::gelu_backward, op_id = 5", tid=2)
        export.work(start + 210, tid=2)
    result = rows(export, "dir", "op", "seq", "params")
    assert result[:4] == [("fprop", "gelu", 10 + i, f"[8,{i + 2}]na") for i in range(4)]
    assert result[4:8] == [("fprop", "gelu", 70 + i, f"[8,{i + 2}]na") for i in range(4)]
    assert [row[:3] for row in result[8:]] == [("bprop", "gelu", 13 - i) for i in range(4)]


def test_where_all_nodes_record_gradients_none_is_a_recomputation(rows):
    export = Export()
    forward_again(export, 0, 1, 10)
    for i in range(4):
        start = 1000 + 300 * i
        texts = (f"{ENGINE}GeluBackward0, seq = {13 - i}", f"GeluBackward0, seq = {13 - i}")
        export.nest(start, start + 280, *texts, tid=2)
        forward_again(export, start + 10, 2, 70 + 10 * i)
    assert set(rows(export, "dir", "op")[4:]) == {("bprop", "gelu")}


def test_a_stack_says_what_checkpointing_runs_again(rows):
    relu, conv = ({"dims": [[4, 4]], "types": ["float"]}, {"dims": [[2, 8]], "types": ["float"]})
    trace = KinetoFile().op(0, 100, "aten::relu", seq=930, **relu)
    trace.launch(10, 15, 1).kernel(1000, 1010, 1)
    for name in (f"{ENGINE}ReluBackward0", "ReluBackward0"):
        trace.op(500, 900, name, tid=2, seq=930, **relu)
    trace.python(510, 800, "torch/utils/checkpoint.py(1111): unpack_hook", tid=2)
    trace.python(515, 790, "torch/utils/checkpoint.py(1500): recompute_fn", tid=2)
    trace.op(520, 600, "aten::gelu", tid=2, seq=17, **conv)
    trace.launch(550, 555, 2, 2).kernel(2000, 2010, 2)
    trace.op(820, 880, "aten::threshold_backward", tid=2, **relu)
    trace.launch(850, 855, 3, 2).kernel(3000, 3010, 3)
    assert rows(trace, "dir", "op", "params", "seq") == [
        ("fprop", "relu", "[4,4]fp32", 930),
        ("fprop", "gelu", "[2,8]fp32", 17),
        ("bprop", "relu", "[4,4]fp32", 930),
    ]


# -- TorchScript ----------------------------------------------------------------------------------


def test_arguments_in_torchscript_are_the_last_of_the_stack(rows):
    trace = KinetoFile().op(0, 100, "forward", dims=[[], []], types=["", ""])
    trace.op(
        5, 50, "aten::linear",
        dims=[[7, 7], [9], [2, 3], [5, 3], [5]],
        types=["float"] * 5,
    )  # fmt: skip
    trace.launch(10, 15, 7).kernel(1000, 1010, 7, name="sgemm")
    assert rows(trace, "op", "params", "flops") == [("linear", "M=5,N=2,K=3,fp32,", 2 * 5 * 2 * 3)]


def test_a_script_function_hides_no_operator(rows):
    trace = KinetoFile().op(0, 100, "forward", dims=[[], []], types=["", ""])
    trace.op(5, 50, "fbgemm::no_such_operator", dims=[[4]], types=["int"])
    assert rows(trace.launch(10, 15, 7).kernel(1000, 1010, 7), "op") == ["no_such_operator"]


@pytest.mark.parametrize(
    ("name", "types", "n"),
    [
        ("aten::eq", ["Scalar", "Scalar", "int", "Scalar"], 2),
        ("aten::sum", ["", "int", "", "Scalar", ""], 1),
        ("aten::linear", ["float"] * 6, 3),
        ("aten::mm", ["float", "float"], 0),
        ("aten::mm", ["float", "float", "float"], 0),  # an out tensor
        ("aten::no_such_operator", ["float"], 0),
        ("aten::mm", ["Scalar", "", "float"], 0),  # matches nothing: unchanged
        ("fbgemm::mm", ["Scalar", "float", "float"], 0),
    ],
)
def test_what_stands_before_the_arguments(name, types, n):
    assert n_before(name, types) == n


def test_schemas_are_those_of_the_torch_that_they_name():
    torch = pytest.importorskip("torch")
    from importlib import resources, util
    from pathlib import Path

    text = resources.files("fastprof.model.markers").joinpath("aten_schemas.txt").read_text("ascii")
    version, *lines = text.splitlines()
    if version != f"# torch {torch.__version__.split('+')[0]}":
        pytest.skip(f"torch is {torch.__version__}, the schemas are of {version[2:]}")
    script = Path(__file__).resolve().parents[4] / "docs/make_schemas.py"
    spec = util.spec_from_file_location("make_schemas", script)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.lines() == lines
