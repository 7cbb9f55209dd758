"""FLOPs and bytes of random numbers: one formula and a table of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM, SQUARE_ROOT, TRIGONOMETRIC
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.dtypes import Dtype, chosen
from fastprof.ops.parameters import Ints, Number
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.tensor import broadcast, elements, result_type
from fastprof.ops.traffic import fresh, moved, texts

# One number from the generator: PyProf's estimate for randperm. (Its 5 for dropout include a
# comparison and a scaling.)
RANDOM: Final = 3
UNIFORM: Final = RANDOM + 2  # scaled, shifted
NORMAL: Final = RANDOM + LOGARITHM + SQUARE_ROOT + TRIGONOMETRIC + 4  # sqrt(-2 log u) cos v
INTEGER: Final = RANDOM + 2  # remainder, shifted

# FLOPs per number, and their breakdown.
_IN_PLACE: Final = {
    "uniform": (UNIFORM, "random number 3, scaled, shifted"),
    "normal": (
        NORMAL,
        "random number 3, logarithm, root and cosine 60, the rest 4",
    ),
    "log_normal": (NORMAL + EXPONENTIAL, "a normal number 67, exponential 20"),
    "exponential": (RANDOM + LOGARITHM + 1, "random number 3, logarithm 20, divided"),
    "cauchy": (RANDOM + TRIGONOMETRIC + 4, "random number 3, tangent 20, 4 around it"),
    "geometric": (RANDOM + LOGARITHM + 2, "random number 3, logarithm 20, divided, rounded"),
    "random": (INTEGER, "random number 3, remainder, shifted"),
}
_MORE: Final = {
    "uniform": ("uniform", "_philox_uniform", "_philox_uniform_"),
    "normal": ("normal_functional", "_philox_normal", "_philox_normal_"),
}
_LIKE: Final = {"rand_like": UNIFORM, "randn_like": NORMAL}
_DEFAULT: Final = "float32"


def filled(output: Tensor, flops: int) -> tuple[Cost, str]:
    """Cost of filling a tensor with random numbers; it is not read."""
    return Cost(elements(output.shape) * flops, moved(output)), texts(output)


def _register_in_place(name: str, flops: int, what: str) -> None:
    def fill(x: Tensor) -> tuple[Cost, str]:
        return filled(fresh(x), flops)

    fill.__doc__ = f"""x filled with random numbers of a distribution: {name}.

    FLOPs: {flops} per number ({what}).
    Bytes: x written.
    """
    _named(fill, name)
    # Operators without a trailing _ fill a new tensor of x's size; torch.normal differs.
    more = _MORE.get(name, (name,))
    op(TORCH, f"{name}_(x, ...)", aten=[f"{each}(x, ...)" for each in (f"{name}_", *more)])(fill)


def _named(formula: Callable[..., object], name: str) -> None:
    formula.__name__ = formula.__qualname__ = name


def _register_like(name: str, flops: int) -> None:
    def like(x: Tensor, dtype: Dtype = None) -> tuple[Cost, str]:
        return filled(Tensor(x.shape, chosen(dtype, x.dtype)), flops)

    like.__doc__ = f"""A new tensor of x's size filled with random numbers.

    FLOPs: {flops} per number.
    Bytes: the tensor written, in x's type by default; x is not read.
    """
    _named(like, name)
    op(TORCH, f"{name}(x, dtype=dtype, ...)", aten=(f"{name}(x, dtype, _, _, _, _)",))(like)


@operators("""
    (x, low=_, high=_, dtype=dtype): torch.randint_like
    (x, _, high_or_dtype, dtype, ...): aten::randint_like
""")
def randint_like(
    x: Tensor, dtype: Dtype = None, high_or_dtype: Dtype | Tensor = None
) -> tuple[Cost, str]:
    """A new tensor of x's size filled with random integers.

    FLOPs: 5 per number (random number 3, remainder, shifted).
    Bytes: the tensor written, in x's type by default; x is not read.

    ATen has overloads with one and with two limits: if a number may be the upper limit or a type,
    bytes are unknown.
    """
    sure = dtype is not None or high_or_dtype is None
    return filled(Tensor(x.shape, chosen(dtype, x.dtype) if sure else None), INTEGER)


_SIZES: Final = ("size", "second", "third", "fourth", "fifth", "sixth")


def _register_new(name: str, flops: int, distribution: str) -> None:
    def new(
        size: Ints,
        second: int | None = None,
        third: int | None = None,
        fourth: int | None = None,
        fifth: int | None = None,
        sixth: int | None = None,
        dtype: Dtype = None,
    ) -> tuple[Cost, str]:
        more = (second, third, fourth, fifth, sixth)
        first = size if isinstance(size, tuple) else (size,)
        return filled(
            _created((*first, *(each for each in more if each is not None)), dtype), flops
        )

    new.__doc__ = f"""A new tensor of the given size, filled with {distribution}.

    FLOPs: {flops} per number.
    Bytes: the tensor written.

    The default type is float32. Unknown if the capture does not record values: sizes are values.
    """
    _named(new, name)
    python = f"{name}({', '.join(_SIZES)}, dtype=dtype)"
    op(TORCH, python, aten=(f"{name}(size, dtype, ...)",))(new)


def _created(size: tuple[int, ...], dtype: Dtype, default: str = _DEFAULT) -> Tensor:
    if min(size, default=0) < 0:
        raise CannotModel(f"size {size!r} is negative")
    name = chosen(dtype, default)
    return Tensor(size, name)


@operators("""
    (high=_, size, dtype=dtype): torch.randint
    (low=_, high=_, size, dtype=dtype): torch.randint
    (_, size, dtype, ...): aten::randint
    (_, _, size, dtype, ...): aten::randint
