"""Range, call, direction and cost of kernels in small captures with known answers."""

import pytest

import fastprof
from support.exports import Export

ENGINE = "autograd::engine::evaluate_function: "
LINEAR_FLOPS = 2 * 8 * 16 * 4


def tensor(*shape, dtype="float32"):
    return {"name": "", "type": "tensor", "shape": shape, "dtype": dtype}


def marker(op, *args, mod="torch.nn.functional"):
    """An argument marker in the annotator's format."""
    return str({"mod": mod, "op": op, "args": list(args)})


LINEAR = marker("linear", tensor(8, 16), tensor(4, 16))
MATMUL = marker("matmul", tensor(8, 16), tensor(16, 4), mod="torch")
UNKNOWN = marker("no_such_op", tensor(8, 16))


@pytest.fixture
def dict_lines(tmp_path):
    """A function from a capture and keys to the values in its dict lines."""

    def read(export, *keys):
        profile = fastprof.open(export.write(tmp_path / "x.sqlite"))
        columns = profile.source.dict_line_columns()
        return [tuple(columns[key].at(row) for key in keys) for row in range(len(profile))]

    return read


# Directions.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my range", None),
        ("aten::mul, seq = 4, op_id = 9", "fprop"),
        ("aten::mul", "fprop"),
        ("mul, seq = 4", "fprop"),
        ("layer:one", "fprop"),
        (LINEAR, "fprop"),
        ("{'mod': 'Linear', 'strRepr': '16, 4'}", "fprop"),
        ("{'traceMarker': ['train.py:3']}", "fprop"),
        ("AddmmBackward, seq = 4", "bprop"),
        ("AddmmBackward0, seq = 4, op_id = 3", "bprop"),
        (ENGINE + "AddmmBackward0, seq = 4, op_id = 3", "bprop"),
        (ENGINE + "torch::autograd::AccumulateGrad, op_id = 3", "bprop"),
        ("forward_backward", None),
        ("layers: 5", None),
    ],
)
def test_direction_follows_from_the_range(rows, text, expected):
    assert rows(Export().push_pop(0, 100, text, tid=1).work(10), "dir") == [expected]


@pytest.mark.parametrize(
    "text", ["\1mine", "layer:", "{}", "{'mod': 'x'}", "é\n\t", "'", '"', "\\"]
)
def test_any_other_text_is_a_range_of_the_user(rows, text):
    export = Export().push_pop(0, 100, text, tid=1).work(10)
    assert rows(export, "dir", "op", "ranges") == [(None, None, (text,))]


def test_outside_of_all_ranges_there_is_no_direction(rows):
    assert rows(Export().push_pop(0, 100, "aten::mul", tid=1).work(200), "dir") == [None]


def test_a_users_range_around_torchs_changes_nothing(rows):
    export = Export().nest(0, 100, "step", "aten::mul, seq = 4", "inner").work(10)
    assert rows(export, "dir", "op", "ranges") == [("fprop", "mul", ("step", "inner"))]


# Forward and backward.


def torch_2(*around) -> Export:
    """A linear layer, forward on thread 1 inside ranges, and backward on thread 2."""
    export = Export()
    export.nest(0, 100, *around, "aten::linear, seq = 5, op_id = 1", "aten::addmm, seq = 5")
    export.work(40, name="sgemm_tn")
    export.nest(200, 300, ENGINE + "AddmmBackward0, seq = 5, op_id = 7",
                "AddmmBackward0, seq = 5, op_id = 8", "aten::mm, op_id = 9", tid=2)  # fmt: skip
    export.work(240, tid=2, name="sgemm_nn")
    return export


