"""Linear layers and fused norms of training packages, and rows permuted by expert.

The order of an autograd function's tensors depends on the release, so they are identified by shape:
weights are matrices [out, in], the input's last size is `in`. Norms and softmax may have a
residual, a gate or a mask.

Sources: transformer_engine/pytorch/permutation.py, softmax.py, csrc/ts_fp8_op.cpp and module
(linear.py, layernorm_linear.py, layernorm_mlp.py, grouped_linear.py) in NVIDIA/TransformerEngine;
apex/fused_dense/fused_dense.py, apex/mlp/mlp.py, apex/transformer/functional/fused_softmax.py,
apex/normalization/fused_layer_norm.py and apex/contrib/layer_norm in NVIDIA/apex;
flash_attn/ops/fused_dense.py and ops/triton/layer_norm.py in Dao-AILab/flash-attention;
megatron/core/tensor_parallel/layers.py, fusions/fused_indices_converter.py and
fusions/fused_softmax.py in NVIDIA/Megatron-LM; src/liger_kernel/ops in linkedin/Liger-Kernel;
mamba_ssm/ops/triton/layer_norm.py and layernorm_gated.py in state-spaces/mamba; unsloth/kernels in
unslothai/unsloth; xformers/ops/swiglu_op.py in facebookresearch/xformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import TRIGONOMETRIC
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.losses.cross_entropy import BACKWARD, SOFTMAX
from fastprof.ops.matrix.matmul import Product, forward, linear
from fastprof.ops.normalisation.layer_norm import group_norm, layer_norm, rms_norm
from fastprof.ops.parameters import Flag, Int, Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import byte_count, elements, fresh, moved, texts

table_row("""
    x[.., k] @ w[n, k]^T (+ bias[n]).
    FLOPs: as linear: 2 rows n k; backward twice that.
    Bytes: as linear: x and w read, the output written; backward for each gradient the same three.
    (tensors**): aten::FusedDenseFunc aten::DenseNoBiasFunc aten::LinearWithFrozenWeight
""")("tensors*", lambda tensors, direction: _linear(tensors, direction))


@operators("""
    x[.., k] @ w[n, k]^T (+ bias[n]) of a layer that may be a shard of a parallel layer.
    FLOPs: as linear: 2 rows n k; backward twice that.
    Bytes: as linear: x and w read, the output written; backward for each gradient the same three.

    Releases write the weight first, or twice (once in fp8). An estimate if the capture does not
    record it the output: under sequence parallelism the input is this rank's share of the rows.
    (tensors**): aten::_Linear
""")
def aten_linear(tensors: Tensors, *, result: Tensor | Unknown = UNKNOWN, direction: str) -> Work:
    return _linear(tensors, direction, result).estimated(isinstance(result, Tensor))


@operators("""
    Backward of x[.., k] @ w[n, k]^T, with the weight's gradient accumulated.
    FLOPs: 4 rows n k: both gradients.
    Bytes: for each gradient x, w and the output's gradient.

    Forward, a torch product runs inside, which is counted itself. An estimate: under sequence
    parallelism the input is this rank's share of the rows.
    (tensors**): aten::LinearWithGradAccumulationAndAsyncCommunication
