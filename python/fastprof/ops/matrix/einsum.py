"""FLOPs and bytes of einsum, chains and bilinear forms, of outer, Kronecker and other products.

torch computes outer, Kronecker, cross and dot products by elementwise multiplication, so
FlopCounterMode does not count them. Here each multiplication and addition counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work
from fastprof.ops.dtypes import is_complex, parts, result_type
from fastprof.ops.matrix.matmul import GEMM, Product, bias_gradient, plain
from fastprof.ops.parameters import Int, Ints, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import broadcast, elements, flat, fresh, moved, texts
from fastprof.ops.tensor_cores import why_not


@operators("""
    v[m] w[n]^T: one product for each pair.
    FLOPs: m n; backward two matrix-vector products, computed as product and sum: 4 m n.
    Bytes: both vectors read, the matrix written; backward its gradient read once for each.
    (left, vec2=right): outer ger
""")
def outer(left: Tensor, right: Tensor, *, direction: str) -> Answer:
    _vectors(left, right)
    return _pairs(left, right, (*left.shape, *right.shape), direction)


@operators("""
    Kronecker product A[a, ..] x B[b, ..] -> [a b, ..]: one product for each pair of elements.
    FLOPs: elements of A times elements of B; backward four times that.
    Bytes: A and B read, the output written; backward its gradient read once for each.
    (left, other=right): torch.kron
    (left, right): aten::kron
""")
def kron(left: Tensor, right: Tensor, *, direction: str) -> Answer:
    return _pairs(left, right, (elements(left.shape), elements(right.shape)), direction)


@operators("""
    C + v[m] w[n]^T, C broadcast to [m, n].
    FLOPs: 2 m n, without beta and alpha; backward 4 m n, the gradients of the vectors.
    Bytes: C and both vectors read, the output written; backward its gradient read once for each.
    (addend, vec1, vec2, ...): addr addr_
""")
def addr(addend: Tensor, vec1: Tensor, vec2: Tensor, *, direction: str) -> Answer:
    _vectors(vec1, vec2)
    shape = (*vec1.shape, *vec2.shape)
    if broadcast(addend.shape, shape) != shape:
        raise CannotModel(f"{addend.shape} does not broadcast to the output {shape}")
    cost, _ = _pairs(vec1, vec2, shape, direction)
    if direction == "fprop":
        cost += Cost(elements(shape) * parts(result_type((vec1, vec2))), moved(addend))
    return cost, texts(addend, vec1, vec2)


@operators("""
    Cross products of v[.., 3] and w[.., 3]: two multiplications and a subtraction an element.
    FLOPs: 3 for each element of the output; backward two cross products.
    Bytes: both operands read, the output written; backward its gradient and an operand read and a
    gradient written, twice.
    (left, other=right, ...): torch.cross
    (left, right, ...): aten::cross aten::linalg_cross
""")
def cross(left: Tensor, right: Tensor, *, direction: str) -> Answer:
    shape = broadcast(left.shape, right.shape)
    if 3 not in shape:
        raise CannotModel(f"no dimension of {shape} has size 3")
    output = Tensor(shape, result_type((left, right)))
    flops = elements(shape) * (14 if is_complex(output.dtype) else 3)
    if direction == "bprop":
        return Cost(2 * flops, moved(*[output] * 6)), texts(left, right)
    return Cost(flops, moved(left, right, output)), texts(left, right)


@operators("""
    Dot products along one dimension of x[.., k] and y[.., k], broadcast: a product, then a sum.
    FLOPs: 2 for each element of the broadcast operands; backward two products.
    Bytes: both read, the output written, intermediate products not counted; backward both read and
    both gradients written. Unknown if the dimension is not in the capture.
    (x, y, dim): torch.vecdot aten::linalg_vecdot
