"""Fourier transforms.

FLOPs by convention: 5 n log2 n of a transform of n complex points, half of a real one. Source:
FFTW, "FFT benchmark methodology" (its mflops), based on Cooley and Tukey's algorithm for n = 2^k.
"""

from __future__ import annotations

from math import log2, prod
from typing import Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import Dims, axes
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import canonical_type
from fastprof.ops.parameters import Flag, Int
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, moved, texts

_COMPLEX: Final = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_REAL: Final = {name: real for real, name in _COMPLEX.items()}


def _cost(real: bool, shape: tuple[int, ...], dim: Dims, *both: Tensor) -> Answer:
    # `shape` is the number of points; for a real transform, that of the real side.
    along = axes(len(shape), dim)
    if along is None:
        flops, exact = None, False
    else:
        n = prod(shape[i] for i in along)
        steps = elements(shape) * log2(n) if n > 1 else 0
        flops, exact = round((2.5 if real else 5) * steps), True
    return Cost(flops, moved(*both), exact), texts(both[0])


def _complex(dtype: str | None) -> str | None:
    name = canonical_type(dtype)
    return _COMPLEX.get(name or "", name)


@operators("""
    Transform of complex numbers along some dimensions, forward or inverse.
    FLOPs: 5 n log2 n for each transform of n points (all dimensions together); backward the same.
    Bytes: x read, the same amount written; backward the same.
    (x, dim, _, _): aten::_fft_c2c
""")
def fft_c2c(x: Tensor, dim: Dims, *, direction: str) -> Answer:
    return _cost(False, x.shape, dim, x, Tensor(x.shape, x.dtype))


@operators("""
    Transform of real numbers -> complex ones, [.., n / 2 + 1] along the last dimension.
    FLOPs: 2.5 n log2 n for each transform of n points; backward the same.
    Bytes: x read, the result written; backward reversed.
    (x, dim, _, onesided): aten::_fft_r2c
""")
def fft_r2c(x: Tensor, dim: Dims, onesided: Flag = True, *, direction: str) -> Answer:
    halved = (dim,) if isinstance(dim, int) else dim
    shape = x.shape
    if isinstance(halved, tuple) and halved and onesided is not False:
        last = halved[-1] % max(len(shape), 1)
        shape = (*shape[:last], shape[last] // 2 + 1, *shape[last + 1 :])
    elif isinstance(halved, Unknown):
        shape = (*shape[:-1], shape[-1] // 2 + 1) if shape else shape
    return _cost(True, x.shape, dim, x, Tensor(shape, _complex(x.dtype)))


@operators("""
    Transform of one half of complex numbers -> real ones, [.., last_size].
    FLOPs: 2.5 n log2 n for each transform of n real points; backward the same.
    Bytes: x read, the result written; backward reversed.
    (x, dim, _, last_size): aten::_fft_c2r
""")
def fft_c2r(x: Tensor, dim: Dims, last_size: Int = UNKNOWN, *, direction: str) -> Answer:
    if isinstance(last_size, Unknown) or isinstance(dim, Unknown) or not dim:
        raise CannotModel("the size of the result is not in the capture")
    last = ((dim,) if isinstance(dim, int) else dim)[-1] % max(len(x.shape), 1)
    shape = (*x.shape[:last], last_size, *x.shape[last + 1 :])
    dtype = canonical_type(x.dtype)
    return _cost(True, shape, dim, x, Tensor(shape, _REAL.get(dtype or "", dtype)))
