"""Memory traffic in bytes, and params text, of tensors."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import add_known
from fastprof.ops.tensor import tensor_bytes, tensor_text


def moved(*tensors: Tensor | None) -> int | None:
    """Total bytes of the tensors, each by its own type. None arguments are skipped."""
    return add_known(*(tensor_bytes(tensor) for tensor in tensors if tensor is not None))


def present(*tensors: Tensor | None) -> tuple[Tensor, ...]:
    """The arguments that are tensors, without None."""
    return tuple(tensor for tensor in tensors if tensor is not None)


def fresh(tensor: Tensor, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Tensor:
    """A dense tensor with the shape and type of another, or with those given."""
    return Tensor(tensor.shape if shape is None else shape, dtype or tensor.dtype)


def texts(*operands: object) -> str:
    """Params text of the tensors among the operands: `[35,20,200]fp32;[200]fp32`."""
    return ";".join(tensor_text(tensor) for tensor in operands if isinstance(tensor, Tensor))
