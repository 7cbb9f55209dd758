"""Batch, layer, group, instance and RMS norm, and scaling by norms: FLOPs and bytes by hand."""

from fastprof.model.call import UNKNOWN, Tensor
from fastprof.ops import work
from unit.ops.ops_calls import aten, fp32, python
from unit.ops.ops_examples import Example, Rows, both, cost, exact

F = "torch.nn.functional"
rows = Rows(globals())
two = Rows(globals(), "torch", "aten")
nn = Rows(globals(), F)
apex = Rows(globals(), "apex.normalization.fused_layer_norm")
X = fp32(2, 3, 4, 5)
N = 2 * 3 * 4 * 5  # elements of X
C = fp32(3)
TRAINED = 4 * (3 * N + 2 * 3 + 4 * 3 + 2 * 3)  # x twice, y; weights; running read, written; saved
EVALUATED = 4 * (2 * N + 4 * 3)
BACKWARD = 4 * (5 * N + 3 + 2 * 3 + 2 * 3)  # dy, x twice, dx; weight; saved; dweight, dbias
ROWS = fp32(7, 6)  # a matrix of 7 rows
D = fp32(6)


FULL = (X, C, C, C, C)  # in ATen's order: weight, bias, running mean, running variance
BATCH_NORMS = [
    *both(
        "_batch_norm_impl_index native_batch_norm _native_batch_norm_legit cudnn_batch_norm"
        " _native_batch_norm_legit_functional miopen_batch_norm",
        *FULL,
        True,
        0.1,
        1e-5,
        flops=8 * N,
        moved=TRAINED,
    ),
    *two("native_batch_norm *FULL false 0.1 1e-5", 4 * N, EVALUATED),
    *two("_native_batch_norm_legit X C C true 0.1 1e-5", 8 * N, 4 * (3 * N + 12)),
    *two(
        "_batch_norm_with_update|_batch_norm_with_update_functional *FULL 0.1 1e-5", 8 * N, TRAINED
    ),
    *two(
        "_native_batch_norm_legit_no_training|_batch_norm_no_update *FULL 0.1 1e-5",
        *(4 * N, EVALUATED),
    ),
    *rows("batch_norm *FULL true 0.1 1e-5 true", 8 * N, TRAINED),
    *nn("batch_norm X C*4 true 0.1 1e-5", 8 * N, TRAINED),
    *nn(
        "batch_norm X C C weight=C bias=C training=true",
        *(8 * N, TRAINED, "[2,3,4,5]fp32;[3]fp32;[3]fp32"),
    ),
    *nn("batch_norm X C*4", 4 * N, EVALUATED),
    *nn("batch_norm X - - training=true", 6 * N, 4 * (3 * N + 2 * 3)),
    # torch.batch_norm has nine arguments, weight and bias first: no running statistics here.
    *rows("torch.batch_norm X C C - - true 0.1 1e-5 true", 8 * N, 4 * (3 * N + 2 * 3 + 2 * 3)),
    *nn.back("batch_norm X C*4 true", 9 * N, BACKWARD),
    *nn.back("batch_norm X C*4 false", 5 * N, 4 * (3 * N + 3 + 2 * 3 + 2 * 3)),
    *nn.back("batch_norm X C C", N, 4 * (2 * N + 2 * 3)),
    *rows.back("_batch_norm_with_update *FULL 0.1 1e-5", 9 * N, BACKWARD),
    *rows.back("_batch_norm_no_update *FULL 0.1 1e-5", 5 * N, 4 * (3 * N + 3 + 2 * 3 + 2 * 3)),
    # Half precision keeps weights and statistics in float32.
    *nn("batch_norm fp16[2,3,4,5] C*4 true", 8 * N, 2 * 3 * N + 4 * (2 * 3 + 4 * 3 + 2 * 3)),
    *rows("cudnn_batch_norm [2,3,4] [3] [3] [3] [3] [] [] []", 8 * 24, None),
    *rows("native_batch_norm [2,3,4] [] [] [] [] [] [] []", 6 * 24, None),
    # Instance norm: batch norm of [1, n c, ..], a statistic for each n and c.
    *nn("instance_norm X - - C C", 8 * N, 4 * (3 * N + 2 * 3 + 2 * 6)),
    *rows("instance_norm X C C - - true 0.1 1e-5 false", 8 * N, 4 * (3 * N + 2 * 3 + 2 * 6)),
    *rows("torch.instance_norm X C -*3 true 0.1 1e-5 false", 7 * N, 4 * (3 * N + 3 + 2 * 6)),
    *nn.back("instance_norm X - - C C", 9 * N, 4 * (5 * N + 3 + 2 * 6 + 2 * 3)),
]

