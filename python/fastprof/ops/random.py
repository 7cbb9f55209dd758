"""Random numbers and dropout."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, SQUARE_ROOT, TRIGONOMETRIC
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import Dtype, chosen, result_type
from fastprof.ops.movement.copies import More
from fastprof.ops.parameters import Flag, Ints, Number
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import broadcast, elements, fresh, moved, texts

# One number from the generator: PyProf's estimate for randperm. (Its 5 for dropout include a
# comparison and a scaling.)
RANDOM: Final = 3
UNIFORM: Final = RANDOM + 2  # scaled, shifted
NORMAL: Final = RANDOM + LOGARITHM + SQUARE_ROOT + TRIGONOMETRIC + 4  # sqrt(-2 log u) cos v
INTEGER: Final = RANDOM + 2  # remainder, shifted

# FLOPs per number, and their breakdown.
_IN_PLACE: Final = {
    "uniform": (UNIFORM, "random number 3, scaled, shifted"),
    "normal": (NORMAL, "random number 3, logarithm, root and cosine 60, the rest 4"),
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
_DEFAULT: Final = "float32"


def filled(output: Tensor, flops: int) -> Answer:
    """Cost of filling a tensor with random numbers; it is not read."""
    return Cost(elements(output.shape) * flops, moved(output)), texts(output)


def _filled(x: Tensor, *, flops: int) -> Answer:
    return filled(fresh(x), flops)


def _like(x: Tensor, dtype: Dtype = None, *, flops: int) -> Answer:
    return filled(Tensor(x.shape, chosen(dtype, x.dtype)), flops)


@operators("""
    A new tensor of x's size filled with random integers.
    FLOPs: 5 per number (random number 3, remainder, shifted).
    Bytes: the tensor written, in x's type by default; x is not read.

    ATen has overloads with one and with two limits: if a number may be the upper limit or a type,
    bytes are unknown.
    (x, low=_, high=_, dtype=dtype): torch.randint_like
    (x, _, high_or_dtype, dtype, ...): aten::randint_like
""")
def randint_like(x: Tensor, dtype: Dtype = None, high_or_dtype: Dtype | Tensor = None) -> Answer:
    sure = dtype is not None or high_or_dtype is None
    return filled(Tensor(x.shape, chosen(dtype, x.dtype) if sure else None), INTEGER)


def _new(size: Ints, more: More, dtype: Dtype = None, *, flops: int) -> Answer:
    first = size if isinstance(size, tuple) else (size,)
    others = [number for number in more if number is not None]
    return filled(_created((*first, *others), dtype), flops)


def _created(size: tuple[int, ...], dtype: Dtype, default: str = _DEFAULT) -> Tensor:
    if min(size, default=0) < 0:
        raise CannotModel(f"size {size!r} is negative")
    return Tensor(size, chosen(dtype, default))


@operators("""
    A new tensor of the given size, filled with random integers.
    FLOPs: 5 per number (random number 3, remainder, shifted).
    Bytes: the tensor written, int64 by default.
    (high=_, size, dtype=dtype): torch.randint
    (low=_, high=_, size, dtype=dtype): torch.randint
    (_, size, dtype, ...): aten::randint
    (_, _, size, dtype, ...): aten::randint
""")
def randint(size: tuple[int, ...], dtype: Dtype = None) -> Answer:
    return filled(_created(size, dtype, "int64"), INTEGER)


@operators("""
    A random permutation of n integers.
    FLOPs: 3 for each (a random number), PyProf's count.
    Bytes: the permutation written, int64 by default.

    Sorting the random numbers is not counted.
    (n=count, dtype=dtype): torch.randperm
    (count, dtype, ...): aten::randperm
""")
def randperm(count: int, dtype: Dtype = None) -> Answer:
    return filled(_created((count,), dtype, "int64"), RANDOM)


@operators("""
    Normal numbers with elementwise mean and deviation, or of a given size.
    FLOPs: 67 per number (random number 3, logarithm, root and cosine 60, 2 products, mean,
    deviation).
    Bytes: means and deviations read if they are tensors, the numbers written.
    (mean, std=deviation, size, dtype=dtype): torch.normal
    (mean, deviation, size, _, dtype, ...): aten::normal
