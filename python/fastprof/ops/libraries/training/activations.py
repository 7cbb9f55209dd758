"""Gated and biased activations, rotary embeddings, and fused losses, each in one kernel.

Cross entropy and divergences may include the model's last product.

Sources: src/liger_kernel/ops in linkedin/Liger-Kernel; apex/transformer/functional/fused_rope.py
and apex/contrib/xentropy in NVIDIA/apex; flash_attn/layers/rotary.py, flash_attn/ops/activations.py
and flash_attn/losses/cross_entropy.py in Dao-AILab/flash-attention;
megatron/core/fusions/fused_bias_swiglu.py, fused_bias_geglu.py, fused_bias_gelu.py and
fused_weighted_squared_relu.py in NVIDIA/Megatron-LM; transformer_engine/pytorch/cross_entropy.py,
attention/rope.py and csrc/ts_fp8_op.cpp in NVIDIA/TransformerEngine;
unsloth/kernels/rope_embedding.py and cross_entropy_loss.py in unslothai/unsloth;
xformers/csrc/swiglu in facebookresearch/xformers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fastprof.model.call import Tensor
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, SIGMOID, TRIGONOMETRIC
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.dtypes import named
from fastprof.ops.matrix.matmul import Product, forward
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import byte_count, elements, fresh, moved, present, texts

# FLOPs of one activation, and of its derivative.
_SILU: Final = (SIGMOID + 1, SIGMOID + 4)
_GELU: Final = (TRIGONOMETRIC + 8, TRIGONOMETRIC + 15)  # by tanh, as these kernels have it
_QUICK_GELU: Final = (SIGMOID + 2, SIGMOID + 6)
_RELU: Final = (1, 1)
_SQUARED_RELU: Final = (2, 2)
_NONE: Final = (0, 0)

# Operators of two tensors of equal size, the activation of the first times the second.
_TWO: Final = {
    "LigerSiLUMulFunction": _SILU,
    "LigerGELUMulFunction": _GELU,
    "SwiGLUFunction": _SILU,
}
# Operators of one tensor [.., 2 h] with both halves, optionally followed by a bias or row weights.
_HALVES: Final = {
    "SwiGLUFunction": _SILU,
    "BiasSwiGLUFunction": _SILU,
    "WeightedSwiGLUFunction": _SILU,
    "GeGLUFunction": _GELU,
    "BiasGeGLUFunction": _GELU,
    "QuickGeGLUFunction": _QUICK_GELU,
    "WeightedQuickGeGLUFunction": _QUICK_GELU,
}
# Operators of one tensor, elementwise, with a bias or weights of rows.
_PLAIN: Final = {
    "GeLUFunction": _GELU,
    "FastGeLUFunction": _GELU,
    "WeightedSquaredReLUFunction": _SQUARED_RELU,
}


def _both(tensors: Tensors, name: str) -> Tensors:
    # The inputs: two of one shape, else one of an even last dimension.
    if not tensors:
        raise CannotModel("no tensor among the arguments")
    if name in _TWO and len(tensors) > 1 and tensors[0].shape == tensors[1].shape:
        return tensors[:2]
    if name not in _HALVES or not tensors[0].shape or tensors[0].shape[-1] % 2:
        raise CannotModel(f"{tensors[0].shape} has no two halves")
    return tensors[:1]


def _extra(others: list[Tensor], count: int, each: int) -> int:
    # A bias [2 h] is added to all elements; weights multiply each row's.
    return count * len([one for one in others if one.shape]) * each


def _gated(tensors: Tensors, *, name: str, activation: tuple[int, int], direction: str) -> Answer:
    halves = _both(tensors, name)
    whole = elements(halves[0].shape)
    count = whole if len(halves) > 1 else whole // 2
    extra = list(tensors[len(halves) :])
    output = byte_count(count, halves[0].dtype)
    inputs = moved(*halves, *extra)
    if direction == "bprop":
        flops = count * (activation[1] + 4) + _extra(extra, whole, 2)
        return Cost(flops, add_known(inputs, output, inputs)), texts(*tensors)
    flops = count * (activation[0] + 1) + _extra(extra, whole, 1)
    return Cost(flops, add_known(inputs, output)), texts(*tensors)


for _name, _activation in {**_TWO, **_HALVES}.items():
    table_row(f"""
        act(a) * b of two tensors of equal size, or of the halves of one [.., 2 h].
        FLOPs: the activation's (SiLU 23, GELU 28 by tanh, quick GELU 24, squared ReLU 2) and 1 for
            the product; 1 more for a bias and for weights of rows. Backward the derivative's
            (SiLU 26, GELU 35, quick GELU 28) and 4; 1 more for a bias, 2 for weights.
        Bytes: inputs read, output written; backward inputs and the output's gradient read, the
            inputs' gradients written.
        (tensors**): aten::{_name}
    """)(_gated, name=_name, activation=_activation)


def _elementwise(
    x: Tensor, extra: Tensor | None = None, *, activation: tuple[int, int], direction: str
) -> Answer:
    count, given = elements(x.shape), extra is not None
    if direction == "bprop":
        flops = count * (activation[1] + 1 + 2 * given)
        return Cost(flops, moved(x, extra, fresh(x), x, extra)), texts(x, extra)
    return Cost(count * (activation[0] + given), moved(x, extra, fresh(x))), texts(x, extra)


for _name, _activation in _PLAIN.items():
    table_row(f"""
        act(x + bias), or act(x) times weights of rows, elementwise.
        FLOPs: the activation's (GELU 28 by tanh, squared ReLU 2), 1 more for bias or weights;
            backward the derivative's (GELU 35, squared ReLU 2) and 1, 2 more for bias or weights.
        Bytes: inputs read, output written; backward inputs and the output's gradient read, the
            inputs' gradients written.
        (x, extra, ...): aten::{_name}
    """)(_elementwise, activation=_activation)


_TRANSFORMER_ENGINE: Final = {
    "gelu_ts": (_GELU[0], False),
    "relu_ts": (_RELU[0], False),
    "qgelu_ts": (_QUICK_GELU[0], False),
    "srelu_ts": (_SQUARED_RELU[0], False),
    "cast_to_fp8_ts": (_NONE[0], False),
    "cast_to_fp8_noalloc_ts": (_NONE[0], False),
    "geglu_ts": (_GELU[0] + 1, True),
    "reglu_ts": (_RELU[0] + 1, True),
    "swiglu_ts": (_SILU[0] + 1, True),
    "qgeglu_ts": (_QUICK_GELU[0] + 1, True),
    "sreglu_ts": (_SQUARED_RELU[0] + 1, True),
}
# transformer_engine::DType, the number by which a call names the type of its result.
_NAMES: Final = "uint8 int16 int32 int64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2"
_TYPES: Final = dict(enumerate(_NAMES.split()))


def _converted(
    x: Tensor,
    scale: Tensor | None = None,
    amax: Tensor | None = None,
    inverse: Tensor | None = None,
    output: Tensor | None = None,
    written: Any = None,
    *,
    flops: int,
    gated: bool,
) -> Answer:
    dtype = _TYPES.get(written) if type(written) is int else None
    if output is not None:
        dtype = named(output.dtype)
    count = elements(x.shape) // (2 if gated else 1)
    narrow = dtype is None or dtype.startswith("float8") or dtype == "uint8"
    cost = count * (flops + (3 if narrow else 0))
    return Cost(cost, moved(x, Tensor((count,), dtype))), texts(x)


for _name, (_flops, _is_gated) in _TRANSFORMER_ENGINE.items():
    _output = "output, " if "noalloc" in _name else ""
    table_row(f"""
        An activation of x[.., h] or of the halves of x[.., 2 h], written in the requested type.
        FLOPs: the activation's for each output, 3 if written in fp8 (magnitude, comparison,
            scaling).
        Bytes: x read, the output written in its own type; unknown if the capture does not record
            the type.
        (x, scale, {_output}amax, inverse, _, written): tex_ts::{_name}
    """)(_converted, flops=_flops, gated=_is_gated)


@operators("""
    fp8 x times its scale, in the requested type.
    FLOPs: one product for each element.
    Bytes: x read, the output written; unknown if the capture does not record the type.
    (x, inverse, _, _, written): tex_ts::cast_from_fp8_ts