""")
def linear_with_accumulation(tensors: Tensors, *, direction: str) -> Work:
    if direction == "fprop":
        raise CannotModel("forward is counted by the operators inside")
    return _linear(tensors, direction).estimated()


def _linear(tensors: Tensors, direction: str, result: Tensor | Unknown = UNKNOWN) -> Work:
    matrices = [tensor for tensor in tensors if len(tensor.shape) >= 2]
    if len(matrices) < 2:
        raise CannotModel("an input and a weight are not both in the capture")
    first, last = matrices[0], matrices[-1]
    bias = next((tensor for tensor in tensors if len(tensor.shape) == 1), None)
    x, weight = _input_and_weight(first, last, bias)
    if bias is not None and bias.shape[0] != weight.shape[0]:
        bias = None
    if isinstance(result, Tensor) and result.shape[-1:] == weight.shape[:1]:
        x = Tensor((*result.shape[:-1], x.shape[-1]), x.dtype)
    return linear(x, weight, bias, direction=direction)


def _input_and_weight(first: Tensor, last: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    if first.shape[-1] != last.shape[-1]:
        raise CannotModel(f"cannot multiply {first.shape} and {last.shape}")
    if len(last.shape) > 2:
        return last, first
    if len(first.shape) > 2:
        return first, last
    # Two matrices: the bias identifies the weight; without a bias, the weight comes first.
    if bias is not None and last.shape[0] == bias.shape[0] != first.shape[0]:
        return first, last
    return last, first


def _layers(tensors: Tensors, most: int | None = None) -> list[Product]:
    """The products of an input with consecutive weights, identified by shape.

    The input is the tensor with the most dimensions, else the first. A weight [n, k] follows if the
    preceding number of features is k, or 2 k with a gated activation.
    """
    matrices = [tensor for tensor in tensors if len(tensor.shape) >= 2]
    if len(matrices) < 2:
        raise CannotModel("an input and weights are not both in the capture")
    x = max(matrices, key=lambda matrix: len(matrix.shape))
    rest = [matrix for matrix in matrices if matrix is not x]
    rows, features = elements(x.shape[:-1]), x.shape[-1]
    layers: list[Product] = []
    for weight in rest:
        if len(weight.shape) != 2 or (most is not None and len(layers) == most):
            continue
        if layers and weight.shape == layers[-1].right.shape:
            continue  # the same weight in fp8
        if weight.shape[1] not in {features, features // 2 if layers else features}:
            continue
        left = x if not layers else Tensor((rows, weight.shape[1]), x.dtype)
        layers.append(Product(rows, weight.shape[0], weight.shape[1], left, weight))
        features = weight.shape[0]
    if not layers:
        raise CannotModel(f"no weight fits an input of {x.shape}")
    return layers


def _products(products: Sequence[Product], direction: str, extra: Cost | None = None) -> Work:
    # Gemms do all products; other kernels do the rest (norms, activations).
    times = 1 if direction == "fprop" else 2
    flops = sum(product.flops for product in products) * times
    each = [forward(product).cost.bytes for product in products]
    gemm = replace(forward(products[0]), cost=Cost(flops, add_known(*each * times)))
    if extra is None:
        return Work((gemm,))
    return Work((gemm, Part("main", extra, gemm.params)))


@operators("""
    norm(x)[.., k] @ w[n, k]^T (+ bias[n]), the norm with a weight [k].
    FLOPs: 2 rows n k, and 8 per element of x (a layer norm; an RMS norm has 4); backward 4 rows n
        k, and 13.
    Bytes: for the product as linear; for the norm x read and written; backward its gradient and x
        read, its gradient written.

    An estimate: the kind of norm is a string, which is not recorded, and under sequence parallelism
    the input is this rank's share of the rows.
    (tensors**): aten::_LayerNormLinear
    (x, other, other, tensors**): aten::LayerNormLinearFn
""")
def layer_norm_linear(tensors: Tensors, x: Tensor | None = None, *, direction: str) -> Work:
    given = tensors if x is None else (x, *tensors)
    product = _layers(given, 1)
    extra = _norm(product[0].left, direction)
    return _products(product, direction, extra).estimated()


def _norm(x: Tensor, direction: str) -> Cost:
    return _passes(x, (8, 13), direction)


def _passes(x: Tensor, flops: tuple[int, int], direction: str) -> Cost:
    # x read and a result written; backward also the gradient. FLOPs per element of both passes.
    back = direction == "bprop"
    tensors = (x, x, fresh(x)) if back else (x, fresh(x))
    return Cost(elements(x.shape) * flops[back], moved(*tensors), exact=False)


@operators("""
    norm(x) @ w1^T, an activation, @ w2^T: w1 [f, k] or [2 f, k] if gated, w2 [k, f].
    FLOPs: 2 rows (n1 k + k f), and for the norm and the activation 8 per element of x and 24 for
        one of the first product; backward twice the products, 13 and 28.
    Bytes: for the products operands read, results written; for norm and activation their inputs
        read and written.

    An estimate: the kinds of norm and activation are strings, which are not recorded, and under
    sequence parallelism the input is this rank's share of the rows.
    (tensors**): aten::_LayerNormMLP