SAVED = (C, C, C, C, C)  # weight, running statistics, saved statistics
BATCH_BACKWARD = [
    *two(
        "native_batch_norm_backward|batch_norm_backward X X *SAVED true 1e-5 (true,true,true)",
        *(9 * N, BACKWARD),
    ),
    *two("cudnn_batch_norm_backward X X *SAVED 1e-5 fp32[9]", 9 * N, BACKWARD),
    *two("miopen_batch_norm_backward X X *SAVED 1e-5", 9 * N, BACKWARD),
    *two(
        "_batch_norm_impl_index_backward 1 X X *SAVED true 1e-5 (true,true,true) fp32[9]",
        *(9 * N, BACKWARD),
    ),
    *two("native_batch_norm_backward X X *SAVED false", 5 * N, 4 * (3 * N + 3 + 2 * 3 + 2 * 3)),
    *two("native_batch_norm_backward X X - C C - - false", N, 4 * (2 * N + 2 * 3)),
    *rows("native_batch_norm_backward [2,3] [2,3] [3] [3] [3] [3] [3] []", 9 * 6, None),
]

SYNCHRONISED = [
    *two("batch_norm_stats X 1e-5", 4 * N, 4 * (N + 2 * 3)),
    *two("batch_norm_update_stats X C C 0.1", 4 * N, 4 * (N + 2 * 3 + 4 * 3)),
    *two(
        "batch_norm_gather_stats X fp32[8,3] fp32[8,3] C C 0.1 1e-5 40",
        *(18 * 8 * 3, 4 * (2 * 8 * 3 + 2 * 3 + 4 * 3)),
    ),
    *two(
        "batch_norm_gather_stats_with_counts X fp32[8,3] fp32[8,3] - - 0.1 1e-5 fp32[8]",
        *(18 * 8 * 3, 4 * (2 * 8 * 3 + 2 * 3 + 8)),
    ),
    *two("batch_norm_elemt X C*4 1e-5", 4 * N, 4 * (2 * N + 4 * 3)),
    *two("batch_norm_elemt X - - C C 1e-5", 2 * N, 4 * (2 * N + 2 * 3)),
    *two("batch_norm_backward_reduce X X C*3 true*3", 4 * N, 4 * (2 * N + 2 * 3 + 2 * 3 + 2 * 3)),
    *two("batch_norm_backward_elemt X X C*5 int32[8]", 5 * N, 4 * (3 * N + 5 * 3)),
    *rows("batch_norm_stats [2,3,4] []", 4 * 24, None),
]

LAYER = 4 * (2 * 42 + 2 * 6 + 2 * 7)  # x, y; weight, bias; mean and deviation of 7 rows
LAYER_BACKWARD = 4 * (3 * 42 + 6 + 2 * 6 + 2 * 7)
LAYER_NORMS = [
    *two("layer_norm ROWS (6) D D 1e-5 true", 8 * 42, LAYER),
    *two("native_layer_norm ROWS (6) D D 1e-5", 8 * 42, LAYER),
    *two("layer_norm ROWS (6) D", 7 * 42, LAYER - 4 * 6),
    *two("layer_norm ROWS (7,6)", 6 * 42, 4 * (2 * 42 + 2)),
    *two.back("layer_norm ROWS (6) D D", 13 * 42, LAYER_BACKWARD),
    *nn(
        "layer_norm bf16[7,6] (6) weight=D bias=D",
        *(8 * 42, 2 * 2 * 42 + 4 * (2 * 6 + 2 * 7), "[7,6]bf16;[6]fp32;[6]fp32"),
    ),
    *nn("layer_norm float64[7,6] (6)", 6 * 42, 8 * (2 * 42 + 2 * 7)),
    # Torch 1.4 to 1.6: rows and row length in place of normalized_shape.
    *rows("native_layer_norm ROWS D D 7 6 1e-5", 8 * 42, LAYER),
    *rows("native_layer_norm [7,6] [] [6] [6] []", 8 * 42, None),
    *rows("native_layer_norm [7,6] [6] [6] [] [] []", 8 * 42, None),
    *rows("layer_norm ROWS _ - - 1e-5", 6 * 42, None),
    *two(
        "native_layer_norm_backward ROWS ROWS (6) fp32[7,1] fp32[7,1] D D (true,true,true)",
        *(13 * 42, LAYER_BACKWARD),
    ),
    Example(
        aten("native_layer_norm_backward", ROWS, ROWS, fp32(7), fp32(7), D, 7, 6, (True,) * 3),
        12 * 42,
        LAYER_BACKWARD - 4 * 6,
    ),
    *apex("fused_layer_norm_affine ROWS D D (6) 1e-6", 8 * 42, LAYER),
    *apex(
        "mixed_dtype_fused_layer_norm_affine fp16[7,6] D D (6)",
        *(8 * 42, 2 * 2 * 42 + 4 * (2 * 6 + 2 * 7)),
    ),
    *apex("fused_layer_norm ROWS (6)", 6 * 42, 4 * (2 * 42 + 2 * 7)),
]

