"""Products, convolutions and attention: the kernels of one call, and its FLOPs."""

from collections.abc import Iterable, Iterator

from oracle.capture import Kernel, Range
from oracle.flops import BACKWARD_CONVOLUTIONS, CONVOLUTIONS, bare, flops, is_counted
from oracle.links import Links


def call_of(each: Range | None) -> Range | None:
    """The outermost product, convolution or attention around a launch: `matmul` around `mm`."""
    around = [r for r in (each.chain() if each else []) if is_counted(r)]
    return around[-1] if around else None


def innermost(each: Range | None) -> Range | None:
    """The innermost product, convolution or attention around a launch."""
    return next((r for r in (each.chain() if each else []) if is_counted(r)), None)


class Work:
    """FLOPs of calls.

    Counted ranges that launched nothing count nothing: DTensor computes the size of a result by
    calling the operator with global sizes on tensors without data.
    """

    def __init__(self, ranges: list[Range], kernels: Iterable[Kernel], links: Links) -> None:
        self._launching = {each for k in kernels if k.range for each in k.range.chain()}
        self._gradient: dict[int, list[int]] = {}
        for range_ in ranges:
            if bare(range_.name) in BACKWARD_CONVOLUTIONS and range_.dims:
                node = links.node(range_.chain())
                for forward in links.forwards(node) if node else ():
                    place = BACKWARD_CONVOLUTIONS[bare(range_.name)][0]
                    self._gradient[id(forward)] = range_.dims[place]

    def flops(self, call: Range) -> int | None:
        """The sum over the innermost counted ranges in it if all are known; else the FLOPs from its
        own arguments."""
        parts = [self.flops(each) for each in self._below(call)]
        if parts and None not in parts:
            return sum(parts)
        return flops(call, self._result_of(call))

    def _below(self, each: Range) -> Iterator[Range]:
        """The outermost counted ranges in a range that launched kernels."""
        for child in each.children:
            if child in self._launching:
                yield from (child,) if is_counted(child) else self._below(child)

    def _result_of(self, each: Range) -> list[int] | None:
        """The size of a convolution's result, from its linked backward work."""
        around: Range | None = each
        while around is not None and bare(around.name) in CONVOLUTIONS:
            if id(around) in self._gradient:
                return self._gradient[id(around)]
            around = around.parent
        return None