""")
def cast_from_fp8_ts(x: Tensor, inverse: Tensor | None = None, written: Any = None) -> Answer:
    dtype = _TYPES.get(written) if type(written) is int else None
    count = elements(x.shape)
    return Cost(count, add_known(moved(x), byte_count(count, dtype))), texts(x)


table_row("""
    Both gradients of silu(a) * b, and the product again.
    FLOPs: 53 per element: silu and the product 24, its derivative 26, products 3.
    Bytes: a, b and the gradient read, both gradients and the product written.
    (a, b, gradient): xformers::silu_bw_fused
""")("a, b, gradient", Traffic(_SILU[0] + 1 + _SILU[1] + 3, "a b gradient a b gradient", "a b"))

table_row("""
    Pairs of elements of x[.., d] rotated by the angles of their positions.
    FLOPs: 3 for each rotated element (two products, a sum); backward the same.
    Bytes: x, cosines and sines read, x written; backward the same of its gradient.

    The cosines' last dimension determines the number of rotated elements: all if it is d or d / 2.
    (x, cosines, sines, ...): aten::ApplyRotaryEmb aten::Fast_RoPE_Embedding
        aten::FusedRoPECachedFunc
""")("x, cosines, sines", lambda x, cosines, sines: _turned((x,), cosines, sines), both=True)

table_row("""
    Pairs of elements of queries and keys [.., d] rotated by the angles of their positions.
    FLOPs: 3 for each element (two products, a sum); backward the same.
    Bytes: queries, keys, cosines and sines read, queries and keys written; backward the same of
        their gradients.
    (query, key, cosines, sines, ...): aten::LigerRopeFunction aten::LigerQwen2VLMRopeFunction
        aten::Fast_RoPE_Embedding_QK
