"""Shapes of tensors: elements, bytes, params text."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, add_known
from fastprof.ops.dtypes import canonical_type, item_size, short_type


def elements(shape: Iterable[int]) -> int:
    """Number of elements; 1 for the empty shape of a 0-dim tensor."""
    return prod(shape)


def numbers_per_element(tensor: Tensor) -> int:
    """Numbers packed into one element: 2 for float4, else 1."""
    return 2 if (canonical_type(tensor.dtype) or "").startswith("float4") else 1


def byte_count(count: int, dtype: str | None) -> int | None:
    """Bytes of `count` elements; None if the type is unknown."""
    size = item_size(dtype)
    return None if size is None else count * size


def tensor_bytes(tensor: Tensor) -> int | None:
    """Bytes of a tensor in memory; None if its type is unknown.

    An expanded dimension (stride 0) counts as size 1.
    """
    shape = tensor.shape
    if tensor.strides is not None and len(tensor.strides) == len(shape):
        shape = tuple(size for size, step in zip(shape, tensor.strides, strict=True) if step)
        shape = (0,) if 0 in tensor.shape else shape
    return byte_count(elements(shape), tensor.dtype)


def tensor_text(tensor: Tensor) -> str:
    """Params text of a tensor: `[35,20,200]fp32`, `[]fp32` for a 0-dim tensor."""
    return f"[{','.join(map(str, tensor.shape))}]{short_type(tensor.dtype)}"


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The broadcast shape, by torch's (numpy's) rules.

    Raises CannotModel when the shapes do not broadcast.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wider = {size for size in sizes if size != 1}
        if len(wider) > 1:
            raise CannotModel(f"shapes {shapes} do not broadcast")
        result.append(wider.pop() if wider else 1)
    return tuple(result)


def moved(*tensors: Tensor | None) -> int | None:
    """Total bytes of the tensors, each by its own type. None arguments are skipped."""
    return add_known(*(tensor_bytes(tensor) for tensor in tensors if tensor is not None))


def present(*tensors: Tensor | None) -> tuple[Tensor, ...]:
    """The arguments that are tensors, without None."""
    return tuple(tensor for tensor in tensors if tensor is not None)


def fresh(tensor: Tensor, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Tensor:
    """A dense tensor with the shape and type of another, or with those given."""
    return Tensor(tensor.shape if shape is None else shape, dtype or tensor.dtype)


def flat(count: int | None, dtype: str | None) -> Tensor:
    """A dense tensor of `count` elements; None: one of unknown bytes."""
    return Tensor(()) if count is None else Tensor((count,), dtype)


def resized(x: Tensor, sizes: int | tuple[int, ...] | Unknown) -> Tensor:
    """A dense tensor of the type of x and the sizes of an argument, of unknown bytes without them.

    Raises CannotModel when a size is negative.
    """
    if isinstance(sizes, Unknown):
        return Tensor(())
    shape = (sizes,) if isinstance(sizes, int) else sizes
    if any(size < 0 for size in shape):
        raise CannotModel(f"invalid shape {shape}")
    return Tensor(shape, x.dtype)


def same_shape(gradient: Tensor, x: Tensor) -> None:
    """Check that a gradient has the shape of its tensor; raises CannotModel when it does not."""
    if gradient.shape != x.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {x.shape}")


def texts(*operands: object) -> str:
    """Params text of the tensors among the operands: `[35,20,200]fp32;[200]fp32`."""
    return ";".join(tensor_text(tensor) for tensor in operands if isinstance(tensor, Tensor))
