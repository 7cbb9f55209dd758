"""A call as the markers and the op models see it: module, operator, arguments.

Pure values without behaviour, at the bottom of the house: `markers` makes them out of text,
`ops` turns them into costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final


class Unknown(Enum):
    """The type of `UNKNOWN`, the value of an argument that a capture does not hold."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument.

    Parameters
    ----------
    shape : tuple of int
    dtype : str or None
        Type as torch prints it (`float32`), None when unknown. "" where a trace has a place for the
        type and leaves it empty: an argument that is None, or no tensor and no number.
    strides : tuple of int or None
        Elements between neighbours along each dimension, None when unknown. A dimension of
        stride 0 is one that was expanded: its elements are one and the same in memory.
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

    An ATen call has mod "aten" and unnamed arguments: a Tensor (dtype None unless the trace has
    it) for each tensor input, None for what the trace gives no shape of. `result` is the tensor
    that the call returned, as far as what stands around the call tells; None where nothing does.
    """

    mod: str
    op: str
    args: tuple[Arg, ...] = field(default=())
    result: Tensor | None = None