""")(
    "query, key, cosines, sines",
    lambda query, key, cosines, sines: _turned((query, key), cosines, sines),
    both=True,
)


def _turned(tensors: Tensors, cosines: Tensor, sines: Tensor) -> Answer:
    count = 0
    for tensor in tensors:
        if not tensor.shape or not cosines.shape:
            raise CannotModel(f"{tensor.shape} cannot be rotated by {cosines.shape}")
        size, width = tensor.shape[-1], cosines.shape[-1]
        share = width if width == size else min(2 * width, size)
        count += elements(tensor.shape[:-1]) * share
    moves = add_known(moved(*tensors, cosines, sines), moved(*tensors))
    return Cost(3 * count, moves), texts(*tensors)


@operators("""
    Queries and keys in [b, s, 3, h, d] rotated in place, or keys in [b, s, 2, h, d].
    FLOPs: 3 for each rotated element (two products, a sum); backward the same.
    Bytes: rotated elements read and written, cosines and sines read; values are not touched.
    (packed, cosines, sines, ...): aten::ApplyRotaryEmbQKV_ aten::ApplyRotaryEmbKV_
""")
def packed_rotation(packed: Tensor, cosines: Tensor, sines: Tensor, *, direction: str) -> Answer:
    shape = packed.shape
    if len(shape) != 5 or shape[2] not in (2, 3) or not cosines.shape:
        raise CannotModel(f"shape {shape} is not [b, s, 2 or 3, h, d]")
    part = Tensor((*shape[:2], shape[2] - 1, *shape[3:]), packed.dtype)
    return _turned((part,), cosines, sines)


@operators("""
    Pairs of elements of x[.., h, d] rotated by angles [s, .., r], r of the d elements.
    FLOPs: 3 for each rotated element (two products, a sum), and 40 for each angle (cosine and sine)
        if the call does not pass cosines and sines; backward the same.
    Bytes: x, angles (and the other tensors) read, x written; backward the same of its gradient.
    (x, angles, others**): aten::FusedRoPEFunc
    (x, starts, angles, others**): aten::FusedRoPETHDFunc
    (x, _, _, angles, others**): aten::FusedRoPE2DFunc
    (x, second, angles, others**): aten::LigerLlama4RopeFunction