def test_backward_kernel_belongs_to_the_forward_call_of_another_thread(rows):
    trace = "{'traceMarker': ['train.py:310', 'net.py:12']}"
    export = torch_2("mine", "layer:a", trace, LINEAR)
    keys = ("dir", "tid", "seq", "layer", "trace", "mod", "op", "ranges", "launch_ranges")
    told = (5, ("a",), ("train.py:310", "net.py:12"), "torch.nn.functional", "linear", ("mine",))
    assert rows(export, *keys) == [
        ("fprop", 1, *told, ("mine",)),
        ("bprop", 2, *told, ()),
    ]


def test_params_of_a_backward_kernel_are_those_of_its_own_product(rows):
    forward, backward = rows(torch_2(LINEAR), "params")
    assert forward == "M=4,N=8,K=16,fp32,"
    # dX[8, 16] = dY[8, 4] @ W[4, 16], as cuBLAS sees it
    assert backward == "M=16,N=8,K=4,fp32,"


def test_torch_1_names_link_as_well(rows):
    export = Export().nest(0, 100, "layer:a", "addmm, seq = 5").work(40)
    export.nest(200, 300, "AddmmBackward, seq = 5", "mm, seq = 0", tid=2).work(240, tid=2)
    keys = ("dir", "tid", "seq", "altseq", "layer")
    assert rows(export, *keys) == [("fprop", 1, 5, (), ("a",)), ("bprop", 2, 5, (), ("a",))]


def test_seq_0_of_torch_1_on_the_backward_thread_is_no_forward_carrier(rows):
    export = Export().nest(0, 50, "layer:first", "mul, seq = 0").work(10)
    export.nest(60, 90, "layer:second", "sin, seq = 1").work(70)
    # On the backward thread, all ranges have number 0, also those outside nodes.
    export.nest(100, 110, "layer:noise", "add, seq = 0", tid=2).work(105, tid=2)
    export.nest(200, 290, "SinBackward, seq = 1", "cos, seq = 0", tid=2).work(210, tid=2)
    export.nest(300, 390, "MulBackward, seq = 0", "mul, seq = 0", tid=2).work(310, tid=2)
    assert rows(export, "dir", "layer") == [
        ("fprop", ("first",)),
        ("fprop", ("second",)),
        ("bprop", ("noise",)),
        ("bprop", ("second",)),
        ("bprop", ("first",)),
    ]


def test_the_innermost_of_several_carriers_is_the_forward_call(rows):
    export = Export()
    export.nest(0, 100, "aten::outer, seq = 7", "outside", "aten::middle, seq = 7", "inside",
                "aten::inner, seq = 7")  # fmt: skip
    export.nest(200, 300, ENGINE + "InnerBackward0, seq = 7", tid=2).work(210, tid=2)
    assert rows(export, "ranges") == [("outside", "inside")]


def test_of_carriers_beside_each_other_the_latest_is_the_forward_call(rows):
    export = Export().push_pop(0, 100, "aten::linear, seq = 7", tid=1)
    export.nest(10, 20, "layer:first", "aten::t, seq = 7")
    export.nest(30, 40, "layer:second", "aten::t, seq = 7")
    export.nest(50, 60, "layer:other", "aten::addmm, seq = 8")
    export.nest(200, 300, "TBackward0, seq = 7", tid=2).work(210, tid=2)
    assert rows(export, "layer") == [("second",)]


def test_a_number_that_comes_again_belongs_to_its_own_iteration(rows):
    export = Export()
    for i, at in enumerate((0, 1000, 2000)):
        export.nest(at, at + 100, f"layer:{i}", "aten::mul, seq = 4").work(at + 10)
        export.nest(at + 200, at + 300, "MulBackward0, seq = 4", tid=2).work(at + 210, tid=2)
    assert rows(export, "layer") == [("0",), ("0",), ("1",), ("1",), ("2",), ("2",)]


def test_a_forward_call_need_not_have_launched_anything(rows):
    export = Export().nest(0, 100, "layer:quiet", "aten::expand, seq = 9")
    export.nest(200, 300, ENGINE + "ExpandBackward0, seq = 9", tid=2).work(210, tid=2)
    assert rows(export, "dir", "layer", "op") == [("bprop", ("quiet",), "expand")]


