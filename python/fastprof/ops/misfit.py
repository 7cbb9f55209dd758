"""The error message for arguments that match no signature of a formula."""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.model.call import UNKNOWN, Arg
from fastprof.ops.parameters import shown
from fastprof.ops.signature import Signature


def misfit(signatures: Iterable[Signature], args: Iterable[Arg]) -> str:
    """Name the first list of tensors that is not recorded, else expected and found arguments."""
    expected = list(signatures)
    values = [each.value for each in args if not each.name]
    for signature in expected:
        for slot, value in zip(signature.slots, values, strict=False):
            if slot.is_list and value is UNKNOWN:
                return f"the tensors of its list {slot.keyword!r} are not in the capture"
    wanted = " or ".join(dict.fromkeys(map(_written, expected)))
    found = ", ".join(map(shown, values))
    return f"expected {wanted}, found {len(values)} arguments: {found}"


def _written(signature: Signature) -> str:
    return f"{signature.name}({', '.join(slot.keyword for slot in signature.slots)})"