""")
def vecdot(x: Tensor, y: Tensor, dim: Int = -1, *, direction: str) -> Answer:
    shape = broadcast(x.shape, y.shape)
    if not shape:
        raise CannotModel("no dimension to sum over")
    dtype = result_type((x, y))
    count, multiply = elements(shape), is_complex(dtype)
    if direction == "bprop":
        return Cost(count * (12 if multiply else 2), moved(x, y, x, y)), texts(x, y)
    flops = count * (8 if multiply else 2)
    if isinstance(dim, Unknown):
        return Cost(flops, None), texts(x, y)
    if not -len(shape) <= dim < len(shape):
        raise CannotModel(f"{shape} has no dimension {dim}")
    dim %= len(shape)
    output = Tensor(shape[:dim] + shape[dim + 1 :], dtype)
    return Cost(flops, moved(x, y, output)), texts(x, y)


def _vectors(*vectors: Tensor) -> None:
    for tensor in vectors:
        if len(tensor.shape) != 1:
            raise CannotModel(f"shape {tensor.shape} is not that of a vector")


def _pairs(left: Tensor, right: Tensor, shape: tuple[int, ...], direction: str) -> Answer:
    # One multiplication for each pair of elements. Backward, for each operand, the pairs' gradient
    # times the other operand, summed.
    output = Tensor(shape, result_type((left, right)))
    count, params = elements(shape), texts(left, right)
    if direction == "fprop":
        multiply = 6 if is_complex(output.dtype) else 1
        return Cost(count * multiply, moved(left, right, output)), params
    multiply_add = 8 if is_complex(output.dtype) else 2
    return Cost(2 * multiply_add * count, moved(output, output, left, right, left, right)), params


Label = str
Sizes = dict[Label, int]  # size of each label of an operand
_ELLIPSIS: Final = "..."


class Contraction(NamedTuple):
    """The steps of an einsum.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    products : list of (b, m, n, k)
        Its matrix products, in order.
    multiplications : int
        Elements of products without a summed label, which torch computes elementwise.
    additions : int
        Elements summed by an einsum of one operand.
    """

    shape: tuple[int, ...]
    products: list[tuple[int, int, int, int]]
    multiplications: int
    additions: int


@operators("""
    Sum of products by an equation, `bij,bjk->bik`: matrix products of two operands at a time.
    FLOPs: 2 b m n k of each product, as in FlopCounterMode; a pair without a summed label is
    multiplied elementwise, 1 per element; a single operand is summed, 1 per element. Backward two
    products (or multiplications) for each, 0 for a sum.
    Bytes: the operands read, the output written, intermediates not counted; backward the operands
    and the output's gradient read and the operands' gradients written. A single operand that is
    only permuted is a view: 0.

    Operands are contracted from left to right, or by the path. With the package opt_einsum, torch
    optimizes the path of three and more operands: the cost is then an **estimate**. Sums over a
    label of a single operand, before a product, are not counted. Sublists instead of an equation
    are not modelled. Unknown without the equation.
    (equation, operands*): torch.einsum
    (equation, operands*, path): aten::einsum
