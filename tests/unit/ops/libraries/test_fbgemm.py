"""Operators of fbgemm: lookups in embedding tables, sparse features, jagged tensors."""

import re
from dataclasses import replace

import pytest

from fastprof.model.call import UNKNOWN, Tensor
from fastprof.ops import CannotModel, registry
from fastprof.ops.libraries.fbgemm.lookups import OPTIMIZERS, Picks, tables
from fastprof.ops.registry import why_unknown
from unit.ops.ops_calls import aten, fp16, fp32, int64, tensor
from unit.ops.ops_examples import Example, cost, failures, listed


def i32(*shape: int) -> Tensor:
    return tensor("int32", *shape)


# Two tables of width 8, together 100 rows; 12 indices in 3 samples per table; a state of one
# element per row. Each index is a row of 8 halves.
WEIGHTS, UNIFIED, CACHE = fp16(800), fp16(0), fp16(0, 0)
PLACES, STARTS, ENDS, HASH = i32(2), int64(2), i32(3), int64(3)
INDICES, OFFSETS = int64(12), int64(7)
STATE = fp32(100)
OUTPUT = 4 * 3 * 16
READ = 8 * 12 + 8 * 7
ROWS = 2 * 12 * 8


def lookup(name: str, total=16, widest=8, momentum=STATE, per_sample=None):
    return aten(
        name,
        *(fp32(0), WEIGHTS, UNIFIED, CACHE, PLACES, STARTS, ENDS, total, widest, HASH, 7),
        *(INDICES, OFFSETS, 0, per_sample, None, i32(0), False, 1.0, True, momentum, fp32(0)),
    )


def lookup_pt2(name: str):
    lists = (fp16(0), WEIGHTS, UNIFIED, CACHE, PLACES, STARTS)
    return aten(
        name,
        *(fp32(0), lists, ENDS, 16, 8, HASH, 7, INDICES, OFFSETS, 0, None, None, 0),
        *((None, None), (1, 2), (0.5,), (True,), (fp32(0), STATE), fp32(1), (0,), (0.1,)),
    )


# Backward: at most 12 touched rows of 100, with their share of the state.
def backward_bytes(state: int) -> int:
    return READ + OUTPUT + 2 * ROWS + state


SHARE = 2 * round(400 * (12 * 8 / 800))
LOOKUPS = [
    example
    for space in ("fbgemm", "fb")
    for kind in ("split", "ssd")
    for about in ("", "approx_", "exact_")
    for optimizer, update in OPTIMIZERS.items()
    for name in [f"{space}::{kind}_embedding_codegen_lookup_{about}{optimizer}_function"]
    for example in [
        Example(lookup(name), 12 * 8, READ + ROWS + OUTPUT, "[800]fp16;[12]int64;[3,16]fp32"),
        Example(lookup_pt2(name + "_pt2"), 12 * 8, READ + ROWS + OUTPUT),
        *(
            [Example(lookup(name), 96 + 96 * update, backward_bytes(SHARE), direction="bprop")]
            if optimizer != "none"
            else []
        ),
    ]
]


def flat(name: str, *before: Tensor):
    return aten(
        name,
        *(*before, WEIGHTS, UNIFIED, CACHE, PLACES, STARTS, ENDS, 16, 8),
        *(*([HASH] if before else []), INDICES, OFFSETS, 0, i32(0), i32(0), 0),
    )


def flat_gradient(name: str, *before: Tensor):
    return aten(
        name,
        *(fp32(3, 16), *before, WEIGHTS, UNIFIED, CACHE, PLACES, STARTS, ENDS, 8, True, HASH, 7),
        *(INDICES, OFFSETS, 0, i32(0), 32, 32, True, 26, 67108863, False, True, STATE, fp32(0)),
    )