def test_a_backward_call_without_a_forward_one_keeps_what_is_around_it(rows):
    export = Export().nest(0, 100, "mine", ENGINE + "MulBackward0, seq = 9").work(10)
    assert rows(export, "dir", "op", "seq", "ranges") == [("bprop", "Mul", 9, ("mine",))]


def test_what_comes_after_a_backward_call_is_not_its_forward_call(rows):
    export = Export().nest(0, 100, "MulBackward0, seq = 9", tid=2).work(10, tid=2)
    export.nest(200, 300, "layer:later", "aten::mul, seq = 9").work(210)
    assert rows(export, "layer") == [(), ("later",)]


def test_backward_on_the_thread_of_the_forward_pass_links_as_well(rows):
    export = Export().nest(0, 100, "layer:a", "aten::mul, seq = 4").work(10)
    export.nest(200, 300, "loss.backward()", "MulBackward0, seq = 4").work(210)
    assert rows(export, "dir", "layer") == [("fprop", ("a",)), ("bprop", ("a",))]


def test_an_operator_for_backward_inside_a_node_does_not_link_by_its_own_number(rows):
    export = Export().nest(0, 90, "layer:right", "aten::threshold, seq = 5").work(10)
    export.nest(100, 190, "layer:wrong", "aten::threshold, seq = 6").work(110)
    export.nest(200, 300, ENGINE + "ThresholdBackward0, seq = 5",
                "aten::threshold_backward, seq = 6", tid=2).work(210, tid=2)  # fmt: skip
    assert rows(export, "layer")[2] == ("right",)


def test_accumulating_a_gradient_is_backward_and_belongs_to_no_call(rows):
    export = torch_2("layer:a")
    export.nest(400, 500, ENGINE + "torch::autograd::AccumulateGrad, op_id = 30",
                "torch::autograd::AccumulateGrad, op_id = 31", "aten::detach, op_id = 32",
                tid=2).work(410, tid=2)  # fmt: skip
    assert rows(export, "dir", "layer", "seq")[2] == ("bprop", (), None)


def test_the_innermost_number_is_seq_and_the_others_are_altseq(rows):
    export = Export()
    export.nest(0, 100, "aten::a, seq = 90", "aten::b, seq = 8", "aten::c, seq = 70",
                "aten::d, seq = 71", "aten::e, op_id = 4").work(40)  # fmt: skip
    assert rows(export, "seq", "altseq") == [(71, (8, 70, 90))]


def test_a_number_that_repeats_is_told_once(rows):
    export = Export().nest(0, 100, "aten::a, seq = 7", "aten::b, seq = 6", "aten::c, seq = 7")
    assert rows(export.work(40), "seq", "altseq") == [(7, (6,))]


def test_kernels_of_one_call_are_numbered_from_0(rows):
    export = Export()
    for at, seq in ((0, 4), (1000, 5)):
        export.nest(at, at + 900, "layer:a", f"aten::mul, seq = {seq}")
        for k in range(3):
            export.work(at + 100 + 100 * k)
    assert rows(export, "sub") == [0, 1, 2, 0, 1, 2]


# Checkpointing.


def checkpointed() -> Export:
    export = Export()
    export.nest(0, 90, "layer:plain", "aten::mul, seq = 3").work(10, name="plain")
    export.nest(100, 190, "layer:held", "CheckpointFunction, seq = 4", "aten::sin").work(
        110, name="first"
    )
    export.nest(300, 600, ENGINE + "CheckpointFunctionBackward, seq = 4",
                "CheckpointFunctionBackward, seq = 4", tid=2)  # fmt: skip
    export.nest(310, 390, "layer:again", "aten::sin, seq = 3", tid=2).work(
        320, tid=2, name="recomputed"
    )
    export.nest(400, 490, ENGINE + "SinBackward0, seq = 3", "SinBackward0, seq = 3", tid=2).work(
        410, tid=2, name="inner"
    )
    export.nest(700, 790, ENGINE + "MulBackward0, seq = 3", "MulBackward0, seq = 3", tid=2).work(
        710, tid=2, name="outer"
    )
    return export


