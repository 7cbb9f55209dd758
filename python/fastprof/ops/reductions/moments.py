"""FLOPs and bytes of variances and standard deviations."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import SQUARE_ROOT
from fastprof.ops.axes import Dims, left
from fastprof.ops.cost import Cost, add_known
from fastprof.ops.dtypes import parts, real_result
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import byte_count, elements, tensor_bytes, tensor_text

__all__: list[str] = []

# name -> (FLOPs to finish one output, whether the mean is a second output)
_MOMENTS: Final = {
    "var": (2, False),
    "std": (2 + SQUARE_ROOT, False),
    "var_mean": (2, True),
    "std_mean": (2 + SQUARE_ROOT, True),
}

_DOCUMENTATION: Final = """{what} of x [..] over the dimensions dim (all without them) -> [..].

    FLOPs: 4 for each element (an addition for the mean, difference, square and addition for the
    variance) and {finish} for each output{root}; backward 4 for each element (the mean
    again, difference and two products).
    Bytes: x read, the outputs written; backward x, the outputs and their gradients read, the
    gradient of x written.

    A complex element counts twice that. If dim is not recorded, per-output FLOPs count for one
    output, and the cost is an estimate.
    """


def _register(name: str, finish: int, with_mean: bool) -> None:
    # ATen has (x, unbiased) and (x, dim, .., ..), distinguished by the number of arguments.
    def formula(
        x: Tensor,
        dim: Ints | bool | Unknown | None = None,
        keepdim: bool | Unknown | None = None,
        axis: Dims = None,
        second: Ints | bool | Unknown | None = None,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        if keepdim is not None and second is not None:
            dim = second
        dim = axis if dim is None or isinstance(dim, bool) else dim
        outputs, count = left(x.shape, dim), elements(x.shape) * parts(x.dtype)
        spread = None if outputs is None else byte_count(outputs, real_result(x.dtype))
        mean: int | None = 0
        if with_mean:
            mean = None if outputs is None else byte_count(outputs, x.dtype)
        flops = 4 * count + (1 if outputs is None else outputs) * finish
        moved = add_known(tensor_bytes(x), spread, mean)
        if direction == "bprop":
            flops = 4 * count
            written = byte_count(elements(x.shape), x.dtype)
            moved = add_known(moved, spread, mean, written)
        exact = outputs is not None or direction == "bprop"
        return Cost(flops, moved, exact), tensor_text(x)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = _DOCUMENTATION.format(
        what="Standard deviation" if "std" in name else "Variance",
        finish=finish,
        root=", its root with it" if "std" in name else "",
    )
    op(
        TORCH,
        f"{name}(x, dim, unbiased=_, keepdim, axis)",
        aten=(f"{name}(x, second, _, keepdim, ...)",),
    )(formula)


for _name, (_finish, _with_mean) in _MOMENTS.items():
    _register(_name, _finish, _with_mean)