""")
def einsum(
    equation: str,
    operands: Tensors,
    path: tuple[int, ...] | Unknown | None = None,
    *,
    direction: str,
) -> Work:
    done = contract(equation, [tensor.shape for tensor in operands], path)
    if len(operands) == 1:
        return _of_one(done, operands[0], direction)
    if len(done.products) == 1 and not done.multiplications:
        batch, m, n, k = done.products[0]
        left, right = operands[0], operands[1]
        if len(operands) == 2:
            return plain(Product(m, n, k, left, right, None if batch == 1 else batch), direction)
    output = Tensor(done.shape, result_type(operands))
    unit = Product(1, 1, 1, output, output).flops
    flops = unit * sum(map(prod, done.products))
    flops += done.multiplications * (6 if is_complex(output.dtype) else 1)
    m, n, k = done.products[-1][1:] if done.products else (0, 0, 0)
    sizes = {"M": n, "N": m, "K": k} if done.products else {}
    work = chain_products(flops, operands, output, sizes, direction)
    in_order = len(operands) == 2 or bool(path and not isinstance(path, Unknown))
    return work.estimated(in_order)


def _of_one(done: Contraction, operand: Tensor, direction: str) -> Work:
    # A trace, a sum over dimensions, a permutation.
    cost = Cost(0, 0)
    if done.additions:
        flops = done.additions * parts(operand.dtype) if direction == "fprop" else 0
        cost = Cost(flops, moved(flat(done.additions, operand.dtype), fresh(operand, done.shape)))
    return Work((Part("main", cost, texts(operand)),))


def contract(
    equation: str, shapes: list[tuple[int, ...]], path: tuple[int, ...] | Unknown | None = None
) -> Contraction:
    """The products of an einsum, in torch's order.

    Source: `einsum` and `sumproduct_pair` of ATen's native/Linear.cpp. Raises CannotModel when the
    equation is invalid, or does not fit the shapes.
    """
    operands, kept = _read(equation, shapes)
    size_of: Sizes = {}
    for operand in operands:
        for label, size in operand.items():
            if size_of.setdefault(label, size) not in (1, size) and size != 1:
                raise CannotModel(f"{label} has sizes {size_of[label]} and {size}")
            size_of[label] = max(size_of[label], size) if size else 0
    unknown = [label for label in kept if label not in size_of]
    if unknown or len(set(kept)) < len(kept):
        raise CannotModel(f"output of {equation!r} does not fit its operands")
    shape = tuple(size_of[label] for label in kept)
    if len(operands) == 1:
        summed = set(operands[0]) - set(kept)
        return Contraction(shape, [], 0, prod(operands[0].values()) if summed else 0)
    left_over = Counter(
        label
        for operand in operands
        for label, size in operand.items()
        if size != 1 and label not in kept
    )
    done: list[tuple[int, int, int, int]] = []
    multiplications = 0
    for i, j in _order(path, len(operands)):
        right, left = operands.pop(j), operands.pop(i)
        result, found = _pair(left, right, left_over)
        if found is None:
            multiplications += prod(result.values())
        else:
            done.append(found)
        operands.insert(len(operands) if path else 0, result)
    return Contraction(shape, done, multiplications, 0)


def _order(path: tuple[int, ...] | Unknown | None, count: int) -> list[tuple[int, int]]:
    # The pairs of remaining operands to multiply, in order; i < j.
    if isinstance(path, Unknown) or not path:
        return [(0, 1)] * (count - 1)
    steps = [(min(pair), max(pair)) for pair in zip(path[::2], path[1::2], strict=False)]
    lefts = range(count, 1, -1)
    fitting = len(path) == 2 * (count - 1)
    if not fitting or any(not 0 <= i < j < n for (i, j), n in zip(steps, lefts, strict=True)):
        raise CannotModel(f"path {path} does not fit {count} operands")
    return steps


def _pair(
    left: Sizes, right: Sizes, left_over: Counter[Label]
) -> tuple[Sizes, tuple[int, int, int, int] | None]:
    # The product of two operands: remaining sizes, and its b, m, n, k. `left_over` counts the
    # operands that still have a summed label.
    left, right, summed = dict(left), dict(right), []
    for label in set(left) | set(right):
        if label not in left_over:
            continue
        in_left, in_right = left.get(label, 1) != 1, right.get(label, 1) != 1
        if in_left and in_right:
            left_over[label] -= 1
            if left_over[label] == 1:
                summed.append(label)
                del left_over[label]
        elif left_over[label] == 1 and (in_left or in_right):
            (left if in_left else right).pop(label)  # summed before the product
            del left_over[label]
    batch = rows = columns = 1
    inner = prod(left[label] for label in summed)
    result: Sizes = {}
    for label in set(left) | set(right):
        sizes = left.get(label, 1), right.get(label, 1)
        if label in summed:
            continue
        result[label] = sizes[0] if sizes[0] != 1 else sizes[1]
        batch *= sizes[0] if 1 not in sizes else 1
        rows *= sizes[0] if sizes[1] == 1 else 1
        columns *= sizes[1] if sizes[0] == 1 else 1
    return result, (batch, rows, columns, inner) if summed else None


def _read(equation: str, shapes: list[tuple[int, ...]]) -> tuple[list[Sizes], list[Label]]:
    # Sizes of each operand by label, and the labels of the output.
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not shapes or len(terms) != len(shapes):
        raise CannotModel(f"{equation!r} does not fit {len(shapes)} operands")
    operands = []
    widest = 0
    seen: Counter[Label] = Counter()
    for term, shape in zip(terms, shapes, strict=True):
        letters = _letters(term)
        dots = len(shape) - len(letters) + letters.count(_ELLIPSIS)
        if dots < 0 or (_ELLIPSIS not in letters and dots):
            raise CannotModel(f"{term!r} does not fit {shape}")
        widest = max(widest, dots)
        operand: Sizes = {}
        for label, size in zip(_spelled(letters, dots), shape, strict=True):
            if operand.setdefault(label, size) != size:
                raise CannotModel(f"{term!r} has no diagonal in {shape}")
            seen[label] += 1
        operands.append(operand)
    if arrow:
        return operands, list(_spelled(_letters(output), widest))
    once = sorted(label for label, times in seen.items() if times == 1 and label.isalpha())
    return operands, [*_spelled([_ELLIPSIS], widest), *once]


def _letters(term: str) -> list[Label]:
    before, dots, after = term.partition(_ELLIPSIS)
    letters = [*before, *([_ELLIPSIS] if dots else []), *after]
    if not all(
        letter == _ELLIPSIS or (letter.isascii() and letter.isalpha()) for letter in letters
    ):
        raise CannotModel(f"{term!r} contains other characters than letters and one ellipsis")
    return letters


def _spelled(letters: Iterable[Label], dots: int) -> Iterable[Label]:
    # The dimensions of an ellipsis are numbered from the right, because they are right-aligned.
    for letter in letters:
        if letter == _ELLIPSIS:
            yield from map(str, range(dots, 0, -1))
        else:
            yield letter


@operators("""
    Sum over dimensions of A[.., k] and of B[k, ..]: one matrix product of the remaining
    dimensions.
    FLOPs: 2 m n k, m and n the elements of the remaining dimensions; backward two products as
    large.
    Bytes: A and B read, the output written; backward for each gradient the same three.

    A dimension of size 1 in only one operand is first summed in the other, which is not counted.
    Unknown without the dimensions.
    (a, b, dims, dims_b, ...): torch.tensordot
    (a, b, dims, dims_b): aten::tensordot
