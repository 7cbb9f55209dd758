"""A call of an operator: module, operator name, arguments.

Plain values: `model.markers` parses them from text, `ops` computes their costs.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Any, Final

from fastprof._system.classes import dataclass


class Unknown(Enum):
    """The type of `UNKNOWN`, the value of an argument that the capture does not record."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument.

    Parameters
    ----------
    shape : tuple of int
    dtype : str or None
        torch's name of the type (`float32`), None if unknown. "" if the trace has an empty type
        field: the argument is None, or neither tensor nor number.
    strides : tuple of int or None
        Stride of each dimension in elements, None if unknown. A dimension of stride 0 is expanded:
        its elements share memory.
    """

    shape: tuple[int, ...]
    dtype: str | None = None
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument. `name` is "" for a positional one.

    `value` is a Tensor, a tuple of values (a list or tuple argument), a plain int, float, bool,
    str or None, or `UNKNOWN`.
    """

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator: `mod` "torch.nn.functional", `op` "linear", and its arguments.

    An ATen call has mod "aten" and unnamed arguments: a Tensor for each tensor input (dtype None if
    not recorded), None for inputs without a recorded shape. `result` is the returned tensor, if
    the surrounding calls determine it, else None.
    """

    mod: str
    op: str
    args: tuple[Arg, ...] = field(default=())
    result: Tensor | None = None

    @property
    def identity(self) -> str:
        """Equal for calls that are the same; 1, 1.0 and True, which compare equal, are not."""
        args = [(arg.name, _plain(arg.value)) for arg in self.args]
        return repr((self.mod, self.op, args, _plain(self.result)))


def _plain(value: Any) -> Any:
    """A value without objects of this module, whose `repr` takes several times as long."""
    if isinstance(value, Tensor):
        return [value.shape, value.dtype, value.strides]
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value
