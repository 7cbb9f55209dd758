"""Why the arguments of a call fit no signature of its formula, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastprof.call import UNKNOWN, Arg, Tensor
from fastprof.ops.signature import Signature

_LONGEST = 24  # characters of a value that are shown


def misfit(signatures: Iterable[Signature], args: Iterable[Arg]) -> str:
    """Which list of tensors the capture does not hold; else what is expected, and what is found."""
    expected = list(signatures)
    values = [each.value for each in args if not each.name]
    for signature in expected:
        for slot, value in zip(signature.slots, values, strict=False):
            if slot.is_list and value is UNKNOWN:
                return f"the tensors of its list {slot.keyword!r} are not in the capture"
    wanted = " or ".join(dict.fromkeys(map(_written, expected)))
    found = ", ".join(map(_shown, values))
    return f"expected {wanted}, found {len(values)} arguments: {found}"


def _written(signature: Signature) -> str:
    return f"{signature.name}({', '.join(slot.keyword for slot in signature.slots)})"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor) and (value.shape or value.dtype):
        return f"tensor {list(value.shape)}"
    if isinstance(value, tuple) and any(isinstance(each, Tensor) for each in value):
        return f"{len(value)} tensors"
    if value is UNKNOWN or isinstance(value, Tensor):
        return "not told"
    return repr(value)[:_LONGEST]
