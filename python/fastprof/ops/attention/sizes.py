"""Sizes, FLOPs and bytes of attention from its queries, keys and values.

Attention is softmax(Q K^T / sqrt(d)) V for each sequence and head. As in torch's FlopCounterMode,
only matrix products count FLOPs, two forward and five backward: not softmax, dropout and masks, and
a causal mask or a window does not reduce the count. Bytes are those of a fused kernel, which keeps
the matrix of scores on the chip.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.tensor import broadcast, byte_count, elements, moved, texts
from fastprof.ops.tensor_cores import why_not

KERNELS: Final = frozenset({"attention", "gemm"})
_SUM: Final = "float32"  # of the logarithm of each row's softmax sum, which backward needs


class Operands(NamedTuple):
    """Queries, keys and values of a call, and what is added to the scores."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None


class Attention(NamedTuple):
    """The sizes of one attention, over all its sequences and heads.

    Parameters
    ----------
    query, key, value, mask : Tensor
        The operands in any layout, for their bytes and types. `mask` may be None.
    rows : int
        Queries: rows of all matrices of scores.
    scores : int or None
        Elements of all matrices of scores; None if unknown.
    depth, width : int
        Elements of one query (and key), and of one value.
    exact : bool
        Whether `scores` is exact, not a bound.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    rows: int
    scores: int | None
    depth: int
    width: int
    exact: bool = True

    def product_flops(self, over_depth: int, over_width: int) -> int | None:
        """FLOPs of `over_depth` products over d and `over_width` products over w."""
        if self.scores is None:
            return None
        return 2 * self.scores * (over_depth * self.depth + over_width * self.width)

    @property
    def output_bytes(self) -> int | None:
        """Bytes of the output, which has the queries' type."""
        return byte_count(self.rows * self.width, self.query.dtype)

    @property
    def sum_bytes(self) -> int | None:
        """Bytes of the logarithms of the softmax sums, one for each query."""
        return byte_count(self.rows, _SUM)

    def part(self, cost: Cost) -> Part:
        """A part done by attention kernels, or by gemms in their place."""
        sizes = {"D": self.depth}
        if self.width != self.depth:
            sizes["Dv"] = self.width
        return Part(
            "main",
            cost,
            texts(self.query, self.key, self.value, self.mask),
            kernels=KERNELS,
            no_tensor_cores=why_not(self.query.dtype, sizes),
        )


def attention_forward(attention: Attention, *, sums: bool = True) -> Part:
    """Q K^T and P V. Operands and mask read; output and, with `sums`, softmax sums written."""
    read = moved(attention.query, attention.key, attention.value, attention.mask)
    written = add_known(attention.output_bytes, attention.sum_bytes if sums else 0)
    flops = attention.product_flops(1, 1)
    return attention.part(Cost(flops, add_known(read, written), attention.exact))


def attention_backward(
    attention: Attention, *, recomputed: bool = True, mask_gradient: bool = False
) -> Part:
    """Q K^T again (if `recomputed`), dP = dO V^T, dV = P^T dO, dQ = dS K and dK = dS^T Q.

    Operands, mask, output, its gradient and the softmax sums read; the gradients of the operands
    and, with `mask_gradient`, of the mask written.
    """
    operands = moved(attention.query, attention.key, attention.value)
    read = add_known(operands, moved(attention.mask), attention.output_bytes)
    read = add_known(read, attention.output_bytes, attention.sum_bytes)
    written = add_known(operands, moved(attention.mask) if mask_gradient else 0)
    flops = attention.product_flops(3 if recomputed else 2, 2)
    return attention.part(Cost(flops, add_known(read, written), attention.exact))


def attention_work(attention: Attention, direction: str) -> Work:
    """The forward or the backward pass of a fused attention as a work."""
    pass_of = attention_forward if direction == "fprop" else attention_backward
    return Work((pass_of(attention),))


def check_gradient(gradient: Tensor, attention: Attention) -> None:
    """Check that a tensor has the size of the output; raises CannotModel when it does not."""
    if elements(gradient.shape) != attention.rows * attention.width:
        raise CannotModel(f"a gradient of {gradient.shape} does not fit {attention.query.shape}")