""")
def normal(
    mean: Tensor | Number | Unknown,
    deviation: Tensor | Number | Unknown = 1.0,
    size: tuple[int, ...] | Unknown | None = None,
    dtype: Dtype = None,
) -> Answer:
    given = [tensor for tensor in (mean, deviation) if isinstance(tensor, Tensor)]
    if isinstance(size, tuple):
        return filled(_created(size, dtype), NORMAL)
    if not any(tensor.shape or tensor.dtype for tensor in given):
        raise CannotModel("neither a tensor nor a size is in the capture")
    shape = broadcast(*(tensor.shape for tensor in given))
    output = Tensor(shape, result_type(given))
    return Cost(elements(shape) * NORMAL, moved(*given, output)), texts(*given)


def _drawn(x: Tensor, p: Tensor | Number | Unknown | None = None, *, in_place: bool) -> Answer:
    probabilities = x if p is None and not in_place else p
    read = probabilities if isinstance(probabilities, Tensor) else None
    return Cost(elements(x.shape) * (RANDOM + 1), moved(read, fresh(x))), texts(x)


table_row("""
    Zeros and ones with probabilities x or p, in a new tensor of x's size.
    FLOPs: 4 for each (random number 3, compared).
    Bytes: the probabilities read (x, or p if it is a tensor), the result written.
    (x, p, ...): bernoulli
""")(_drawn, in_place=False)

table_row("""
    x filled with zeros and ones with probability p, by default one half.
    FLOPs: 4 for each (random number 3, compared).
    Bytes: p read if it is a tensor; x written.
    (x, p, ...): bernoulli_
""")(_drawn, in_place=True)


@operators("""
    Indices drawn from the rows of weights x[.., c] -> [.., samples].
    FLOPs: unknown: they depend on the search.
    Bytes: x read, the indices (int64) written.
    (x, num_samples=samples, ...): torch.multinomial
    (x, samples, ...): aten::multinomial
""")
def multinomial(x: Tensor, samples: int) -> Answer:
    if len(x.shape) not in (1, 2) or samples < 0:
        raise CannotModel(f"cannot draw {samples} samples from {x.shape}")
    drawn = fresh(x, (*x.shape[:-1], samples), "int64")
    return Cost(None, moved(x, drawn)), texts(x)


@operators("""
    Samples of a distribution with parameters x (and another tensor), elementwise.
    FLOPs: unknown: numbers are drawn until one is accepted.
    Bytes: the parameters read, the numbers written.
    (x, ...): poisson _standard_gamma _sample_dirichlet
    (x, other, ...): binomial
""")
def poisson(x: Tensor, other: Tensor | None = None) -> Answer:
    shape = x.shape if other is None else broadcast(x.shape, other.shape)
    return Cost(None, moved(x, other, fresh(x, shape))), texts(x, other)


for _name, (_flops, _what) in _IN_PLACE.items():
    # Operators without a trailing _ fill a new tensor of x's size; torch.normal differs.
    _more = " ".join(f"aten::{name}" for name in _MORE.get(_name, (_name,)))
    table_row(f"""
        x filled with random numbers of a distribution: {_name}.
        FLOPs: {_flops} per number ({_what}).
        Bytes: x written.
        (x, ...): {_name}_ {_more}
    """)(_filled, flops=_flops)
for _name, _flops in (("rand_like", UNIFORM), ("randn_like", NORMAL)):
    table_row(f"""
        A new tensor of x's size filled with random numbers.
        FLOPs: {_flops} per number.
        Bytes: the tensor written, in x's type by default; x is not read.
        (x, dtype=dtype, ...): torch.{_name}
        (x, dtype, _, _, _, _): aten::{_name}
    """)(_like, flops=_flops)
for _name, _flops, _what in (("rand", UNIFORM, "uniform"), ("randn", NORMAL, "normal")):
    table_row(f"""
        A new tensor of the given size, filled with {_what} numbers.
        FLOPs: {_flops} per number.
        Bytes: the tensor written.

        The default type is float32. Unknown if the capture does not record values: sizes are
        values.
        (size, second, third, fourth, fifth, sixth, dtype=dtype): torch.{_name}
        (size, dtype, ...): aten::{_name}
    """)(_new, flops=_flops)


Probability: TypeAlias = float | Unknown
Training: TypeAlias = Flag | None

# The mask of a dropout is one byte per element.
_MASK: Final = "bool"
# SELU's dropout, x * noise + b: b = (noise - 1) a + c 3, noise * a 1, applied 2.
AFFINE: Final = 6


def _drops(p: Probability, training: Training, default: bool) -> tuple[bool, bool]:
    # Whether elements are dropped, and whether that is certain. torch returns x itself for p = 0.
    if training is False or (training is None and not default) or p == 0:
        return False, True
    return True, not isinstance(training, Unknown) and not isinstance(p, Unknown)


@operators("""
    x with random elements set to 0, the others divided by 1 - p.
    FLOPs: 5 per element (random number 3, compared, scaled), PyProf's count; backward 2 (mask,
    scaled). 0 outside training and for p = 0.
    Bytes: x read, y and a mask of one byte per element written. Backward reads dy and mask, writes
    dx. None outside training: y is x itself.

    PyProf leaves the mask out. If not recorded,  it is assumed to be training (not exact).
    (x, p, training, _, train): torch.dropout
    (x, p, train=training, _): torch.dropout_
    (x, p, training): native_dropout aten::dropout aten::dropout_
    (x, p, _): _fused_dropout