RMS = 4 * (2 * 42 + 6 + 7)
RMS_NORMS = [
    *two("rms_norm|_fused_rms_norm ROWS (6) D 1e-5", 4 * 42, RMS),
    *two("rms_norm ROWS (6)", 3 * 42, 4 * (2 * 42 + 7)),
    *two.back("rms_norm ROWS (6) D", 9 * 42, 4 * (3 * 42 + 6 + 6 + 7)),
    *two(
        "_fused_rms_norm_backward ROWS ROWS (6) fp32[7,1] D (true,true)",
        *(9 * 42, 4 * (3 * 42 + 6 + 6 + 7)),
    ),
    *rows("_fused_rms_norm [7,6] [] [6] []", 4 * 42, None),
    *apex("fused_rms_norm ROWS (6)", 3 * 42, 4 * (2 * 42 + 7)),
    *apex("manual_rms_norm ROWS (6) D 1e-6", 4 * 42, RMS),
    *apex("fused_rms_norm_affine ROWS D (6)", 4 * 42, RMS),
    *apex("mixed_dtype_fused_rms_norm_affine ROWS D (6)", 4 * 42, RMS),
]

G = fp32(2, 6, 5)
GROUP = 4 * (3 * 60 + 2 * 6 + 2 * 2 * 3)  # x twice, y; weight, bias; 3 groups of 2 images
GROUP_BACKWARD = 4 * (5 * 60 + 6 + 2 * 6 + 2 * 2 * 3)
GROUP_NORMS = [
    *two("group_norm G 3 D D 1e-5 true", 8 * 60, GROUP),
    *two("native_group_norm G D D 2 6 5 3 1e-5", 8 * 60, GROUP),
    *two.back("group_norm G 3 D D", 13 * 60, GROUP_BACKWARD),
    *two(
        "native_group_norm_backward G G fp32[2,3] fp32[2,3] D 2 6 5 3 (true,true,true)",
        *(13 * 60, GROUP_BACKWARD),
    ),
    *nn("group_norm G num_groups=6", 6 * 60, 4 * (3 * 60 + 2 * 2 * 6)),
    *rows("group_norm [2,6,5] [] [6] [6] [] []", 8 * 60, None),
]

UNIT = [
    *nn("normalize ROWS", 3 * 42 + 21 * 7, 4 * 2 * 42),
    *nn("normalize ROWS p=1 dim=0", 3 * 42 + 1 * 6, 4 * 2 * 42),
    *nn("normalize ROWS 3.0 -1", 23 * 42 + 21 * 7, 4 * 2 * 42),
    *nn.back("normalize ROWS", 5 * 42, 4 * 3 * 42),
    *two("renorm|renorm_ ROWS 2 0 1.0", 3 * 42 + 22 * 7, 4 * 2 * 42),
    *two.back("renorm ROWS 2 0 1.0", 5 * 42, 4 * 3 * 42),
    *two("norm_except_dim ROWS 2 0", 2 * 42 + 20 * 7, 4 * (42 + 7)),
    *two("norm_except_dim ROWS 2 -1", 2 * 42 + 20, 4 * (42 + 1)),
    *two(
        "_weight_norm|_weight_norm_interface ROWS fp32[7,1] 0",
        *(3 * 42 + 21 * 7, 4 * (2 * 42 + 2 * 7)),
    ),
    *two.back("_weight_norm ROWS fp32[7,1] 0", 5 * 42, 4 * (3 * 42 + 3 * 7)),
    *both(
        "_weight_norm_interface_backward _weight_norm_differentiable_backward",
        *(ROWS, ROWS, fp32(7, 1), fp32(7, 1), 0),
        flops=5 * 42,
        moved=4 * (3 * 42 + 3 * 7),
    ),
    *rows("_weight_norm_interface [7,6] [7,1] []", 3 * 42 + 21 * 7, None),
    *nn("local_response_norm X 5", (5 + 24) * N, 4 * 2 * N),
    *nn.back("local_response_norm X 5", 40 * N, 4 * 3 * N),
]

