"""FLOPs and bytes of linear layers, and the gradients of products as separate operators."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Part, Work
from fastprof.ops.matrix.matmul import matmul
from fastprof.ops.matrix.matrices import inner_size
from fastprof.ops.matrix.product import Product, bias_added, bias_gradient, forward, gradients
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements


@operators("linear")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, direction: str) -> Work:
    """x[.., k] @ w[n, k]^T (+ bias[n]): all leading dimensions of x are rows of one product.

    FLOPs: 2 rows n k, bias not counted (rows n if a separate kernel adds it); backward twice that,
    and rows n for the bias.
    Bytes: x and w read, the output written; backward for each gradient the same three.

    Under autocast, a Python call records the types before the cast.
    """
    product = _product(x, weight, bias)
    if direction == "fprop":
        return Work((forward(product), *(() if bias is None else (bias_added(product),))))
    summed = () if bias is None else (bias_gradient(product, bias),)
    return Work((*gradients(product, weight_by_rows=True), *summed))


@operators("(x, gradient, weight, mask): aten::linear_backward aten::mkldnn_linear_backward")
def linear_gradients(
    x: Tensor, gradient: Tensor, weight: Tensor, mask: tuple[bool, ...] | Unknown
) -> Work:
    """Gradients of linear as one operator: dy[.., n] @ w[n, k] and dy^T @ x[.., k].

    FLOPs: 2 rows n k for each gradient selected by the mask, rows n for the bias's.
    Bytes: for each gradient the output's gradient, x (or the gradient of it) and w.
    """
    product = _product(x, weight)
    if gradient.shape[:-1] != x.shape[:-1] or gradient.shape[-1:] != weight.shape[:-1]:
        raise CannotModel(f"{gradient.shape} is not a gradient of {x.shape} by {weight.shape}")
    of_x, of_weight = gradients(product, weight_by_rows=True)
    of_bias = bias_gradient(product, Tensor((product.n,)))
    return Work(_asked((of_x, of_weight, of_bias), mask))


@operators("(_gradient, left, right, mask): aten::matmul_backward")
def matmul_gradients(
    _gradient: Tensor, left: Tensor, right: Tensor, mask: tuple[bool, ...] | Unknown
) -> Work:
    """Gradients of matmul as one operator: dC @ B^T and A^T @ dC.

    FLOPs: those of matmul for each gradient selected by the mask.
    Bytes: for each gradient A, B and the output's gradient, read or written.
    """
    return Work(_asked(matmul(left, right, direction="bprop").parts, mask))


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Product:
    # A weight w[k] has one output feature.
    if len(weight.shape) not in (1, 2):
        raise CannotModel(f"weight has shape {weight.shape}, not 1-d or 2-d")
    rows, columns = elements(x.shape[:-1]), elements(weight.shape[:-1])
    if bias is not None and elements(bias.shape) != columns:
        raise CannotModel(f"bias {bias.shape} does not fit weight {weight.shape}")
    return Product(rows, columns, inner_size(x.shape, -1, weight.shape, -1), x, weight)


def _asked(parts: tuple[Part, ...], mask: tuple[bool, ...] | Unknown) -> tuple[Part, ...]:
    # The parts selected by an output mask; all if it is not recorded.
    if isinstance(mask, Unknown):
        return parts
    return tuple(part for part, wanted in zip(parts, mask, strict=False) if wanted)