""")
def dropout(
    x: Tensor,
    p: Probability = 0.5,
    training: Training = None,
    train: Training = None,
    *,
    direction: str,
) -> Answer:
    dropping, exact = _drops(p, training if train is None else train, True)
    if not dropping:
        return Cost(0, 0, exact), texts(x)
    mask = fresh(x, dtype=_MASK)
    if direction == "bprop":
        return _gradient(fresh(x), mask, exact), texts(x)
    return Cost(elements(x.shape) * (RANDOM + 2), moved(x, fresh(x), mask), exact), texts(x)


def _gradient(gradient: Tensor, mask: Tensor, exact: bool = True) -> Cost:
    moves = moved(gradient, mask, fresh(gradient))
    return Cost(2 * elements(gradient.shape), moves, exact)


@operators("""
    dx of a dropout: dy masked and scaled.
    FLOPs: 2 per element (mask, scaled).
    Bytes: dy and mask read, dx written.
    (gradient, mask, _): native_dropout_backward _masked_scale
""")
def native_dropout_backward(gradient: Tensor, mask: Tensor) -> Answer:
    if gradient.shape != mask.shape:
        raise CannotModel(f"mask {mask.shape} does not fit {gradient.shape}")
    return _gradient(gradient, mask), texts(gradient)


def _channels(x: Tensor) -> Tensor:
    # One number for each channel of x[n, c, ..].
    if len(x.shape) < 2:
        raise CannotModel(f"shape {x.shape} has no channels")
    return fresh(x, x.shape[:2])


@operators("""
    x[n, c, ..] with random channels set to 0, the others divided by 1 - p.
    FLOPs: 5 for a channel (random number 3, compared, divided), 1 per element; backward 1. None
    outside training.
    Bytes: x read, y and a number for each channel written. Backward reads dy and those numbers,
    writes dx. None outside training.

    If not recorded,  it is assumed to be training (not exact). x without a batch counts as if its
    first two dimensions were batch and channels.
    (x, p, training, _): torch.dropout1d torch.dropout2d torch.dropout3d
    (x, p, train=training): torch.feature_dropout torch.feature_dropout_
    (x, p, training): aten::feature_dropout aten::feature_dropout_
""")
def feature_dropout(
    x: Tensor, p: Probability = 0.5, training: Training = None, *, direction: str
) -> Answer:
    dropping, exact = _drops(p, training, True)
    if not dropping:
        return Cost(0, 0, exact), texts(x)
    noise, flops = _channels(x), elements(x.shape)
    if direction == "bprop":
        return Cost(flops, moved(fresh(x), noise, fresh(x)), exact), texts(x)
    drawn = elements(noise.shape) * (RANDOM + 2)
    return Cost(flops + drawn, moved(x, fresh(x), noise), exact), texts(x)


def _alpha_dropout(
    x: Tensor,
    p: Probability = 0.5,
    training: Training = None,
    train: Training = None,
    *,
    by_channel: bool,
    direction: str,
) -> Answer:
    dropping, exact = _drops(p, training if train is None else train, False)
    if not dropping:
        return Cost(0, 0, exact), texts(x)
    noise = _channels(x) if by_channel else fresh(x)
    if direction == "bprop":
        return Cost(elements(x.shape), moved(fresh(x), noise, fresh(x)), exact), texts(x)
    drawn = elements(noise.shape) * (RANDOM + 1 + AFFINE - 2)
    return Cost(2 * elements(x.shape) + drawn, moved(x, fresh(x), noise), exact), texts(x)


for _name, _by_channel in (("alpha_dropout", False), ("feature_alpha_dropout", True)):
    table_row(f"""
        x with random elements (or channels) set to SELU's limit, then scaled and shifted to keep
        mean and variance.
        FLOPs: 8 for each number drawn (random number 3, compared, 4 for scale and shift), 2 per
        element; backward 1. None outside training.
        Bytes: x read, y and the numbers drawn written. Backward reads dy and the numbers, writes
        dx. None outside training.

        Counted as one kernel; torch uses several.
        (x, p, training, _, train): torch.{_name}
        (x, p, train=training): torch.{_name}_
        (x, p, training): aten::{_name} aten::{_name}_
    """)(_alpha_dropout, by_channel=_by_channel)