def test_what_a_checkpoint_computes_again_is_forward(rows):
    directions = dict(rows(checkpointed(), "kernel", "dir"))
    assert directions == {
        "plain": "fprop",
        "first": "fprop",
        "recomputed": "fprop",
        "inner": "bprop",
        "outer": "bprop",
    }


def test_backward_inside_of_a_checkpoint_belongs_to_what_was_computed_again(rows):
    layers = dict(rows(checkpointed(), "kernel", "layer"))
    assert layers["inner"] == ("again",)


def test_numbers_of_a_recomputation_are_its_own(rows):
    layers = dict(rows(checkpointed(), "kernel", "layer"))
    assert layers["outer"] == ("plain",)


# Layers, source lines, user ranges.


def test_backward_kernel_inherits_the_users_ranges_and_not_those_around_its_launch(rows):
    export = Export().nest(0, 100, "epoch", "block", "aten::mul, seq = 4").work(40)
    export.nest(200, 300, "hook", "MulBackward0, seq = 4", tid=2).work(240, tid=2)
    assert rows(export, "ranges", "launch_ranges") == [
        (("epoch", "block"), ("epoch", "block")),
        (("epoch", "block"), ("hook",)),
    ]


# Ranges that cross, or end on another thread.


def test_a_start_end_range_that_ends_on_its_thread_is_part_of_the_chain(rows):
    export = Export().start_end(0, 100, "phase", tid=1, end_tid=1).work(40)
    export.start_end(200, 300, "other", tid=1).work(240)
    assert rows(export, "ranges") == [("phase",), ("other",)]


def test_a_start_end_range_that_ends_on_another_thread_is_no_part_of_the_chain(rows):
    export = Export().start_end(0, 100, "phase", tid=1, end_tid=2)
    export.push_pop(10, 90, "mine", tid=1)
    export.work(40).work(60, tid=2)
    assert rows(export, "ranges") == [("mine",), ()]


@pytest.mark.parametrize("kind", ["domains", "start/end"])
def test_ranges_that_cross_enclose_what_lies_inside_of_them(rows, kind):
    export = Export().push_pop(0, 50, "a", tid=1)
    if kind == "domains":
        export.push_pop(30, 80, "b", tid=1, domain=3)
    else:
        export.start_end(30, 80, "b", tid=1)
    for at in (10, 40, 60, 90):
        export.work(at)
    assert rows(export, "ranges") == [("a",), ("a", "b"), ("b",), ()]


def test_ranges_that_cross_on_one_thread_leave_the_others_alone(rows):
    export = Export().push_pop(0, 50, "a", tid=1).push_pop(30, 80, "b", tid=1, domain=3)
    export.nest(0, 100, "x", "y", tid=2)
    export.work(40).work(45, tid=2)
    assert rows(export, "tid", "ranges") == [(1, ("a", "b")), (2, ("x", "y"))]


def test_forward_and_backward_link_across_ranges_that_cross(rows):
    export = torch_2("layer:a", LINEAR)
    export.push_pop(50, 150, "crossing", tid=1, domain=3)
    export.push_pop(250, 350, "crossing too", tid=2, domain=3)
    export.work(60, name="sgemm_tn").work(260, tid=2, name="sgemm_nn")
    assert rows(export, "dir", "layer", "op", "ranges") == [
        ("fprop", ("a",), "linear", ()),
        ("fprop", ("a",), "linear", ("crossing",)),
        ("bprop", ("a",), "linear", ()),
        ("bprop", ("a",), "linear", ()),
    ]