""")
def fused_ro_pe_func(
    x: Tensor,
    angles: Tensor,
    starts: Tensor | None = None,
    second: Tensor | None = None,
    others: Tensors = (),
    *,
    direction: str,
) -> Answer:
    if not angles.shape or not x.shape:
        raise CannotModel(f"{x.shape} cannot be rotated by {angles.shape}")
    tensors = (x,) if second is None else (x, second)
    width = min(angles.shape[-1], x.shape[-1])
    if others or second is not None:  # tables of cosines and sines, half as wide
        width = x.shape[-1]
    count = sum(elements(tensor.shape[:-1]) * width for tensor in tensors)
    tables = [tensor for tensor in others if tensor.shape]
    functions = 0 if tables or second is not None else 2 * TRIGONOMETRIC * elements(angles.shape)
    moves = moved(*tensors, *tensors, angles, starts, *tables)
    return Cost(3 * count + functions, moves), texts(*tensors)


# For each score: its largest 1, difference 1, exponential 20, sum 1; then the gradient's, from the
# scores again: difference 1, exponential 20, product 1, target subtracted 1.
_SUM: Final = EXPONENTIAL + 3
_GRADIENT: Final = EXPONENTIAL + 3


def _rows(scores: Tensor, targets: Tensor) -> int:
    rows = elements(scores.shape[:-1])
    if not scores.shape or elements(targets.shape) != rows:
        raise CannotModel(f"targets {targets.shape} do not fit {scores.shape}")
    return rows


@operators("""
    log(sum of exp(x)) - x[t] of rows of scores x[.., classes].
    FLOPs: 23 per score (largest 1, difference 1, exponential 20, sum 1); backward the same
        (difference 1, exponential 20, product 1, target 1).
    Bytes: scores and targets read, loss and logarithm (4 bytes each) written; backward these and
        the scores read, their gradient written.
    (scores, targets, ...): aten::SoftmaxCrossEntropyLoss aten::CrossEntropyLoss
        aten::Fast_CrossEntropyLoss