""")
def layer_norm_mlp(tensors: Tensors, *, direction: str) -> Work:
    layers = _layers(tensors, 2)
    extra = _norm(layers[0].left, direction)
    if len(layers) > 1:
        extra += _activation(layers[0], direction)
    return _products(layers, direction, extra).estimated()


def _activation(product: Product, direction: str) -> Cost:
    inner = Tensor((product.output_elements,), product.output_type)
    return _passes(inner, (24, 28), direction)


@operators("""
    x @ w1^T, an activation, @ w2^T, ...: consecutive weights [n, k].
    FLOPs: 2 rows n k for each weight; backward twice that. Fused activations are not counted.
    Bytes: for each product operands read, the result written; backward for each gradient the same
        three.
    (tensors**): aten::FusedDenseGeluDenseFunc aten::FusedMLPFunc aten::MlpFunction
""")
def chain(tensors: Tensors, *, direction: str) -> Work:
    x = tensors[0] if tensors else None
    if x is not None and len(x.shape) < 2:
        raise CannotModel(f"the input has shape {x.shape}")
    return _products(_layers(tensors), direction)


@operators("""
    (silu(x @ w1^T) * (x @ w2^T)) @ w3^T, or without the last product; biases may be passed in
    between.
    FLOPs: 2 rows f k for each of three (two) products; backward twice that. Fused activations are
        not counted.
    Bytes: for each product operands read, the result written; backward for each gradient the same
        three.
    (tensors**): aten::_SwiGLUFusedFunc aten::_SwiGLUDecomposedFunc
        xformers::dual_gemm_silu_identity_mul
""")
def swi_glu_fused_func(tensors: Tensors, *, direction: str) -> Work:
    matrices = [tensor for tensor in tensors if len(tensor.shape) >= 2]
    if len(matrices) not in (3, 4):
        raise CannotModel("an input and two or three weights are not in the capture")
    x, first, *_ = matrices
    rows = elements(x.shape[:-1])
    results = []
    for i, weight in enumerate(matrices[1:]):
        left = x if i < 2 else Tensor((rows, first.shape[0]), x.dtype)
        if len(weight.shape) != 2 or left.shape[-1] != weight.shape[1]:
            raise CannotModel(f"cannot multiply {left.shape} and {weight.shape}")
        results.append(Product(rows, weight.shape[0], weight.shape[1], left, weight))
    return _products(results, direction)


@operators("""
    A[m, k] @ B[k, n], and the sums of B's (or A's) rows.
    FLOPs: 2 m n k.
    Bytes: both read, the product written.
    (left, right, ...): xformers::gemm_fused_operand_sum
""")
def gemm_fused_operand_sum(left: Tensor, right: Tensor) -> Work:
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[0]:
        raise CannotModel(f"cannot multiply {left.shape} and {right.shape}")
    product = Product(left.shape[0], right.shape[1], left.shape[1], left, right)
    return _products([product], "fprop")


@operators("""
    op(B) @ op(A), row-major matrices computed by cuBLAS as column-major ones; either may be
    transposed.
    FLOPs: 2 m n k.
    Bytes: both read, the product written.
    (left, other, _, _, left_turned, right, other, _, _, right_turned, output, others**):
        tex_ts::te_gemm_ts
    (left, other, _, left_turned, right, other, _, right_turned, output, others**):
        tex_ts::te_gemm_ts
""")
def te_gemm_ts(
    left: Tensor,
    right: Tensor,
    output: Tensor,
    left_turned: Any = None,
    right_turned: Any = None,
    others: Tensors = (),
) -> Work:
    if not (left.shape and right.shape and output.shape):
        raise CannotModel("an operand is not in the capture")
    m, n = elements(output.shape[:-1]), output.shape[-1]
    # The operands have m k and n k elements in any orientation.
    inner = {elements(right.shape) // m if m else 0, elements(left.shape) // n if n else 0}
    if len(inner) != 1 or elements(right.shape) != m * min(inner):
        raise CannotModel(f"cannot multiply {left.shape} and {right.shape} to {output.shape}")
    product = Product(m, n, min(inner), right, left, written=output.dtype)
    return _products([product], "fprop")


@operators("""
    x[rows, k] split among experts, each part times its weight [n, k] (+ bias).
    FLOPs: 2 rows n k; backward twice that: every row is multiplied by one weight, for any split.
    Bytes: x and all weights read, the output written; backward for each gradient the same three.

    Weights may also be one tensor [experts, n, k].
    (tensors**): aten::_GroupedLinear