GRADIENTS = [
    Example(flat_gradient(f"{space}::{name}", *before), 96 + 96 * update, backward_bytes(SHARE))
    for space in ("fbgemm", "fb")
    for optimizer, update in OPTIMIZERS.items()
    if optimizer != "none"
    for name in [f"split_embedding_backward_codegen_{optimizer}"]
    for before in ((), (fp16(0),))
]
OF_WEIGHTS = "split_embedding_codegen_grad_indice_weights"
# 4 features of 3 samples with 20 values; of 2 features, half as many. Jagged values [10, 6] of 3
# samples, at most 4 long. Rows of 16 bytes and scales of 8.
NAMED = {
    "weights": WEIGHTS, "uni": UNIFIED, "cache": CACHE, "at": STARTS, "ends": ENDS, "hash": HASH,
    "places": PLACES, "ids": INDICES, "off": OFFSETS, "len": i32(4, 3), "val": int64(20),
    "rag": fp32(10, 6), "to": int64(4), "dense": fp32(3, 4, 6), "code": tensor("uint8", 5, 24),
}  # fmt: skip


def of_both(names: str, arguments: str, flops, moved, direction="fprop", back=None):
    """A call of each operator, which fbgemm has in two name spaces."""
    table = "\n".join(
        f"{space}::{name} {arguments}" for space in ("fbgemm", "fb") for name in names.split()
    )
    return listed(table, NAMED, flops, moved, direction=direction, back=back)


FOUND = READ + ROWS + OUTPUT
INSIDE = [
    *(
        Example(flat(f"{space}::split_embedding_codegen_forward", *before), 96, FOUND)
        for space in ("fbgemm", "fb")
        for before in ((), (fp16(0),))
    ),
    *of_both(
        OF_WEIGHTS,
        "fp32[3,16] weights uni cache places at ends 8 ids off int32[0] []",
        *(2 * 96, READ + OUTPUT + ROWS + 4 * 12),
    ),
    *of_both(
        "dense_embedding_codegen_lookup_function dense_embedding_codegen_lookup_function_pt2",
        "weights at ends 16 8 hash 7 ids off 0 - - 0",
        *(96, FOUND),
        back=(96, backward_bytes(2 * 800)),
    ),
    *of_both(
        "int_nbit_split_embedding_codegen_lookup_function"
        " int_nbit_split_embedding_uvm_caching_codegen_lookup_function",
        "uint8[999] uint8[0] places at int32[2] ends 16 0 8 0 0 0 ids off 0 - 1",
        *(3 * 12 * 8, None),
    ),
]

SORTED_1D = 6 + 6, 4 * (6 + 6 + 6) + 8 * (20 + 20)
FEATURES = [
    *of_both(
        "permute_2D_sparse_data permute_2D_sparse_preallocated_out permute_sparse_data"
        " permute_sparse_features",
        "int32[4] len val - -",
        *(12 + 12, 4 * (4 + 12 + 12) + 8 * (20 + 20)),
    ),
    *of_both(
        "permute_2D_sparse_data",
        "int32[2] len val fp32[20] 7",
        *(12 + 6, 4 * (2 + 12 + 6) + (8 + 4) * (20 + 7)),
    ),
    *of_both(
        "permute_2D_sparse_data",
        "int32[2] len val - []",
        *(12 + 6, 4 * (2 + 12 + 6) + 8 * (20 + 10)),
    ),
    *of_both("permute_1D_sparse_data", "int32[6] int32[6] val", *SORTED_1D),
    *of_both("permute_2D_sparse_data_input1D", "int32[6] int32[6] val 3 - -", *SORTED_1D),
    *of_both(
        "asynchronous_complete_cumsum asynchronous_inclusive_cumsum asynchronous_exclusive_cumsum"
        " asynchronous_batched_complete_cumsum asynchronous_batched_inclusive_cumsum"
        " asynchronous_batched_exclusive_cumsum",
        "int32[9]",
        *(9, 2 * 4 * 9),
    ),
    *of_both(
        "bounds_check_indices",
        "int64[2] ids off 1 int64[1] -",
        *(2 * 12 + 7, 8 * (2 + 12 + 7)),
    ),
    *of_both(
        "block_bucketize_sparse_features block_bucketize_sparse_features_inference",
        "len val false true int32[4] 2 -",
        *(2 * 20 + 12 * 2, 4 * (12 + 24) + 8 * (20 + 20 + 20)),
    ),
    *of_both(
        "bucketize_sparse_features",
        "len val false 2 -",
        *(2 * 20 + 12 * 2, 4 * (12 + 24) + 8 * (20 + 20)),
    ),
    *of_both("offsets_range", "int64[7] 12", 12, 8 * (7 + 12)),
    *of_both("offsets_range", "int64[7] int32[12]", 12, 8 * (7 + 12)),
    *of_both("expand_into_jagged_permute", "int32[4] int32[5]*2 20", 20, 4 * (4 + 5 + 5 + 20)),
    *of_both("expand_into_jagged_permute", "int32[4] int32[5]*2 []", None, None),
    *of_both(
        "invert_permute recat_embedding_grad_output recat_embedding_grad_output_mixed_D"
        " reorder_batched_ad_lengths",
        "fp32[3,16] []",
        *(0, 2 * 4 * 48),
    ),
    *of_both("recat_embedding_grad_output_mixed_D_batch", "fp32[3,16] int64[2]*2", 0, 2 * 4 * 48),
    *of_both("segment_sum_csr", "1 int32[5] fp32[20]", 20, 4 * (20 + 5 + 4)),
    *of_both(
        "keyed_jagged_index_select_dim1",
        "val int32[12] int32[13] int64[2] 4 - 9",
        *(12, 4 * (12 + 13) + 8 * 2 + 2 * 8 * 9),
    ),
    *of_both(
        "jagged_index_select",
        "fp32[20,6] int32[4] int64[2]",
        *(4, 4 * 4 + 8 * 2 + 2 * 4 * 10 * 6),
        back=(10 * 6, 8 * 2 + 3 * 4 * 10 * 6),
    ),
    *of_both(
        "index_select_dim0",
        "fp32[20,6] int64[5] []",
        *(0, 8 * 5 + 2 * 4 * 30),
        back=(30, 8 * 5 + 3 * 4 * 30),
    ),
    *of_both(
        "group_index_select_dim0",
        "(fp32[20,6],fp32[9,2]) (int64[5],int64[4])",
        *(0, 8 * (5 + 4) + 2 * 4 * (30 + 8)),
    ),
    *of_both(
        "batched_unary_embeddings",
        "fp32[20,1] int64[3] int64[7] int64[5]",
        *(0, 8 * 5 + 2 * 4 * 5),
    ),
]