def test_one_call_inside_ranges_that_cross_is_one_call(rows):
    export = Export().push_pop(0, 100, LINEAR, tid=1)
    export.push_pop(50, 150, "crossing", tid=1, domain=3)
    export.work(40, name="sgemm_tn").work(60, name="sgemm_tn")
    assert sum(rows(export, "flops")) == LINEAR_FLOPS


# CUDA graphs.


def captured(*, copies=1) -> Export:
    """Node 10 was created inside layer:made; it, or a clone of it, runs inside `replay`."""
    export = Export().nest(0, 100, "mine", "layer:made", "aten::mul, seq = 4")
    export.graph_node_event(40, 41, tid=1, node=10)
    for copy in range(copies):
        export.graph_node_event(200 + copy, 201 + copy, tid=1, node=11 + copy, original=10 + copy)
    export.push_pop(300, 400, "replay", tid=1)
    export.launch(310, 320, corr=1, tid=1, name="cudaGraphLaunch_v10000")
    return export


@pytest.mark.parametrize("copies", [0, 1, 3])
def test_a_node_of_a_graph_gets_the_range_in_which_it_was_made(rows, copies):
    export = captured(copies=copies).kernel(330, 340, corr=1, graph_node=10 + copies)
    assert rows(export, "layer", "dir", "op", "ranges", "launch_ranges", "launch_start") == [
        (("made",), "fprop", "mul", ("mine",), ("replay",), 310)
    ]


def test_a_node_whose_making_was_not_captured_gets_the_range_of_its_launch(rows):
    export = captured().kernel(330, 340, corr=1, graph_node=999).kernel(350, 360, corr=1)
    assert rows(export, "layer", "ranges") == [((), ("replay",)), ((), ("replay",))]


def test_nodes_of_two_processes_may_have_the_same_number(rows):
    export = Export()
    for pid in (100, 200):
        export.push_pop(0, 100, f"layer:{pid}", tid=1, pid=pid)
        export.graph_node_event(40, 41, tid=1, node=10, pid=pid)
        export.launch(300, 310, corr=1, tid=1, pid=pid)
        export.kernel(320 + pid, 330 + pid, corr=1, graph_node=10, pid=pid)
    assert rows(export, "pid", "layer") == [(100, ("100",)), (200, ("200",))]


def test_copies_that_go_round_in_a_circle_end(rows):
    export = Export().push_pop(0, 100, "layer:made", tid=1)
    export.graph_node_event(40, 41, tid=1, node=10, original=11)
    export.graph_node_event(42, 43, tid=1, node=11, original=10)
    export.launch(300, 310, corr=1, tid=1).kernel(320, 330, corr=1, graph_node=10)
    assert rows(export, "layer") == [("made",)]


def test_backward_of_a_node_that_was_captured_belongs_to_its_forward_call(rows):
    export = captured()
    export.nest(120, 190, "MulBackward0, seq = 4", tid=2).graph_node_event(140, 141, tid=2, node=20)
    export.kernel(330, 340, corr=1, graph_node=11).kernel(350, 360, corr=1, graph_node=20)
    assert rows(export, "dir", "layer") == [("fprop", ("made",)), ("bprop", ("made",))]


def test_each_launch_of_a_graph_makes_its_calls_again(rows):
    export = Export().push_pop(0, 100, LINEAR, tid=1).graph_node_event(40, 41, tid=1, node=10)
    for i in range(3):
        export.launch(300 + 100 * i, 310 + 100 * i, corr=i, tid=1, name="cudaGraphLaunch_v10000")
        export.kernel(330 + 100 * i, 340 + 100 * i, corr=i, graph_node=10, name="sgemm_tn")
    assert rows(export, "flops") == [LINEAR_FLOPS] * 3


def test_graphs_and_kernels_share_rows_and_gpu_time(rows, opened):
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    export.launch(10, 11, corr=1, tid=1).graph_trace(20, 70, corr=1, graph=5)
    export.launch(80, 81, corr=2, tid=1).kernel(90, 95, corr=2)
    export.graph_trace(200, 300, corr=None)
    assert rows(export, "sil", "layer") == [(50, ("a",)), (5, ("a",)), (100, ())]
    assert opened(export).coverage.total == 155