""")
def grouped_linear(tensors: Tensors, *, direction: str) -> Work:
    if not tensors or len(tensors[0].shape) < 2:
        raise CannotModel("the input is not in the capture")
    x = tensors[0]
    weights = [tensor for tensor in tensors[1:] if len(tensor.shape) in (2, 3)]
    weights = [tensor for tensor in weights if tensor.shape[-1] == x.shape[-1]]
    if not weights:
        raise CannotModel(f"no weight fits an input of {x.shape}")
    return _experts(x, weights, weights[0].shape[-2], direction)


@operators("""
    x[rows, k] split among experts, each part times its weight of [experts, k, n].
    FLOPs: 2 rows n k; backward twice that: every row is multiplied by one weight, for any split.
    Bytes: x and all weights read, the output written; backward for each gradient the same three.
    (x, weights, other, turned, ...): aten::GroupedGemm
""")
def grouped_gemm(x: Tensor, weights: Tensor, turned: Flag | None = None, *, direction: str) -> Work:
    if len(weights.shape) != 3 or len(x.shape) != 2 or x.shape[1] not in weights.shape[1:]:
        raise CannotModel(f"cannot multiply {x.shape} and experts {weights.shape}")
    n = elements(weights.shape[1:]) // max(x.shape[1], 1)
    return _experts(x, [weights], n, direction)


def _experts(x: Tensor, weights: Sequence[Tensor], n: int, direction: str) -> Work:
    count = sum(elements(tensor.shape) for tensor in weights)
    product = Product(elements(x.shape[:-1]), n, x.shape[-1], x, Tensor((count,), weights[0].dtype))
    return _products([product], direction)


@operators("""
    Rows of x[tokens, d] copied to each of their experts, in the experts' order.
    FLOPs: 0; backward one addition for each element copied.
    Bytes: routes and each copied row read and written; backward the copies' gradients read, that of
        x written.

    The number of output rows is an argument. If it is not recorded, it follows from routes by index
    [tokens, top k]; it is unknown for a mask [tokens, experts].
    (x, routes, rows, ...): aten::_moe_permute_index_map
    (x, routes, rows, weights, ...): aten::_moe_permute_mask_map
""")
def moe_permute_index_map(
    x: Tensor, routes: Tensor, rows: Size = None, weights: Tensor | None = None, *, direction: str
) -> Answer:
    count = rows if isinstance(rows, int) and rows > 0 else None
    if count is None and routes.dtype not in ("bool", "uint8"):
        count = elements(routes.shape)
    if len(x.shape) != 2:
        raise CannotModel(f"rows have shape {x.shape}, not 2-d")
    copies = None if count is None else byte_count(count * x.shape[1], x.dtype)
    if direction == "bprop":
        flops = None if count is None else count * x.shape[1]
        return Cost(flops, add_known(moved(routes, x), copies)), texts(x, routes)
    return Cost(0, add_known(moved(routes), copies, copies)), texts(x, routes)


@operators("""
    Rows x[copies, d] of the experts summed by token, with weights [tokens, top k].
    FLOPs: 2 per element with weights, else 1; backward the same.
    Bytes: rows, map and weights read, a row per token written; backward the tokens' gradient read,
        the rows' written, the rows read for the gradient of the weights.

    If no weights determine the number of tokens, the number of rows written is assumed to equal
    that read: an estimate.
    (x, other, weights): aten::_moe_unpermute_index_map
    (x, other, weights, ...): aten::_moe_unpermute_mask_map
""")
def moe_unpermute_index_map(
    x: Tensor, other: Tensor | None = None, weights: Tensor | None = None, *, direction: str
) -> Answer:
    if len(x.shape) != 2:
        raise CannotModel(f"rows have shape {x.shape}, not 2-d")
    tokens = weights.shape[0] if weights is not None and weights.shape else None
    result = byte_count((x.shape[0] if tokens is None else tokens) * x.shape[1], x.dtype)
    flops = elements(x.shape) * (1 if weights is None else 2)
    tensors = (x,) if direction == "fprop" or weights is None else (x, x)
    moves = add_known(moved(*tensors, other, weights), result)
    return Cost(flops, moves, exact=tokens is not None), texts(x, weights)


table_row("""
    Chunks of rows x[rows, d] in another order.
    FLOPs: 0.
    Bytes: rows, sizes and order of the chunks read, the rows written; backward the same of their
        gradient.
    (x, other, third, ...): aten::_moe_chunk_sort