""")
def randint(size: tuple[int, ...], dtype: Dtype = None) -> tuple[Cost, str]:
    """A new tensor of the given size, filled with random integers.

    FLOPs: 5 per number (random number 3, remainder, shifted).
    Bytes: the tensor written, int64 by default.
    """
    return filled(_created(size, dtype, "int64"), INTEGER)


@operators("""
    (n=count, dtype=dtype): torch.randperm
    (count, dtype, ...): aten::randperm
""")
def randperm(count: int, dtype: Dtype = None) -> tuple[Cost, str]:
    """A random permutation of n integers.

    FLOPs: 3 for each (a random number), PyProf's count.
    Bytes: the permutation written, int64 by default.

    Sorting the random numbers is not counted.
    """
    return filled(_created((count,), dtype, "int64"), RANDOM)


@operators("""
    (mean, std=deviation, size, dtype=dtype): torch.normal
    (mean, deviation, size, _, dtype, ...): aten::normal
""")
def normal(
    mean: Tensor | Number | Unknown,
    deviation: Tensor | Number | Unknown = 1.0,
    size: tuple[int, ...] | Unknown | None = None,
    dtype: Dtype = None,
) -> tuple[Cost, str]:
    """Normal numbers with elementwise mean and deviation, or of a given size.

    FLOPs: 67 per number (random number 3, logarithm, root and cosine 60, 2 products, mean,
    deviation).
    Bytes: means and deviations read if they are tensors, the numbers written.
    """
    given = [tensor for tensor in (mean, deviation) if isinstance(tensor, Tensor)]
    if isinstance(size, tuple):
        return filled(_created(size, dtype), NORMAL)
    if not any(tensor.shape or tensor.dtype for tensor in given):
        raise CannotModel("neither a tensor nor a size is in the capture")
    shape = broadcast(*(tensor.shape for tensor in given))
    output = Tensor(shape, result_type(given))
    return Cost(elements(shape) * NORMAL, moved(*given, output)), texts(*given)


@operators("(x, p, ...): bernoulli")
def bernoulli(x: Tensor, p: Tensor | Number | Unknown | None = None) -> tuple[Cost, str]:
    """Zeros and ones with probabilities x or p, in a new tensor of x's size.

    FLOPs: 4 for each (random number 3, compared).
    Bytes: the probabilities read (x, or p if it is a tensor), the result written.
    """
    return _drawn(x, x if p is None else p)


@operators("(x, p, ...): bernoulli_")
def bernoulli_in_place(x: Tensor, p: Tensor | Number | Unknown | None = None) -> tuple[Cost, str]:
    """x filled with zeros and ones with probability p, by default one half.

    FLOPs: 4 for each (random number 3, compared).
    Bytes: p read if it is a tensor; x written.
    """
    return _drawn(x, p)


def _drawn(x: Tensor, probabilities: Tensor | Number | Unknown | None) -> tuple[Cost, str]:
    read = probabilities if isinstance(probabilities, Tensor) else None
    return Cost(elements(x.shape) * (RANDOM + 1), moved(read, fresh(x))), texts(x)


@operators("""
    (x, num_samples=samples, ...): torch.multinomial
    (x, samples, ...): aten::multinomial
""")
def multinomial(x: Tensor, samples: int) -> tuple[Cost, str]:
    """Indices drawn from the rows of weights x[.., c] -> [.., samples].

    FLOPs: unknown: they depend on the search.
    Bytes: x read, the indices (int64) written.
    """
    if len(x.shape) not in (1, 2) or samples < 0:
        raise CannotModel(f"cannot draw {samples} samples from {x.shape}")
    drawn = fresh(x, (*x.shape[:-1], samples), "int64")
    return Cost(None, moved(x, drawn)), texts(x)


@operators("""
    (x, ...): poisson _standard_gamma _sample_dirichlet
    (x, other, ...): binomial
""")
def poisson(x: Tensor, other: Tensor | None = None) -> tuple[Cost, str]:
    """Samples of a distribution with parameters x (and another tensor), elementwise.

    FLOPs: unknown: numbers are drawn until one is accepted.
    Bytes: the parameters read, the numbers written.
    """
    shape = x.shape if other is None else broadcast(x.shape, other.shape)
    return Cost(None, moved(x, other, fresh(x, shape))), texts(x, other)


for _name, (_flops, _what) in _IN_PLACE.items():
    _register_in_place(_name, _flops, _what)
for _name, _flops in _LIKE.items():
    _register_like(_name, _flops)
_register_new("rand", UNIFORM, "uniform numbers")
_register_new("randn", NORMAL, "normal numbers")