def heads_first(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Attention:
    """Attention over q [.., h, s, d], k [.., h/g, t, d], v [.., h/g, t, w]; also q [s, d].

    Raises CannotModel when the shapes do not fit.
    """
    return _attention((query, key, value, mask), (query.shape, key.shape, value.shape))


def heads_last(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Attention:
    """Attention over q [b, s, h, d], k [b, t, h/g, d], v [b, t, h/g, w].

    Heads may have two dimensions, groups and heads per group.
    """
    shapes = []
    for tensor in (query, key, value):
        if len(tensor.shape) not in (4, 5):
            raise CannotModel(f"shape {tensor.shape} is not 4-d")
        batch, length, *heads_of, size = tensor.shape
        heads = elements(heads_of)
        shapes.append((batch, heads, length, size))
    return _attention((query, key, value, mask), (shapes[0], shapes[1], shapes[2]))


Shape = tuple[int, ...]


def _attention(
    operands: tuple[Tensor, Tensor, Tensor, Tensor | None], shapes: tuple[Shape, Shape, Shape]
) -> Attention:
    query, key, value = shapes
    if min(map(len, shapes)) < 2:
        raise CannotModel(f"cannot compute attention of {query}, {key} and {value}")
    if query[-1] != key[-1] or key[-2] != value[-2]:
        raise CannotModel(f"cannot compute attention of {query}, {key} and {value}")
    matrices = _matrices(query[:-2], broadcast(key[:-2], value[:-2]))
    rows = matrices * query[-2]
    return Attention(*operands, rows, rows * key[-2], query[-1], value[-1])


def _matrices(query: Shape, key: Shape) -> int:
    # Matrices of scores: a group of query heads may share the head of a key.
    if query and key and key[-1] and query[-1] % key[-1] == 0:
        return elements(broadcast(query[:-1], key[:-1])) * query[-1]
    return elements(broadcast(query, key))


def packed_sizes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    starts: Tensor | None,
    longest: tuple[int | None, int | None],
) -> Attention:
    """Attention over concatenated sequences: q [s, h, d], k [t, h/g, d], v [t, h/g, w].

    The starts are values of a tensor, which no capture records; `longest` has the maximum lengths
    of queries and of keys. If all sequences have these lengths, the number of scores is exact.
    Otherwise it is the lowest upper bound that follows from totals and maxima: at least
    FlopCounterMode's count with the values, at most its count without. Without the maxima,
    sequences are assumed equally long, an estimate. Raises CannotModel when the shapes do not fit.
    """
    shapes = []
    for tensor in (query, key, value):
        # The efficient kernels keep a batch of one.
        shape = (
            tensor.shape[1:] if len(tensor.shape) == 4 and tensor.shape[0] == 1 else tensor.shape
        )
        if len(shape) != 3:
            raise CannotModel(f"shape {tensor.shape} is not [total, heads, size]")
        shapes.append(shape)
    (queries, heads, depth), (keys, groups, key_depth), (values, value_groups, width) = shapes
    if depth != key_depth or keys != values or groups != value_groups or not groups:
        raise CannotModel(
            f"cannot compute attention of {query.shape}, {key.shape} and {value.shape}"
        )
    if heads % groups:
        raise CannotModel(f"{heads} heads cannot share {groups}")
    rows = queries * heads
    scores, exact = _scores(queries, keys, starts, longest)
    total = None if scores is None else scores * heads
    return Attention(query, key, value, mask, rows, total, depth, width, exact)


def _scores(
    queries: int, keys: int, starts: Tensor | None, longest: tuple[int | None, int | None]
) -> tuple[int | None, bool]:
    # Scores of one head and whether their number is exact.
    of_queries, of_keys = longest
    sequences = starts.shape[0] - 1 if starts is not None and len(starts.shape) == 1 else 0
    if of_queries is None or of_keys is None:
        return (queries * keys // sequences if sequences > 0 else None), False
    if of_queries < 0 or of_keys < 0:
        raise CannotModel(f"invalid sequence lengths {of_queries} and {of_keys}")
    of_queries, of_keys = min(of_queries, queries), min(of_keys, keys)
    even = sequences > 0 and (queries == sequences * of_queries or keys == sequences * of_keys)
    return min(queries * of_keys, keys * of_queries), even