PRODUCTS = [
    *of_both(
        "jagged_to_padded_dense jagged_to_padded_dense_forward",
        "rag (to) (4) 0.0",
        *(0, 4 * (60 + 72) + 8 * 4),
    ),
    *of_both("jagged_2d_to_dense", "rag to 4", 0, 4 * (60 + 72) + 32, back=(0, 2 * 4 * 60 + 32)),
    *of_both("jagged_2d_to_dense", "rag to []", 0, None),
    *of_both("jagged_1d_to_dense", "fp32[10] to 4 0", 0, 4 * 22 + 32),
    *of_both("jagged_to_padded_dense_backward", "dense (to) 10", 0, 2 * 4 * 60 + 32),
    *of_both("dense_to_jagged dense_to_jagged_forward", "dense (to) 10", 0, 2 * 4 * 60 + 32),
    *of_both("dense_to_jagged dense_to_jagged_forward", "dense (to) []", 0, 2 * 4 * 72 + 32),
    *of_both("dense_to_jagged", "dense (to) 10", 0, 4 * 60 + 4 * 72 + 32, "bprop"),
    *of_both(
        "jagged_dense_elementwise_add jagged_dense_elementwise_add_jagged_output"
        " jagged_dense_elementwise_mul jagged_dense_elementwise_mul_forward",
        "rag (to) dense",
        *(60, 3 * 4 * 60 + 32),
    ),
    *of_both(
        "jagged_dense_dense_elementwise_add_jagged_output"
        " jagged_dense_dense_elementwise_add_jagged_output_forward",
        "rag (to) dense dense",
        *(120, 4 * 4 * 60 + 32),
    ),
    *of_both(
        "batched_dense_vec_jagged_2d_mul batched_dense_vec_jagged_2d_mul_forward",
        "fp32[6,4] rag to",
        *(2 * 60, 4 * (60 + 20 + 18) + 32),
    ),
    *of_both(
        "batched_dense_vec_jagged_2d_mul",
        "fp32[6,4] rag to",
        *(4 * 60, 4 * (60 + 20 + 18) + 32 + 4 * (60 + 24)),
        direction="bprop",
    ),
    *of_both(
        "jagged_dense_bmm jagged_dense_bmm_forward",
        "rag to fp32[3,6,5] 4",
        *(2 * 10 * 6 * 5, 4 * (60 + 90 + 50) + 32),
    ),
    *of_both(
        "jagged_jagged_bmm jagged_jagged_bmm_forward",
        "rag fp32[10,5] to 4",
        *(2 * 10 * 6 * 5, 4 * (60 + 50 + 90) + 32),
    ),
    *of_both("jagged_softmax jagged_softmax_forward", "rag to 4", 24 * 60, 2 * 4 * 60 + 32),
]