""")
def tensordot(
    a: Tensor,
    b: Tensor,
    dims: int | tuple[int, ...] | tuple[Ints, ...] = 2,
    dims_b: Ints | None = None,
    *,
    direction: str,
) -> Work:
    left_dims, right_dims = _dimensions(dims, dims_b, len(a.shape))
    left = [_dimension(a, left_dim) for left_dim in left_dims]
    right = [_dimension(b, right_dim) for right_dim in right_dims]
    if len(left) != len(right) or len({*left}) < len(left) or len({*right}) < len(right):
        raise CannotModel(f"cannot sum dimensions {left} with {right}")
    inner = 1
    for of_a, of_b in zip(left, right, strict=True):
        sizes = a.shape[of_a], b.shape[of_b]
        if sizes[0] != sizes[1] and 1 not in sizes:
            raise CannotModel(f"cannot sum dimensions of {sizes[0]} and {sizes[1]} elements")
        inner *= sizes[0] if sizes[0] == sizes[1] else 1
    rows = prod(size for i, size in enumerate(a.shape) if i not in left)
    columns = prod(size for i, size in enumerate(b.shape) if i not in right)
    return plain(Product(rows, columns, inner, a, b), direction)


def _dimensions(
    dims: int | tuple[int, ...] | tuple[Ints, ...], dims_b: Ints | None, rank: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # The number of trailing dimensions of A and leading ones of B, two lists, or both lists in one.
    if isinstance(dims, int) and dims_b is None:
        if not 0 <= dims <= rank:
            raise CannotModel(f"{rank} dimensions have no last {dims}")
        return tuple(range(rank - dims, rank)), tuple(range(dims))
    both: Any = dims if dims_b is None else (dims, dims_b)
    if isinstance(both, int) or len(both) != 2:
        raise CannotModel(f"dimensions {both} are not a pair")
    left, right = ((each,) if isinstance(each, int) else each for each in both)
    if not all(isinstance(each, int) for each in (*left, *right)):
        raise CannotModel(f"dimensions {both} are not a pair of lists")
    return left, right


def _dimension(tensor: Tensor, dim: int) -> int:
    rank = len(tensor.shape)
    if not -rank <= dim < rank:
        raise CannotModel(f"{tensor.shape} has no dimension {dim}")
    return dim % rank


@operators("""
    A[.., k] . B[.., k] over the last dimension of both: one matrix product, A @ B^T.
    FLOPs: 2 m n k, m and n the elements of the dimensions before; with a scalar 1 per element.
    Backward twice that.
    Bytes: A and B read, the output written; backward for each gradient the same three.
    (*): aten::inner
    (left, other=right, ...): torch.inner