# The call and its cost.


def test_kernels_of_a_call_share_its_flops_by_their_time(rows):
    export = Export().push_pop(0, 100, LINEAR, tid=1)
    export.work(10, name="sgemm_tn", duration=30).work(20, name="sgemm_tn", duration=10)
    assert rows(export, "flops") == [LINEAR_FLOPS * 3 // 4, LINEAR_FLOPS // 4]


@pytest.mark.parametrize("durations", [(1, 1, 1), (7, 3, 90), (0, 0, 0), (0, 5, 0), (10**12, 1, 1)])
def test_the_sum_over_kernels_is_the_sum_over_calls(rows, durations):
    export = Export()
    for at in (0, 1000):
        export.push_pop(at, at + 900, LINEAR, tid=1)
        for k, duration in enumerate(durations):
            export.work(at + 10 + k, name="sgemm_tn", duration=duration)
    shares = rows(export, "flops", "bytes")
    assert sum(flops for flops, _ in shares) == 2 * LINEAR_FLOPS
    one_call = 4 * (8 * 16 + 4 * 16 + 8 * 4)
    assert sum(moved for _, moved in shares) == 2 * one_call


def test_kernels_that_only_help_a_product_add_no_flops(rows):
    export = Export().push_pop(0, 100, LINEAR, tid=1)
    export.work(10, name="sgemm_tn").work(20, name="direct_copy_kernel")
    assert rows(export, "flops") == [LINEAR_FLOPS, 0]


def test_backward_of_a_product_costs_twice_its_forward_pass(rows):
    export = torch_2(LINEAR).work(250, tid=2, name="sgemm_nt")
    flops = rows(export, "dir", "flops")
    assert sum(n for direction, n in flops if direction == "fprop") == LINEAR_FLOPS
    assert sum(n for direction, n in flops if direction == "bprop") == 2 * LINEAR_FLOPS


@pytest.mark.parametrize("other", ["direct_copy_kernel", "elementwise_kernel", "mystery"])
def test_backward_nodes_of_one_call_do_not_each_cost_the_whole(rows, other):
    export = Export().push_pop(0, 100, LINEAR, tid=1)
    export.push_pop(1, 99, "aten::linear, seq = 5", tid=1)
    export.push_pop(10, 20, "aten::t, seq = 5", tid=1)
    export.push_pop(30, 60, "aten::mm, seq = 6", tid=1).work(40, name="sgemm_tn")
    export.push_pop(200, 300, ENGINE + "MmBackward0, seq = 6", tid=2)
    export.work(210, tid=2, name="sgemm_nn").work(220, tid=2, name="sgemm_nt")
    export.push_pop(400, 500, ENGINE + "TBackward0, seq = 5", tid=2)
    export.work(410, tid=2, name=other)
    assert sum(rows(export, "flops")[1:]) == 2 * LINEAR_FLOPS


def test_a_call_without_a_model_has_no_known_cost(rows):
    export = Export().push_pop(0, 100, UNKNOWN, tid=1).work(10)
    assert rows(export, "op", "flops", "bytes") == [("no_such_op", None, None)]


def test_the_call_is_the_outermost_that_has_a_model(rows):
    export = Export().nest(0, 100, LINEAR, MATMUL).work(40, name="sgemm_tn")
    assert rows(export, "op", "mod", "params") == [
        ("linear", "torch.nn.functional", "M=4,N=8,K=16,fp32,")
    ]


@pytest.mark.parametrize(
    ("op", "mod"),
    [
        ("__getattr__", "torch.nn.Module"),
        ("multi_head_attention_forward", "torch.nn.functional"),
        ("no_such_op", "torch"),
    ],
)
def test_a_wrapper_without_a_model_gives_way_to_the_call_inside_of_it(rows, op, mod):
    wrapper = marker(op, tensor(8, 16), mod=mod)
    export = Export().nest(0, 100, wrapper, LINEAR, MATMUL).work(40, name="sgemm_tn")
    assert rows(export, "op", "mod", "flops") == [("linear", "torch.nn.functional", LINEAR_FLOPS)]


def test_a_torch_range_around_a_call_with_a_model_gives_way_although_it_says_no_sizes(rows):
    names = ["FSDP::pre_forward (blocks.3), op_id = 1", "aten::linear, seq = 5, op_id = 2"]
    export = Export().nest(0, 100, *names, "aten::addmm, seq = 5, op_id = 3").work(40)
    assert rows(export, "op", "mod", "flops") == [("linear", "aten", None)]


def test_dict_lines_keep_the_whole_chain_outermost_first(dict_lines):
    wrapper = marker("__getattr__", tensor(8, 16), mod="torch.nn.Module")
    export = Export().nest(0, 100, wrapper, LINEAR, MATMUL).work(40, name="sgemm_tn")
    assert dict_lines(export, "mod", "op", "marker") == [
        (
            ("torch.nn.Module", "torch.nn.functional", "torch"),
            ("__getattr__", "linear", "matmul"),
            (wrapper, LINEAR, MATMUL),
        )
    ]


def test_without_any_model_the_call_is_the_outermost(rows):
    export = Export().nest(0, 100, UNKNOWN, marker("nor_this")).work(40)
    assert rows(export, "op", "params") == [("no_such_op", "T=[(8,16)],['float32']")]


def test_two_calls_inside_a_wrapper_are_two_calls(rows):
    export = Export().push_pop(0, 1000, marker("multi_head_attention_forward"), tid=1)
    for at in (10, 510):
        export.push_pop(at, at + 400, LINEAR, tid=1).work(at + 10, name="sgemm_tn")
    assert rows(export, "op", "flops") == [("linear", LINEAR_FLOPS)] * 2


def test_sizes_of_torch_ranges_give_the_same_flops_as_an_argument_marker(rows):
    text = "aten::linear, seq = 5, op_id = 1, sizes = [[8, 16], [4, 16], []]"
    export = Export().nest(0, 100, text, "aten::addmm, seq = 5").work(40, name="sgemm_tn")
    assert rows(export, "op", "mod", "flops", "bytes") == [("linear", "aten", LINEAR_FLOPS, None)]


def test_backward_of_a_call_with_sizes_has_its_cost(rows):
    export = Export()
    text = "aten::mm, seq = 5, op_id = 1, sizes = [[8, 16], [16, 4]]"
    export.push_pop(0, 100, text, tid=1).work(40, name="sgemm_nn")
    export.push_pop(200, 300, ENGINE + "MmBackward0, seq = 5, sizes = [[8, 4]]", tid=2)
    export.work(210, tid=2, name="sgemm_nt").work(220, tid=2, name="sgemm_tn")
    assert sum(rows(export, "flops")) == 3 * LINEAR_FLOPS


def test_what_is_known_of_the_gpu_time_is_told_depth_by_depth(tmp_path):
    export = Export().push_pop(0, 100, LINEAR, tid=1).work(10, name="sgemm_tn", duration=1)
    export.push_pop(200, 300, UNKNOWN, tid=1).work(210, duration=2)
    export.push_pop(400, 500, "aten::mul, seq = 4", tid=1).work(410, duration=4)
    export.push_pop(600, 700, "mine", tid=1).work(610, duration=8)
    export.work(800, duration=16)
    export.kernel(1000, 1032, corr=999)
    coverage = fastprof.open(export.write(tmp_path / "x.sqlite")).coverage
    assert coverage.total == 63
    depths = {"launch": 31, "range": 15, "op": 7, "shapes": 3, "cost": 1, "source line": 0}
    assert coverage.known == depths