""")("x, other?, third?", Traffic(0, "x x other third"), both=True)


table_row("""
    (x - mean) / sqrt(var + eps) * weight[d] + bias[d] of rows x[.., d].
    FLOPs: as layer_norm: 8 per element; backward 13.
    Bytes: as layer_norm: x read once, y written; backward dy and x read, dx written.
    (x, weight, bias, ...): aten::FusedLayerNormAffineFunction
        aten::FusedLayerNormAffineMixedDtypesFunction aten::FastLayerNormFN
        aten::LigerLayerNormFunction aten::Fast_Layernorm aten::_LayerNorm
        tex_ts::layernorm_fwd_fp8_inf_ts tex_ts::layernorm_fwd_inf_ts
""")(
    "x, weight, bias?",
    lambda x, weight, bias, direction: layer_norm(x, None, weight, bias, direction=direction),
)


@operators("""
    x / sqrt(mean(x^2) + eps) * weight[d] of rows x[.., d].
    FLOPs: as rms_norm: 4 per element; backward 9.
    Bytes: as rms_norm: x read once, y written; backward dy and x read, dx written.
    (x, weight, ...): aten::FusedRMSNormAffineFunction
        aten::FusedRMSNormAffineMixedDtypesFunction aten::LigerRMSNormFunction
        aten::Fast_RMS_Layernorm aten::_RMSNorm tex_ts::rmsnorm_fwd_fp8_inf_ts
        tex_ts::rmsnorm_fwd_inf_ts
""")
def root(x: Tensor, weight: Tensor | None = None, *, direction: str) -> Answer:
    if weight is None:
        return _plain(x, rms_norm, direction)
    return rms_norm(x, None, weight, direction=direction)


table_row("""
    Rows normalised without a weight. A row is assumed to be the last dimension.
    FLOPs: as layer_norm: 6 per element; backward 9. An RMS norm has 3 and 6: an estimate.
    Bytes: as layer_norm.
    (x, ...): aten::FusedLayerNormFunction aten::FusedRMSNormFunction
""")("x", lambda x, direction: _plain(x, layer_norm, direction))


def _plain(x: Tensor, norm: Any, direction: str) -> Answer:
    # The normalized shape is a torch.Size, which captures of autograd functions do not record.
    if not x.shape:
        raise CannotModel("a tensor without dimensions has no rows")
    cost, params = norm(x, x.shape[-1:], direction=direction)
    return Cost(cost.flops, cost.bytes, exact=False), params


@operators("""
    x[n, c, ..] normalised for each n and group of channels, * weight[c] + bias[c].
    FLOPs: as group_norm: 8 per element; backward 13.
    Bytes: as group_norm: x read twice, y written; backward dy and x read twice, dx written.
    (x, weight, bias, _, groups, ...): aten::LigerGroupNormFunction
""")
def liger_group_norm_function(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    groups: Int = Unknown.UNKNOWN,
    *,
    direction: str,
) -> Answer:
    return group_norm(x, groups, weight, bias, direction=direction)


@operators("""
    norm(x + residual) * weight (+ bias), or norm(x) gated by a tensor; rows of x.
    FLOPs: those of an RMS norm without a bias, of a layer norm with one; 1 more per element with a
        residual, forward and backward.
    Bytes: those of the norm; with a residual it read and the sum written, backward its gradient
        read and written.

    An estimate with a third tensor: it may be a gate (24 FLOPs per element), which has the same
    shape.
    (x, weight, bias, third, others**): aten::LayerNormFn
    (x, third, weight, others**): aten::LigerFusedAddRMSNormFunction
    (x, third, weight, bias, others**): aten::DropoutAddLayerNormFn