EXAMPLES = [
    *BATCH_NORMS,
    *BATCH_BACKWARD,
    *SYNCHRONISED,
    *LAYER_NORMS,
    *RMS_NORMS,
    *GROUP_NORMS,
    *UNIT,
]


def test_a_batch_norm_that_may_be_training_is_taken_for_it_and_is_not_exact() -> None:
    unsure = aten("cudnn_batch_norm", *FULL, UNKNOWN, UNKNOWN, UNKNOWN)
    assert not exact(unsure) and not exact(unsure, "bprop")
    assert exact(aten("cudnn_batch_norm", *FULL, True, 0.1, 1e-5))
    trained = work(aten("cudnn_batch_norm", *FULL, True, 0.1, 1e-5), "fprop")
    guessed = work(unsure, "fprop")
    assert trained is not None and guessed is not None
    assert guessed.cost.flops == trained.cost.flops
    assert not exact(aten("native_batch_norm_backward", X, X, *SAVED, UNKNOWN))


def test_both_doors_of_a_norm_give_the_same() -> None:
    for called, dispatched in (
        (python(F, "layer_norm", ROWS, (6,), D, D), aten("layer_norm", ROWS, (6,), D, D, 1e-5)),
        (python(F, "batch_norm", X, C, C, C, C), aten("batch_norm", *FULL, False, 0.1, 1e-5, True)),
        (python(F, "group_norm", G, 2), aten("group_norm", G, 2, None, None, 1e-5, True)),
        (python(F, "rms_norm", ROWS, (6,)), aten("rms_norm", ROWS, (6,), None, None)),
    ):
        for direction in ("fprop", "bprop"):
            assert work(called, direction) == work(dispatched, direction)


def test_an_empty_batch_costs_only_its_vectors() -> None:
    empty = cost(python(F, "layer_norm", fp32(0, 6), (6,), D, D))
    assert (empty.flops, empty.bytes) == (0, 4 * 2 * 6)


MALFORMED = [
    python(F, "batch_norm", fp32(3), None, None),
    python(F, "batch_norm", X, fp32(4), fp32(4)),
    python(F, "batch_norm", X, C, C, training="yes"),
    python(F, "instance_norm", fp32()),
    python(F, "layer_norm", ROWS, (7,)),
    python(F, "layer_norm", ROWS, ()),
    python(F, "layer_norm", ROWS, (6,), D, fp32(7)),
    python(F, "layer_norm", fp32(), (1,)),
    python(F, "group_norm", G, 4),
    python(F, "group_norm", G, 0),
    python(F, "group_norm", G, 3, fp32(5)),
    python(F, "normalize", ROWS, 2.0, 5),
    python(F, "local_response_norm", ROWS, 5),
    python(F, "local_response_norm", X, 0),
    aten("native_layer_norm_backward", ROWS, fp32(7, 5), (6,), fp32(7), fp32(7), D, D),
    aten("native_batch_norm_backward", X, ROWS, *SAVED, True),
    aten("batch_norm_gather_stats", X, C, C, C, C, 0.1, 1e-5, 40),
    aten("batch_norm_backward_elemt", X, X, C, C, C, C),
    aten("_weight_norm", ROWS, fp32(5), 0),
    aten("renorm", ROWS, 2, 2, 1.0),
    aten("renorm", ROWS, 2, UNKNOWN, 1.0),
    aten("layer_norm", Tensor((2, -1), "float32"), (2,)),
]
