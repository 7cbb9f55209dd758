"""FLOPs and bytes of products that are no matrix products: outer, Kronecker, cross, vecdot.

torch computes them by elementwise multiplication, so FlopCounterMode does not count them. Here each
multiplication and addition counts.
"""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.registry import operators
from fastprof.ops.tensor import (
    broadcast,
    byte_count,
    elements,
    is_complex,
    result_type,
    tensor_bytes,
    tensor_text,
)


@operators("(left, vec2=right): outer ger")
def outer(left: Tensor, right: Tensor, *, direction: str) -> tuple[Cost, str]:
    """v[m] w[n]^T: one product for each pair.

    FLOPs: m n; backward two matrix-vector products, computed as product and sum: 4 m n.
    Bytes: both vectors read, the matrix written; backward its gradient read once for each.
    """
    _vectors(left, right)
    return _pairs(left, right, (*left.shape, *right.shape), direction)


@operators("""
    (left, other=right): torch.kron
    (left, right): aten::kron
""")
def kron(left: Tensor, right: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Kronecker product A[a, ..] x B[b, ..] -> [a b, ..]: one product for each pair of elements.

    FLOPs: elements of A times elements of B; backward four times that.
    Bytes: A and B read, the output written; backward its gradient read once for each.
    """
    return _pairs(left, right, (elements(left.shape), elements(right.shape)), direction)


@operators("(addend, vec1, vec2, ...): addr addr_")
def addr(addend: Tensor, vec1: Tensor, vec2: Tensor, *, direction: str) -> tuple[Cost, str]:
    """C + v[m] w[n]^T, C broadcast to [m, n].

    FLOPs: 2 m n, without beta and alpha; backward 4 m n, the gradients of the vectors.
    Bytes: C and both vectors read, the output written; backward its gradient read once for each.
    """
    _vectors(vec1, vec2)
    shape = (*vec1.shape, *vec2.shape)
    if broadcast(addend.shape, shape) != shape:
        raise CannotModel(f"{addend.shape} does not broadcast to the output {shape}")
    cost, _ = _pairs(vec1, vec2, shape, direction)
    if direction == "fprop":
        added = elements(shape) * (2 if is_complex(result_type((vec1, vec2))) else 1)
        cost += Cost(added, tensor_bytes(addend))
    return cost, ";".join(map(tensor_text, (addend, vec1, vec2)))


@operators("""
    (left, other=right, ...): torch.cross
    (left, right, ...): aten::cross aten::linalg_cross
""")
def cross(left: Tensor, right: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Cross products of v[.., 3] and w[.., 3]: two multiplications and a subtraction an element.

    FLOPs: 3 for each element of the output; backward two cross products.
    Bytes: both operands read, the output written; backward its gradient and an operand read and a
    gradient written, twice.
    """
    shape = broadcast(left.shape, right.shape)
    if 3 not in shape:
        raise CannotModel(f"no dimension of {shape} has size 3")
    dtype = result_type((left, right))
    count = elements(shape)
    flops = count * (14 if is_complex(dtype) else 3)
    written = byte_count(count, dtype)
    text = f"{tensor_text(left)};{tensor_text(right)}"
    if direction == "bprop":
        return Cost(2 * flops, add_known(*[written] * 6)), text
    return Cost(flops, add_known(tensor_bytes(left), tensor_bytes(right), written)), text


@operators("(x, y, dim): torch.vecdot aten::linalg_vecdot")
def vecdot(x: Tensor, y: Tensor, dim: int | Unknown = -1, *, direction: str) -> tuple[Cost, str]:
    """Dot products along one dimension of x[.., k] and y[.., k], broadcast: a product, then a sum.

    FLOPs: 2 for each element of the broadcast operands; backward two products.
    Bytes: both read, the output written, intermediate products not counted; backward both read and
    both gradients written. Unknown if the dimension is not in the capture.
    """
    shape = broadcast(x.shape, y.shape)
    if not shape:
        raise CannotModel("no dimension to sum over")
    dtype = result_type((x, y))
    count = elements(shape)
    text = f"{tensor_text(x)};{tensor_text(y)}"
    operands = add_known(tensor_bytes(x), tensor_bytes(y))
    if direction == "bprop":
        flops = count * (12 if is_complex(dtype) else 2)
        return Cost(flops, add_known(operands, operands)), text
    flops = count * (8 if is_complex(dtype) else 2)
    if isinstance(dim, Unknown):
        return Cost(flops, None), text
    if not -len(shape) <= dim < len(shape):
        raise CannotModel(f"{shape} has no dimension {dim}")
    dim %= len(shape)
    written = byte_count(elements(shape[:dim] + shape[dim + 1 :]), dtype)
    return Cost(flops, add_known(operands, written)), text


def _vectors(*vectors: Tensor) -> None:
    for each in vectors:
        if len(each.shape) != 1:
            raise CannotModel(f"shape {each.shape} is not that of a vector")


def _pairs(left: Tensor, right: Tensor, shape: tuple[int, ...], direction: str) -> tuple[Cost, str]:
    # One multiplication for each pair of elements. Backward, for each operand, the pairs' gradient
    # times the other operand, summed.
    dtype = result_type((left, right))
    count = elements(shape)
    text = f"{tensor_text(left)};{tensor_text(right)}"
    written = byte_count(count, dtype)
    operands = add_known(tensor_bytes(left), tensor_bytes(right))
    if direction == "fprop":
        return Cost(count * (6 if is_complex(dtype) else 1), add_known(operands, written)), text
    multiply_add = 8 if is_complex(dtype) else 2
    moved = add_known(written, written, operands, operands)
    return Cost(2 * multiply_add * count, moved), text