""")
def layer_norm_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    third: Tensor | None = None,
    others: Tensors = (),
    *,
    direction: str,
) -> Answer:
    if bias is None:
        cost, params = rms_norm(x, None, weight, direction=direction)
    else:
        cost, params = layer_norm(x, None, weight, bias, direction=direction)
    if third is None:
        return cost, params
    if elements(third.shape) != elements(x.shape):
        raise CannotModel(f"a residual of {third.shape} does not fit {x.shape}")
    flops = None if cost.flops is None else cost.flops + elements(x.shape)
    moves = add_known(cost.bytes, moved(third, fresh(third)))
    return Cost(flops, moves, exact=False), params


@operators("""
    tanh(alpha * x) * gamma[d] + beta[d].
    FLOPs: 23 per element (product 1, tanh 20, weight 1, bias 1); backward 30 (tanh again 21, its
        derivative 2, times dy and weight 2, of alpha 2, of the weight 2, of the bias 1).
    Bytes: x, weight and bias read, y written; backward dy, x and weight read, dx and the gradients
        of weight and bias written.
    (x, alpha, gamma, beta): aten::LigerDyTFunction
""")
def liger_dy_t_function(
    x: Tensor, alpha: Tensor, gamma: Tensor, beta: Tensor | None = None, *, direction: str
) -> Answer:
    vectors = moved(alpha, gamma, beta)
    if direction == "bprop":
        flops = elements(x.shape) * (TRIGONOMETRIC + 10)
        return Cost(flops, add_known(moved(x, x, x), vectors, vectors)), texts(x, gamma)
    flops = elements(x.shape) * (TRIGONOMETRIC + 2 + (beta is not None))
    return Cost(flops, add_known(moved(x, x), vectors)), texts(x, gamma)


@operators("""
    w0 norm(x^3) + w1 norm(x^2) + w2 norm(x) + b of rows x[.., d], norms by the root mean square.
    FLOPs: 17 per element (powers 2, three norms 9, weights and sums 6); backward 35.
    Bytes: x read, y and three statistics per row written; backward dy, x and statistics read, dx
        written.
    (x, weight, bias, ...): aten::LigerPolyNormFunction
""")
def liger_poly_norm_function(x: Tensor, weight: Tensor, bias: Tensor, *, direction: str) -> Answer:
    rows = elements(x.shape[:-1])
    statistics = moved(Tensor((3 * rows,), "float32"))
    tensors = (x, x) if direction == "fprop" else (x, x, x)
    flops = elements(x.shape) * (17 if direction == "fprop" else 35)
    return Cost(flops, add_known(moved(*tensors, weight, bias), statistics)), texts(x)


table_row("""
    softmax(scale * x) of scores x[.., s, t] at or below the diagonal, 0 above.
    FLOPs: 25 per element (softmax 24, scaling 1); backward 5. Masked elements count too.
    Bytes: x read, y written; backward dy and y read, dx written.
    (x, ...): aten::ScaledUpperTriangMaskedSoftmax aten::ScaledAlignedCausalMaskedSoftmax
""")("x", lambda x, direction: _softmax(x, None, 1, direction))

table_row("""
    softmax(scale * x) of scores x[b, h, s, t] with a mask [b, 1, s, t].
    FLOPs: 26 per element (softmax 24, scaling 1, mask 1); backward 5.
    Bytes: x and mask read, y written; backward dy and y read, dx written.
    (x, mask, ...): aten::ScaledMaskedSoftmax aten::GenericScaledMaskedSoftmax
""")("x, mask?", lambda x, mask, direction: _softmax(x, mask, 1, direction))

table_row("""
    softmax(scale * x) of scores x[.., s, t].
    FLOPs: 25 per element (softmax 24, scaling 1); backward 5.
    Bytes: x read, y written; backward dy and y read, dx written.
    (x, ...): aten::ScaledSoftmax
""")("x", lambda x, direction: _softmax(x, None, 1, direction))

table_row("""
    softmax(x) of rows x[.., n].
    FLOPs: 24 per element; backward 4.
    Bytes: x read, y written; backward dy and y read, dx written.
    (x, ...): aten::LigerSoftmaxFunction
""")("x", lambda x, direction: _softmax(x, None, 0, direction))


def _softmax(x: Tensor, mask: Tensor | None, scaling: int, direction: str) -> Answer:
    count = elements(x.shape)
    if direction == "bprop":
        return Cost(count * (BACKWARD + scaling), moved(x, x, x)), texts(x, mask)
    flops = count * (SOFTMAX + scaling + (mask is not None))
    return Cost(flops, add_known(moved(x, x), moved(mask))), texts(x, mask)
