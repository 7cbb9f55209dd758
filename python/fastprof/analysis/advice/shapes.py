"""The shapes in the params text of a call."""

from __future__ import annotations

from typing import Final, NamedTuple

from fastprof._system.regex import regex

_SIZE: Final = regex(r"(?<!\w)([A-Za-z]\w*)=(\d+)")
_OPERAND: Final = regex(r"\[([\d,]*)\](\w*)")
_TUPLE: Final = regex(r"\(([\d,]*)\)")
_QUOTED: Final = regex(r"'(\w*)'")
_TYPE: Final = regex(r"(?:,|\A)([a-z]\w*\d\w*),?\Z")


class Operand(NamedTuple):
    """A tensor of a call: its shape and type."""

    shape: tuple[int, ...]
    type: str

    @property
    def elements(self) -> int:
        """The product of the shape."""
        n = 1
        for size in self.shape:
            n *= size
        return n


def sizes(shape: str | None) -> dict[str, int]:
    """The named sizes: `M=128,N=64,K=32,fp16,` has M, N and K."""
    return {name: int(value) for name, value in _SIZE.findall(shape or "")}


def operands(shape: str | None) -> list[Operand]:
    """The tensors: `[2,3]fp32;[3]fp32` are two, as are `T=[(2,3),(3,)],['float32','float32']`."""
    if shape and shape.startswith("T="):
        found = list(zip(_TUPLE.findall(shape), _QUOTED.findall(shape), strict=False))
    else:
        found = _OPERAND.findall(shape) if shape and shape.startswith("[") else []
    return [Operand(tuple(map(int, filter(None, dims.split(",")))), type_) for dims, type_ in found]


def type_of(shape: str | None) -> str | None:
    """The type at the end of named sizes: `M=128,N=64,K=32,fp16,` has fp16."""
    found = _TYPE.search(shape or "")
    return found[1] if found else None