""")
def fused_cross_entropy(scores: Tensor, targets: Tensor, *, direction: str) -> Answer:
    rows = _rows(scores, targets)
    kept = 2 * 4 * rows
    if direction == "bprop":
        moves = add_known(moved(scores, targets, fresh(scores)), kept)
        return Cost(elements(scores.shape) * _GRADIENT, moves), texts(scores, targets)
    moves = add_known(moved(scores, targets), kept)
    return Cost(elements(scores.shape) * _SUM, moves), texts(scores, targets)


@operators("""
    log(sum of exp(x)) - x[t] of rows of scores x[.., classes]; the gradient overwrites the
    scores.
    FLOPs: 46 per score (sum 23, gradient 23); backward 1 (times the loss's gradient).
    Bytes: scores read twice and their gradient written, targets read, 4 bytes per row written;
        backward the gradient read and written.

    Backward is an estimate: torch skips it if the loss's gradient is 1.
    (scores, targets, ...): aten::LigerCrossEntropyFunction aten::CrossEntropyFunction
""")
def liger_cross_entropy_function(scores: Tensor, targets: Tensor, *, direction: str) -> Answer:
    rows = _rows(scores, targets)
    count = elements(scores.shape)
    if direction == "bprop":
        return Cost(count, moved(scores, scores), exact=False), texts(scores, targets)
    moves = add_known(moved(scores, scores, scores, targets), 4 * rows)
    return Cost(count * (_SUM + _GRADIENT), moves), texts(scores, targets)


@operators("""
    Cross entropy of scores x[rows, k] @ w[classes, k]^T, all gradients at once.
    FLOPs: 6 rows classes k, three products, and 46 per score; backward one for each element of the
        gradients (times the loss's gradient).
    Bytes: for each product both operands read and the result written, scores read twice and their
        gradient written; backward the gradients of x and w read and written.

    Scores are computed in chunks of rows; rereading the weight for each chunk is not counted.
    Backward is an estimate: torch skips it if the loss's gradient is 1.
    (x, weight, targets, bias, ...): aten::LigerFusedLinearCrossEntropyFunction
""")
def liger_fused_linear_cross_entropy_function(
    x: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None = None, *, direction: str
) -> Work:
    product = _product(x, weight)
    scores = Tensor((product.m, product.n), x.dtype)
    _rows(scores, targets)
    if direction == "bprop":
        return _scaled(x, weight, bias)
    return _at_once(product, ((product, 3),), [scores], moved(targets, bias))


def _product(x: Tensor, weight: Tensor) -> Product:
    if len(weight.shape) != 2 or not x.shape or x.shape[-1] != weight.shape[1]:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    return Product(elements(x.shape[:-1]), weight.shape[0], weight.shape[1], x, weight)


def _at_once(
    first: Product,
    products: tuple[tuple[Product, int], ...],
    scores: list[Tensor],
    extra: int | None,
) -> Work:
    # The products are done by gemms; the loss and its gradient by other kernels.
    parts = [forward(product) for product, times in products for _ in range(times)]
    gemm = replace(forward(first), cost=Work(tuple(parts)).cost)
    flops = sum(elements(one.shape) for one in scores) * (_SUM + _GRADIENT)
    loss = Cost(flops, add_known(moved(*scores, *scores, *scores), extra))
    return Work((gemm, Part("main", loss, texts(*scores))))


def _scaled(*tensors: Tensor | None) -> Work:
    given = present(*tensors)
    count = sum(elements(tensor.shape) for tensor in given)
    cost = Cost(count, moved(*given, *given), exact=False)
    return Work((Part("main", cost, texts(*given)),))


@operators("""
    Divergence of two distributions [.., classes], elementwise, summed by row.
    FLOPs: 45 per element (an exponential and a logarithm 40, product, difference, sums 5); backward
        1. The total variation has 3: an upper bound.
    Bytes: both read, losses of x's size written; backward the gradient read and written.
    (x, targets, ...): aten::LigerKLDivLossFunction aten::LigerJSDFunction
        aten::LigerTVDLossFunction
""")
def liger_kl_div_loss_function(x: Tensor, targets: Tensor, *, direction: str) -> Answer:
    if x.shape != targets.shape:
        raise CannotModel(f"targets {targets.shape} do not fit {x.shape}")
    count = elements(x.shape)
    if direction == "bprop":
        return Cost(count, moved(x, x), exact=False), texts(x, targets)
    flops = count * (EXPONENTIAL + LOGARITHM + 5)
    return Cost(flops, moved(x, targets, fresh(x)), exact=False), texts(x, targets)


@operators("""
    Divergence of the scores of a model x @ w^T and of a teacher's, all gradients at once.
    FLOPs: 6 rows classes k for the model, three products, 2 rows classes k' for the teacher, and 46
        for each score; backward one for each element of the gradients.
    Bytes: for each product both operands read and the result written, both scores read twice and
        written; backward the gradients of x and w read and written.
    (x, weight, teacher, teacher_weight, ...): aten::LigerFusedLinearJSDFunction
""")
def liger_fused_linear_jsd_function(
    x: Tensor, weight: Tensor, teacher: Tensor, teacher_weight: Tensor, *, direction: str
) -> Work:
    product, given = _product(x, weight), _product(teacher, teacher_weight)
    if (product.m, product.n) != (given.m, given.n):
        raise CannotModel(f"scores of {x.shape} and {teacher.shape} differ in size")
    if direction == "bprop":
        return _scaled(x, weight)
    scores = [Tensor((each.m, each.n), each.left.dtype) for each in (product, given)]
    return _at_once(product, ((product, 3), (given, 1)), scores, 0)