POOLED = [
    *of_both(
        "permute_pooled_embs permute_pooled_embs_auto_grad permute_pooled_embs_split"
        " permute_pooled_embs_auto_grad_split",
        "fp32[3,16] int64[2]*4",
        *(0, 2 * 4 * 48),
        back=(0, 2 * 4 * 48),
    ),
    *of_both(
        "merge_pooled_embeddings all_to_one_device permute_multi_embedding"
        " permute_multi_embedding_function regroup_keyed_tensor sum_reduce_to_one",
        "(fp32[3,16],fp32[3,4]) []",
        *(0, 2 * 4 * 60),
    ),
]

TO_CODE = 5 * 80, 4 * 80 + 5 * 24
FROM_CODE = 2 * 80, 5 * 24 + 4 * 80
CODES = [
    *of_both(
        "FloatToHFP8Quantized FloatToMSFPQuantized FloatToBfloat16Quantized",
        "fp32[80] 4 14 1.0",
        *(80, 80 * (4 + 1)),
    ),
    *of_both("HFP8QuantizedToFloat MSFPQuantizedToFloat", "uint8[80] 4 14", 80, 80 * (1 + 4)),
    *of_both("Bfloat16QuantizedToFloat", "fp16[80]", 80, 80 * (2 + 4)),
    *of_both(
        "FloatToFused8BitRowwiseQuantized HalfToFused8BitRowwiseQuantized"
        " FloatOrHalfToFused8BitRowwiseQuantized FloatToFP8RowwiseQuantized"
        " FloatToPaddedFP8RowwiseQuantized",
        "fp32[5,16]",
        *TO_CODE,
    ),
    *of_both("FloatToFused8BitRowwiseQuantizedOut", "code fp32[5,16]", *TO_CODE),
    *of_both(
        "Fused8BitRowwiseQuantizedToFloat Fused8BitRowwiseQuantizedToFloatOrHalf"
        " FP8RowwiseQuantizedToFloat PaddedFP8RowwiseQuantizedToFloat",
        "code",
        *FROM_CODE,
    ),
    *of_both("Fused8BitRowwiseQuantizedToFloatOut", "fp32[5,16] code", *FROM_CODE),
    *of_both("Fused8BitRowwiseQuantizedToFloatOrHalf", "code 1", 2 * 80, 5 * 24 + 2 * 80),
    *of_both("Fused8BitRowwiseQuantizedToHalf", "code", 2 * 80, 5 * 24 + 2 * 80),
    *of_both(
        "FloatToFusedNBitRowwiseQuantizedSBHalf HalfToFusedNBitRowwiseQuantizedSBHalf"
        " FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf",
        "fp32[5,16] 4",
        *(5 * 80, 4 * 80 + 5 * (8 + 4)),
    ),
]

EXAMPLES = [*LOOKUPS, *GRADIENTS, *INSIDE, *FEATURES, *PRODUCTS, *POOLED, *CODES]


ROWWISE = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"


def test_without_widths_a_state_of_one_element_a_row_tells_them():
    result = cost(lookup(ROWWISE, UNKNOWN, UNKNOWN))
    assert (result.flops, result.bytes, result.exact) == (96, READ + ROWS + OUTPUT, False)


def test_without_widths_and_such_a_state_the_cost_is_unknown():
    call = lookup(ROWWISE, UNKNOWN, UNKNOWN, momentum=fp32(800))
    assert why_unknown(call, "fprop") == "the widths of the tables are not in the capture"


def test_the_output_tells_widths_and_type_if_it_has_as_many_bags():
    done = tables((WEIGHTS,), 2, Picks(INDICES, OFFSETS, pooling=0), None, fp16(3, 16))
    assert (done.width, done.output, done.exact) == (8, fp16(3, 16), False)
    done = tables((WEIGHTS,), 2, Picks(INDICES, OFFSETS, 16, 8, 0), None, fp16(3, 16))
    assert (done.rows, done.exact) == (100, True)
    with pytest.raises(CannotModel):
        tables((WEIGHTS,), 2, Picks(INDICES, OFFSETS, pooling=0), None, fp16(4, 16))


