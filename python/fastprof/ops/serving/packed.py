"""Products with weights packed to 4 or 8 bits (GPTQ, AWQ, Marlin, Machete, GGML), and repacking."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, Work
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.dtypes import Dtype
from fastprof.ops.matrix.product import forward
from fastprof.ops.registry import operators
from fastprof.ops.serving.sizes import with_columns
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import moved, present, texts

Size = int | Unknown


@operators("""
    (x, weight, zeros, scales, order, ...): _C::gptq_gemm sgl_kernel::gptq_gemm
        _rocm_C::gptq_gemm_rdna3 _rocm_C::gptq_gemm_rdna3_wmma
    (x, weight, scales, zeros, _): _C::awq_gemm
    (x, weight, scales, zeros, columns, ...): _C::allspark_w8a16_gemm
    (x, weight, _, out_dtype, scales, zeros, _, more, order, _): _C::machete_mm
    (x, weight, more, _, scales, order, out_dtype, _): _C::cutlass_w4a8_mm
    (weight, x, _, columns): _C::ggml_mul_mat_a8 _C::ggml_mul_mat_vec_a8
    (x, weight, more, order, zeros, sums, out): sgl_kernel::qserve_w4a8_per_chn_gemm
    (x, weight, zeros, sums, more, order, out): sgl_kernel::qserve_w4a8_per_group_gemm
""")
def packed_product(
    x: Tensor,
    weight: Tensor,
    scales: Tensor | None = None,
    zeros: Tensor | None = None,
    order: Tensor | None = None,
    columns: Size | None = None,
    out: Tensor | None = None,
    out_dtype: Dtype = None,
    more: Tensor | None = None,
    sums: Tensor | None = None,
) -> Work:
    """x[.., k] times a packed weight of n columns; n follows from the output or the scales.

    FLOPs: 2 rows n k; dequantising the weight is not counted.
    Bytes: x, the packed weight, scales, zeros and orders read, the output written in the requested
    type or x's (float16 for int8 and float8).

    Signatures: vLLM csrc/torch_bindings.cpp and csrc/rocm/torch_bindings.cpp, SGLang
    sgl-kernel/csrc/common_extension.cc.
    """
    written = asked_type(out_dtype)
    if written is None and _short(x):
        written = "float16"
    of_columns = scales
    if scales is None and more is not None:
        of_columns = Tensor((elements(more.shape),), more.dtype)
    product = with_columns(x, weight, _columns(columns, out, of_columns), out, written)
    return Work((forward(product, *present(scales, zeros, order, more, sums)),))


@operators("""
    (x, out, weight, bias, scales, more, global_scale, zeros, order, permutation, _workspace, _,
        rows, columns, inner, ...): _C::marlin_gemm _C::gptq_marlin_gemm
    (x, out, weight, bias, scales, global_scale, zeros, order, permutation, _workspace, _, rows,
        columns, inner, ...): _C::gptq_marlin_gemm
    (x, out, weight, scales, global_scale, zeros, order, permutation, _workspace, _, rows,
        columns, inner, ...): _C::gptq_marlin_gemm sgl_kernel::gptq_marlin_gemm
    (x, weight, scales, zeros, order, permutation, _workspace, _, rows, columns, inner, ...):
        _C::gptq_marlin_gemm
    (x, weight, more, scales, _workspace, _, rows, columns, inner): _C::gptq_marlin_24_gemm
    (x, weight, scales, _workspace, _, rows, columns, inner): _C::fp8_marlin_gemm
    (x, weight, more, zeros, scales, _workspace, rows, columns, inner): _C::marlin_qqq_gemm
""")
def sized_product(
    x: Tensor,
    weight: Tensor,
    scales: Tensor,
    rows: Size,
    columns: Size,
    inner: Size,
    out: Tensor | None = None,
    bias: Tensor | None = None,
    more: Tensor | None = None,
    global_scale: Tensor | None = None,
    zeros: Tensor | None = None,
    order: Tensor | None = None,
    permutation: Tensor | None = None,
    _workspace: Tensor | None = None,
) -> Work:
    """x[m, k] times a weight in Marlin's tiles, with m, n and k as arguments.

    FLOPs: 2 m n k; dequantising the weight is not counted.
    Bytes: x, the packed weight, scales, zeros, orders and bias read, the output written in x's type
    (float16 for int8 and float8).

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc. If n is
    not recorded, it follows from the scales.
    """
    del rows
    if isinstance(inner, int) and x.shape[-1:] != (inner,):
        raise CannotModel(f"{x.shape} is not {inner} wide")
    written = "float16" if _short(x) else None
    product = with_columns(x, weight, _columns(columns, out, scales), out, written)
    addends = present(bias, scales, more, global_scale, zeros, order, permutation)
    return Work((forward(product, *addends),))


@operators("""
    (weight, order, _): _C::gptq_shuffle sgl_kernel::gptq_shuffle
    (weight, order, ...): _C::gptq_marlin_repack sgl_kernel::gptq_marlin_repack
    (weight, ...): _C::awq_marlin_repack _C::machete_prepack_B sgl_kernel::awq_marlin_repack
    (weight, order): _C::permute_cols
    (weight): _C::cutlass_encode_and_reorder_int4b
""")
def repacked(weight: Tensor, order: Tensor | None = None) -> tuple[Cost, str]:
    """A packed weight in another order.

    FLOPs: 0.
    Bytes: the weight and the order read, the size of the weight written.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc.
    """
    return Cost(0, moved(weight, order, weight)), texts(weight)


def _short(x: Tensor) -> bool:
    # int8 and float8 are never output types.
    name = x.dtype or ""
    return "8" in name or name.endswith("char")


def _columns(columns: Size | None, out: Tensor | None, scales: Tensor | None) -> int:
    if isinstance(columns, int):
        return columns
    for tensor in (out, scales):
        if tensor is not None and tensor.shape:
            return tensor.shape[-1]
    raise CannotModel("the number of columns is not in the capture")