""")
def inner(left: Tensor, right: Tensor, *, direction: str) -> Work:
    if left.shape and right.shape:
        return tensordot(left, right, (-1,), (-1,), direction=direction)
    output = Tensor((*left.shape, *right.shape), result_type((left, right)))
    multiply = 6 if is_complex(output.dtype) else 1
    cost = Cost(elements(output.shape) * multiply, moved(left, right, output))
    both = cost + cost if direction == "bprop" else cost
    return Work((Part("main", both, texts(left, right)),))


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
    cost = Cost(flops, moved(*tensors, output))
    if direction == "bprop":
        cost += Cost(flops, moved(*tensors))
    reason = why_not(output.dtype, sizes) if sizes else ""
    return Work((Part("main", cost, texts(*tensors), kernels=GEMM, no_tensor_cores=reason),))


@operators("""
    A[m, k] @ B[k, l] @ C[l, n] ..: the order with the fewest multiplications, as torch does it.
    FLOPs: 2 m k l of each product in that order; backward two products for each.
    Bytes: all matrices read, the output written, intermediates not counted; backward all read again
    and their gradients written.

    The first matrix may be a row, the last a column: vectors. The order: Cormen et al.,
    Introduction to Algorithms, 15.2.
    (*): aten::chain_matmul aten::linalg_multi_dot
    (matrices*): torch.multi_dot torch.chain_matmul
""")
def multi_dot(matrices: Tensors, *, direction: str) -> Work:
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
    x[.., i] @ w[o, i, j] @ y[.., j] (+ bias[o]) -> [.., o].
    FLOPs: 2 rows o j (i + 1): for each output feature a product with x, then one with y; bias not
    counted. Backward twice that, and rows o for the bias.
    Bytes: x, y, w and bias read, the output written, intermediates not counted; backward all read
    again and their gradients written.

    torch's order of the two products. Its gradients use other products of about the same size; two
    for each are counted here, as in FlopCounterMode.
    (*): aten::bilinear
    (input1, input2, weight, bias): torch.bilinear
""")
def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, direction: str
) -> Work:
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
        (main,) = done.parts
        cost, params = main.cost + Cost(0, moved(bias)), texts(*tensors, bias)
        return Work((replace(main, cost=cost, params=params),))
    gradient = Tensor((rows, features), output.dtype)
    summed = bias_gradient(Product(rows, features, 1, gradient, gradient), bias)
    return Work((*done.parts, summed))
