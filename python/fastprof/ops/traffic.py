"""Tensors read and written to bytes, and to the text that params print."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import add_known
from fastprof.ops.tensor import tensor_bytes, tensor_text

__all__ = ["fresh", "moved", "texts"]


def moved(*tensors: Tensor | None) -> int | None:
    """Bytes of all the tensors, each by its own type; None stands for a tensor left out."""
    return add_known(*(tensor_bytes(each) for each in tensors if each is not None))


def fresh(tensor: Tensor, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Tensor:
    """A new, dense tensor of the same shape and type, or of those given."""
    return Tensor(tensor.shape if shape is None else shape, dtype or tensor.dtype)


def texts(*operands: object) -> str:
    """The tensors among the operands as params print them: `[35,20,200]fp32;[200]fp32`."""
    return ";".join(tensor_text(each) for each in operands if isinstance(each, Tensor))
