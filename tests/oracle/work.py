"""Products, convolutions and attention: the kernels of one call, and its FLOPs."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.capture import Range
from oracle.flops import BACKWARD_CONVOLUTIONS, CONVOLUTIONS, bare, flops, is_counted
from oracle.links import Links


def call_of(each: Range | None) -> Range | None:
    """The outermost product, convolution or attention around a launch: `matmul` around `mm`."""
    around = [r for r in (each.chain() if each else []) if is_counted(r)]
    return around[-1] if around else None


def innermost(each: Range | None) -> Range | None:
    """The innermost product, convolution or attention around a launch."""
    return next((r for r in (each.chain() if each else []) if is_counted(r)), None)


def _below(each: Range) -> Iterator[Range]:
    """The outermost counted ranges in a range."""
    for child in each.children:
        if is_counted(child):
            yield child
        else:
            yield from _below(child)


class Work:
    """FLOPs of calls."""

    def __init__(self, ranges: list[Range], links: Links) -> None:
        self._gradient: dict[int, list[int]] = {}
        for each in ranges:
            if bare(each.name) in BACKWARD_CONVOLUTIONS and each.dims:
                node = links.node(each.chain())
                for forward in links.forwards(node) if node else ():
                    place = BACKWARD_CONVOLUTIONS[bare(each.name)][0]
                    self._gradient[id(forward)] = each.dims[place]

    def flops(self, call: Range) -> int | None:
        """The sum over the innermost counted ranges in it if all are known; else the FLOPs from its
        own arguments."""
        parts = [self.flops(each) for each in _below(call)]
        if parts and None not in parts:
            return sum(parts)
        return flops(call, self._result_of(call))

    def _result_of(self, each: Range) -> list[int] | None:
        """The size of a convolution's result, from its linked backward work."""
        around: Range | None = each
        while around is not None and bare(around.name) in CONVOLUTIONS:
            if id(around) in self._gradient:
                return self._gradient[id(around)]
            around = around.parent
        return None