def test_tables_of_different_width_make_an_estimate():
    # Of widths 12 and 4; the number of indices per table is unknown.
    result = cost(lookup(ROWWISE, 16, 12))
    assert (result.flops, result.exact) == (96, False)


def test_weights_of_samples_are_read_and_multiplied():
    result = cost(lookup(ROWWISE, per_sample=fp32(12)))
    assert (result.flops, result.bytes) == (192, READ + 4 * 12 + ROWS + OUTPUT)


def test_no_more_rows_are_touched_than_there_are():
    call = lookup(ROWWISE)
    many = replace(
        call,
        args=tuple(
            replace(arg, value=int64(1000)) if arg.value == INDICES else arg for arg in call.args
        ),
    )
    # All 100 rows of 8 halves and their state.
    touched = 2 * 2 * 800 + 2 * 400
    assert cost(many, "bprop").bytes == 8 * 1000 + 8 * 7 + OUTPUT + touched


def test_the_types_of_a_list_that_a_trace_does_not_tell_leave_the_call_to_what_runs_inside():
    call = lookup_pt2(ROWWISE + "_pt2")
    untyped = replace(
        call,
        args=tuple(
            replace(arg, value=tuple(Tensor(one.shape) for one in arg.value))
            if isinstance(arg.value, tuple) and WEIGHTS in arg.value
            else arg
            for arg in call.args
        ),
    )
    assert why_unknown(untyped, "fprop") == "the type of the tables is not in the capture"


@pytest.mark.parametrize(
    "name, canonical",
    [
        ("split_embedding_codegen_forward_unweighted_cuda", "codegen_forward"),
        ("split_embedding_codegen_forward_weighted_vbe_pt2_wrapper", "codegen_forward"),
        ("ssd_embedding_nobag_codegen_forward_unweighted_cuda", "codegen_forward"),
        (
            "split_embedding_backward_codegen_rowwise_adagrad_unweighted_exact_cuda",
            "backward_codegen_rowwise_adagrad",
        ),
        (
            "split_embedding_backward_codegen_approx_sgd_weighted_vbe_pt2_wrapper",
            "backward_codegen_sgd",
        ),
        (
            "ssd_embedding_backward_codegen_partial_rowwise_adam_unweighted_exact_cuda",
            "backward_codegen_partial_rowwise_adam",
        ),
        ("dense_embedding_codegen_grad_indice_weights_vbe_cuda", "codegen_grad_indice_weights"),
    ],
)
def test_generated_names_have_the_formula_of_their_kind(name, canonical):
    call = aten(f"fbgemm::{name}", fp32(3))
    known = aten(f"fbgemm::split_embedding_{canonical}", fp32(3))
    result = registry.find(call)
    assert result is not None
    assert result is registry.find(known)


def test_without_bags_each_index_is_a_row_of_the_output():
    call = aten(
        "fbgemm::split_embedding_nobag_codegen_forward_unweighted_cuda",
        *(WEIGHTS, UNIFIED, CACHE, PLACES, STARTS, 8, INDICES, OFFSETS, i32(0), i32(0), 0, False),
    )
    result = cost(call)
    assert (result.flops, result.bytes) == (0, READ + ROWS + 4 * 12 * 8)


def test_a_permutation_of_fewer_features_is_an_estimate_without_its_number_of_values():
    name = "fbgemm::permute_2D_sparse_data"
    assert cost(aten(name, i32(4), i32(4, 3), int64(20), None, None)).exact
    assert cost(aten(name, i32(2), i32(4, 3), int64(20), None, 7)).exact
    assert not cost(aten(name, i32(2), i32(4, 3), int64(20), None, Tensor(()))).exact


def test_arguments_that_do_not_fit_have_no_cost_and_a_reason():
    # Names with approx_ and exact_ are served by the formula of the name without.
    distinct = [each for each in EXAMPLES if each.call.mod == "fb"]
    assert [
        *failures(each for each in distinct if not re.search("approx_|exact_", each.call.op))
    ] == []
