"""Several matrix products in one call: chains and bilinear forms."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.matrix.product import GEMM, Product, bias_gradient
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, result_type, tensor_bytes, tensor_text
from fastprof.ops.tensor_cores import why_not

_LONGEST_CHAIN: Final = 64  # the search for the order is cubic


def chain_products(
    flops: int, tensors: Tensors, output: Tensor, sizes: dict[str, int], direction: str
) -> Work:
    """Several matrix products as one part, whose kernels cannot be distinguished.

    Parameters
    ----------
    flops : int
        FLOPs of the forward pass; the backward pass has two products for each.
    tensors : tuple of Tensor
        Operands: read; backward, read and their gradients written.
    output : Tensor
        Written; backward, its gradient read.
    sizes : dict of str to int
        Aligned sizes, for the reason why tensor cores were not used; empty if they do not apply.
    direction : str
        "fprop" or "bprop".
    """
    operands = [tensor_bytes(tensor) for tensor in tensors]
    moved = add_known(*operands, tensor_bytes(output))
    if direction == "bprop":
        flops, moved = 2 * flops, add_known(moved, *operands)
    text = ";".join(map(tensor_text, tensors))
    reason = why_not(output.dtype, sizes) if sizes else ""
    return Work((Part("main", Cost(flops, moved), text, kernels=GEMM, no_tensor_cores=reason),))


@operators("""
    aten::chain_matmul aten::linalg_multi_dot
    (matrices*): torch.multi_dot torch.chain_matmul
""")
def multi_dot(matrices: Tensors, *, direction: str) -> Work:
    """A[m, k] @ B[k, l] @ C[l, n] ..: the order with the fewest multiplications, as torch does it.

    FLOPs: 2 m k l of each product in that order; backward two products for each.
    Bytes: all matrices read, the output written, intermediates not counted; backward all read again
    and their gradients written.

    The first matrix may be a row, the last a column: vectors. The order: Cormen et al.,
    Introduction to Algorithms, 15.2.
    """
    if not 2 <= len(matrices) <= _LONGEST_CHAIN:
        raise CannotModel(f"{len(matrices)} matrices do not form a chain")
    shapes = [tensor.shape for tensor in matrices]
    if len(shapes[0]) == 1:
        shapes[0] = (1, *shapes[0])
    if len(shapes[-1]) == 1:
        shapes[-1] = (*shapes[-1], 1)
    if any(len(shape) != 2 for shape in shapes):
        raise CannotModel(f"{shapes} are not all matrices")
    if any(left[1] != right[0] for left, right in pairwise(shapes)):
        raise CannotModel(f"cannot multiply {shapes}")
    sizes = (shapes[0][0], *(shape[1] for shape in shapes))
    output = Tensor((sizes[0], sizes[-1]), result_type(matrices))
    unit = Product(1, 1, 1, output, output).flops
    along = {"M": sizes[-1], "N": sizes[0], "K": sizes[-2]}
    return chain_products(unit * _multiplications(sizes), matrices, output, along, direction)


def _multiplications(sizes: tuple[int, ...]) -> int:
    # The fewest multiplications for matrices of sizes[i] by sizes[i + 1].
    @lru_cache(None)
    def least(first: int, last: int) -> int:
        if first == last:
            return 0
        return min(
            least(first, split)
            + least(split + 1, last)
            + sizes[first] * sizes[split + 1] * sizes[last + 1]
            for split in range(first, last)
        )

    return least(0, len(sizes) - 2)


@operators("""
    aten::bilinear
    (input1, input2, weight, bias): torch.bilinear
""")
def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, direction: str
) -> Work:
    """x[.., i] @ w[o, i, j] @ y[.., j] (+ bias[o]) -> [.., o].

    FLOPs: 2 rows o j (i + 1): for each output feature a product with x, then one with y; bias not
    counted. Backward twice that, and rows o for the bias.
    Bytes: x, y, w and bias read, the output written, intermediates not counted; backward all read
    again and their gradients written.

    torch's order of the two products. Its gradients use other products of about the same size; two
    for each are counted here, as in FlopCounterMode.
    """
    if len(weight.shape) != 3 or not input1.shape or input1.shape[:-1] != input2.shape[:-1]:
        raise CannotModel(
            f"cannot compute a bilinear form of {input1.shape}, {weight.shape}, {input2.shape}"
        )
    features, first, second = weight.shape
    if (input1.shape[-1], input2.shape[-1]) != (first, second):
        raise CannotModel(f"{input1.shape} and {input2.shape} do not fit {weight.shape}")
    if bias is not None and bias.shape != (features,):
        raise CannotModel(f"bias {bias.shape} does not fit weight {weight.shape}")
    rows = elements(input1.shape[:-1])
    output = Tensor((*input1.shape[:-1], features), result_type((input1, input2, weight)))
    unit = Product(1, 1, 1, output, output).flops
    tensors = (input1, input2, weight)
    along = {"I": first, "J": second}
    done = chain_products(
        unit * rows * features * second * (first + 1), tensors, output, along, direction
    )
    if bias is None:
        return done
    if direction == "fprop":
        main = done.parts[0]
        cost = main.cost + Cost(0, tensor_bytes(bias))
        text = f"{main.params};{tensor_text(bias)}"
        return Work((Part("main", cost, text, kernels=GEMM, no_tensor_cores=main.no_tensor_cores),))
    gradient = Tensor((rows, features), output.dtype)
    summed = bias_gradient(Product(rows, features, 1, gradient, gradient), bias)
    return Work((*done.parts, summed))
