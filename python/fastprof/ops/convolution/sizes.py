"""Sizes of a convolution from its arguments: FLOPs, bytes and params.

In cuDNN's notation: x [N, C, H, W], weight [K, C/g, R, S], output [N, K, P, Q]. A transposed
convolution is the input gradient of one; its weight is [C, K/g, R, S].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Final, TypeAlias

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.dtypes import is_complex, result_type, short_type
from fastprof.ops.parameters import Int, Ints
from fastprof.ops.tensor import byte_count, fresh, moved
from fastprof.ops.tensor_cores import why_not


def is_transposed(x: Tensor, weight: Tensor, filters: int | None) -> bool:
    """Whether a convolution is transposed, by its channels.

    Raises CannotModel when they fit both, or neither.
    """
    plain, transposed = (_fit(x, weight, filters, flag) for flag in (False, True))
    if plain == transposed:
        raise CannotModel("the channels do not determine whether the convolution is transposed")
    return transposed


def is_transposed_likely(x: Tensor, weight: Tensor, output: Tensor) -> tuple[bool, bool]:
    """Whether a convolution with known output is transposed, and whether that is certain.

    If channels fit both kinds, equal image sizes have the same cost either way, and a smaller
    output is assumed to be that of a plain convolution. A transposed one shrinks an image only if
    its padding exceeds half of the kernel. Raises CannotModel when channels fit neither, or fit
    both and the output is larger.
    """
    rank = rank_of(weight)
    before, after = images(x, rank), images(output, rank)
    plain, transposed = (_fit(x, weight, after.channels, flag) for flag in (False, True))
    if not plain or not transposed:
        return is_transposed(x, weight, after.channels), True
    if any(new > old for old, new in zip(before.sizes, after.sizes, strict=True)):
        raise CannotModel("cannot determine whether the convolution is transposed")
    return False, before.sizes == after.sizes


def _fit(x: Tensor, weight: Tensor, filters: int | None, transposed: bool) -> bool:
    # Whether the channels fit the weight for some number of groups; `filters` None always fits.
    channels = images(x, rank_of(weight)).channels
    first, each = weight.shape[:2]
    whole, grouped = (channels, filters) if transposed else (filters, channels)
    if whole not in (None, first):
        return False
    if grouped is None or not each:
        return True
    return grouped > 0 and grouped % each == 0 and first % (grouped // each) == 0


_RANKS: Final = (1, 2, 3)


class Images(NamedTuple):
    """A batch of images, the input or the output of a convolution: [N, channels, *sizes]."""

    batch: int
    channels: int
    sizes: Sizes


def images(tensor: Tensor, rank: int) -> Images:
    """Split a shape. A shape without a batch dimension is a batch of one.

    Raises CannotModel when it does not have `rank` dimensions after the channels.
    """
    shape = tensor.shape
    if len(shape) not in (rank + 1, rank + 2):
        raise CannotModel(f"shape {shape} is not that of images in {rank} dimensions")
    batch = shape[0] if len(shape) == rank + 2 else 1
    return Images(batch, shape[-rank - 1], shape[-rank:])


def rank_of(weight: Tensor) -> int:
    """Dimensions of the images that a weight is for.

    Raises CannotModel when they are not one to three, or the kernel has no elements.
    """
    rank = len(weight.shape) - 2
    if rank not in _RANKS or min(weight.shape[2:]) < 1:
        raise CannotModel(f"weight has shape {weight.shape}")
    return rank


def permuted(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    """The tensor with its dimensions in another order; raises CannotModel if it has others."""
    shape, strides = tensor.shape, tensor.strides
    if len(shape) != len(order):
        raise CannotModel(f"shape {shape} does not have {len(order)} dimensions")
    if strides is not None and len(strides) == len(order):
        strides = tuple(strides[i] for i in order)
    return Tensor(tuple(shape[i] for i in order), tensor.dtype, strides)


Sizes: TypeAlias = tuple[int, ...]


class ConvolutionWindow(NamedTuple):
    """The movement of the kernel over the image, by dimension; None if not recorded.

    `padding` is the sum of both sides: 'same' can pad them differently.
    """

    stride: Sizes | None
    padding: Sizes | None
    dilation: Sizes | None
    more: Sizes | None  # output_padding of a transposed convolution

    @classmethod
    def read(
        cls,
        kernel: Sizes,
        stride: Ints | Unknown,
        padding: Ints | str | Unknown,
        dilation: Ints | Unknown,
        output_padding: Ints | Unknown = 0,
    ) -> ConvolutionWindow:
        """Read the arguments of a call; raises CannotModel when torch would reject them."""
        rank = len(kernel)
        steps = _by_dimension("stride", stride, rank, 1)
        spread = _by_dimension("dilation", dilation, rank, 1)
        more = _by_dimension("output_padding", output_padding, rank, 0)
        if padding == "same":
            if steps not in (None, (1,) * rank):
                raise CannotModel(f"padding 'same' requires stride 1, found {steps}")
            steps = (1,) * rank
            both = spread and tuple(d * (k - 1) for d, k in zip(spread, kernel, strict=True))
        elif isinstance(padding, str):
            if padding != "valid":
                raise CannotModel(f"padding {padding!r} is neither 'same' nor 'valid'")
            both = (0,) * rank
        else:
            side = _by_dimension("padding", padding, rank, 0)
            both = side and tuple(2 * size for size in side)
        return cls(steps, both, spread, more)

    def output(self, image: Sizes, kernel: Sizes, transposed: bool) -> Sizes | None:
        """Sizes of the output; None if unknown.

        Raises CannotModel when the padded image is smaller than the kernel.
        """
        if self.stride is None or self.padding is None or self.dilation is None:
            return None
        reach = [d * (k - 1) for d, k in zip(self.dilation, kernel, strict=True)]
        pairs = zip(image, self.stride, self.padding, reach, strict=True)
        if not transposed:
            sizes = tuple((n + pad - far - 1) // step + 1 for n, step, pad, far in pairs)
        elif self.more is None:
            return None
        else:
            grown = [(n - 1) * step - pad + far + 1 for n, step, pad, far in pairs]
            sizes = tuple(n + more for n, more in zip(grown, self.more, strict=True))
        if min(sizes) < (0 if transposed else 1):
            raise CannotModel(f"image {image} is too small for the kernel {kernel}")
        return sizes


def touched(size: int, kernel: int, output: int, stride: int, before: int, dilation: int) -> int:
    """Number of the `size` positions of an image that a convolution reads along one dimension.

    Parameters
    ----------
    size, kernel, output : int
        Extents of the image, of the kernel and of the output.
    stride, before, dilation : int
        Steps of the kernel, padding before the image, distance of the kernel's elements.

    Returns
    -------
    int
        Fewer than `size` if the stride skips positions or trailing positions remain: ceil(size /
        stride) for a kernel of one element without padding.
    """
    runs: dict[int, list[tuple[int, int]]] = {}  # positions by remainder modulo the stride
    for element in range(kernel):
        first, rest = divmod(element * dilation - before, stride)
        last = min(first + output - 1, (size - 1 - rest) // stride)
        runs.setdefault(rest, []).append((max(first, 0), last))
    count = 0
    for spans in runs.values():
        end = -1
        for first, last in sorted(spans):
            count += max(last - max(first, end + 1) + 1, 0)
            end = max(end, last)
    return count


def _by_dimension(name: str, value: Ints | Unknown, rank: int, least: int) -> Sizes | None:
    if isinstance(value, Unknown):
        return None
    values = (value,) if isinstance(value, int) else value
    sizes = values * rank if len(values) == 1 else values
    if len(sizes) != rank or min(sizes) < least:
        raise CannotModel(f"{name} {value!r} does not fit {rank} dimensions")
    return sizes


# Names in params by dimension; the last ones for fewer than three. Depth as in CUTLASS (D, Z, T).
_IMAGE: Final = ("D", "H", "W")
_OUTPUT: Final = ("Z", "P", "Q")
_KERNEL: Final = ("T", "R", "S")
_PADDING: Final = ("pd", "ph", "pw")
_STRIDE: Final = ("sd", "U", "V")
_DILATION: Final = ("dd", "dh", "dw")


@dataclass(frozen=True, slots=True)
class Convolution:
    """Sizes of a convolution; None if not recorded.

    Parameters
    ----------
    batch, channels, filters : int
        N, C (of the input) and K (of the output).
    image, kernel, output : tuple of int
        Sizes of the input, of the weight, and of the output, by dimension.
    weights : int
        Elements of the weight.
    groups : int
    transposed : bool
    window : Window
    dtype : str
        Canonical type of the output.
    exact : bool
        Whether it is certain if the convolution is transposed.
    """

    batch: int
    channels: int | None
    filters: int | None
    image: Sizes | None
    kernel: Sizes
    output: Sizes | None
    weights: int
    groups: int | None
    transposed: bool
    window: ConvolutionWindow
    dtype: str | None
    exact: bool = True

    @property
    def flops(self) -> int:
        """Multiplications and additions of the forward pass, and of either gradient.

        One multiply-add for each weight and position of the output (of the input, if transposed),
        including padding. A complex multiply-add is eight real operations. Raises CannotModel when
        the number of positions is unknown.
        """
        positions = self.image if self.transposed else self.output
        if positions is None:
            raise CannotModel("the size of the output is unknown without stride and padding")
        multiply_add = 8 if is_complex(self.dtype) else 2
        return multiply_add * self.batch * prod(positions) * self.weights

    @property
    def additions(self) -> int | None:
        """FLOPs of one addition per element of the output."""
        if self.outputs is None:
            return None
        return self.outputs * (2 if is_complex(self.dtype) else 1)

    @property
    def outputs(self) -> int | None:
        """Elements of the output."""
        if self.output is None or self.filters is None:
            return None
        return self.batch * self.filters * prod(self.output)

    @property
    def pixels_read(self) -> int | None:
        """Positions read per channel of an input image.

        A transposed convolution reads all. Without stride, padding and dilation, this is the upper
        bound: each output reads as many positions as the kernel has.
        """
        if self.image is None or self.transposed or self.output is None:
            return None if self.image is None else prod(self.image)
        window, extents = self.window, zip(self.image, self.kernel, self.output, strict=True)
        if window.stride is None or window.padding is None or window.dilation is None:
            return prod(min(size, kernel * output) for size, kernel, output in extents)
        moves = zip(window.stride, window.padding, window.dilation, strict=True)
        return prod(
            touched(*sizes, stride, padding // 2, dilation)
            for sizes, (stride, padding, dilation) in zip(extents, moves, strict=True)
        )

    @property
    def params(self) -> str:
        """The params text; padding is that before the image if the sides differ."""
        window = self.window
        before = window.padding and tuple(size // 2 for size in window.padding)
        rank = len(self.kernel)
        fields = [
            _field("N", self.batch),
            _field("C", self.channels),
            *_fields(_IMAGE, self.image, rank),
            _field("K", self.filters),
            *_fields(_OUTPUT, self.output, rank),
            *_fields(_KERNEL, self.kernel, rank),
            *_fields(_PADDING, before, rank),
            *_fields(_STRIDE, window.stride, rank),
            *_fields(_DILATION, window.dilation, rank),
            _field("g", self.groups),
        ]
        return f"{','.join(fields)},{short_type(self.dtype)},"

    @property
    def bias_params(self) -> str:
        """The params text of a kernel that adds the bias, or sums its gradient."""
        outputs = _fields(_OUTPUT, self.output, len(self.kernel))
        fields = [_field("N", self.batch), _field("K", self.filters), *outputs]
        return f"{','.join(fields)},{short_type(self.dtype)},"

    @property
    def no_tensor_cores(self) -> str:
        """Why its kernels may not use tensor cores: the channels per group must be aligned."""
        named = (("C", self.channels), ("K", self.filters))
        groups = self.groups
        sizes = {key: size // groups for key, size in named if size is not None and groups}
        return why_not(self.dtype, sizes, cudnn=True)


def _field(name: str, size: int | None) -> str:
    return f"{name}={'na' if size is None else size}"


def _fields(names: tuple[str, ...], sizes: Sizes | None, rank: int) -> list[str]:
    return [_field(*pair) for pair in zip(names[-rank:], sizes or (None,) * rank, strict=True)]


class Steps(NamedTuple):
    """Stride, padding and dilation of a call, and its groups."""

    stride: Ints | Unknown
    padding: Ints | Unknown
    dilation: Ints | Unknown
    groups: Int


# Those of a call whose padding may also be a text.
AnySteps: TypeAlias = tuple[Ints | Unknown, Ints | str | Unknown, Ints | Unknown, Int]


def sized(
    x: Tensor,
    weight: Tensor,
    steps: AnySteps,
    *,
    transposed: bool = False,
    output_padding: Ints | Unknown = 0,
    filters: int | None = None,
    exact: bool = True,
) -> Convolution:
    """Sizes of the convolution of x with a weight.

    Raises CannotModel when torch would reject these arguments.

    Parameters
    ----------
    steps : tuple
        Stride, padding, dilation and groups.
    filters : int, optional
        Channels of the output, if known other than from weight and groups.
    exact : bool, optional
        Whether `transposed` is certain.
    """
    stride, padding, dilation, groups = steps
    batch, channels, image = images(x, rank_of(weight))
    first, each, *_ = weight.shape  # each: channels of one group
    many = channels if not transposed else filters
    if isinstance(groups, Unknown) and many is not None and each:
        groups = many // each
    known = None if isinstance(groups, Unknown) else groups
    if not transposed:
        filters = first
    elif known is not None:
        filters = known * each
    _check_channels(channels, filters, weight.shape, known, transposed)
    kernel = weight.shape[2:]
    window = ConvolutionWindow.read(kernel, stride, padding, dilation, output_padding)
    return Convolution(
        batch=batch,
        channels=channels,
        filters=filters,
        image=image,
        kernel=kernel,
        output=window.output(image, kernel, transposed),
        weights=prod(weight.shape),
        groups=known,
        transposed=transposed,
        window=window,
        dtype=result_type((x, weight)),
        exact=exact,
    )


def _check_channels(
    channels: int, filters: int | None, weight: Sizes, groups: int | None, transposed: bool
) -> None:
    # weight [K, C/g, ...], or [C, K/g, ...] where transposed
    first, each = weight[:2]
    whole, grouped = (channels, filters) if transposed else (filters, channels)
    fits = whole == first
    if groups is not None:
        fits &= groups > 0 and first % groups == 0 and grouped in (None, groups * each)
    if not fits:
        raise CannotModel(f"weight {weight} in {groups} groups does not fit {channels} channels")


def with_output(convolution: Convolution, output: Tensor) -> Convolution:
    """The convolution with the sizes of its output taken from a tensor.

    Raises CannotModel when they contradict the arguments.
    """
    result = images(output, len(convolution.kernel))
    known = (
        (convolution.batch, result.batch),
        (convolution.filters, result.channels),
        (convolution.output, result.sizes),
    )
    if any(expected not in (None, size) for expected, size in known):
        raise CannotModel(f"an output of shape {output.shape} does not fit")
    return replace(convolution, filters=result.channels, output=result.sizes)


def with_result(convolution: Convolution, result: Tensor | Unknown) -> Convolution:
    """The convolution; if its arguments do not determine the output, with the result's sizes.

    A result that contradicts the arguments is ignored.
    """
    if isinstance(result, Unknown) or convolution.output is not None:
        return convolution
    try:
        return with_output(convolution, result)
    except CannotModel:
        return convolution


def mirrored(convolution: Convolution) -> Convolution:
    """The convolution whose input gradient this one computes: input and output are swapped."""
    return replace(
        convolution,
        channels=convolution.filters,
        filters=convolution.channels,
        image=convolution.output,
        output=convolution.image,
        transposed=not convolution.transposed,
    )


# Libraries also implement convolutions as matrix products.
_CONVOLUTION: Final = frozenset({"convolution", "gemm"})
_ELEMENTWISE: Final = frozenset({"elementwise"})
_REDUCTION: Final = frozenset({"reduction"})


def convolution_forward(
    sizes: Convolution,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    addend: Tensor | None = None,
    *,
    fused: bool = False,
) -> Work:
    """Input (the part the kernel covers), weight, bias and addend read; output written.

    A bias that is not `fused` is a separate part: one addition for each output, which is read and
    written again.
    """
    written = _output_bytes(sizes)
    moves = add_known(written, moved(weight, bias, addend), read_bytes(sizes, x))
    cost, reason = Cost(sizes.flops, moves, sizes.exact), sizes.no_tensor_cores
    main = Part("main", cost, sizes.params, kernels=_CONVOLUTION, no_tensor_cores=reason)
    if bias is None or fused:
        return Work((main,))
    added = Cost(sizes.additions, add_known(written, written), sizes.exact)
    part = Part("bias", added, sizes.bias_params, "bias", _ELEMENTWISE, optional=True)
    return Work((main, part))


def convolution_backward(
    sizes: Convolution,
    x: Tensor,
    weight: Tensor,
    gradient: Tensor | None = None,
    wanted: tuple[bool | None, ...] = (None, None, None),
) -> Work:
    """Gradients of input, weight and bias.

    Parameters
    ----------
    gradient : Tensor, optional
        The output's gradient; by default, of the output's size and type.
    wanted : tuple of bool or None
        Whether the gradients of input, weight and bias are computed; None: if a kernel does.
    """
    read = _output_bytes(sizes) if gradient is None else moved(gradient)
    of_x = add_known(read, moved(weight, fresh(x)))
    of_weight = add_known(read, read_bytes(sizes, x), moved(fresh(weight)))
    makers: tuple[Callable[[], Part], ...] = (
        lambda: gradient_part("dgrad", sizes, of_x),
        lambda: gradient_part("wgrad", sizes, of_weight),
        lambda: _bias_gradient(sizes, read),
    )
    parts = []
    for make, flag in zip(makers, wanted, strict=True):
        if flag is not False:
            parts.append(replace(make(), optional=flag is None))
    if not parts:
        parts = [Part("main", Cost(0, 0), sizes.params)]
    return Work(tuple(parts))


def gradient_part(role: str, sizes: Convolution, moves: int | None) -> Part:
    """The gradient of the input, "dgrad", or of the weight, "wgrad": from dy and the other one.

    The names of cuDNN's kernels identify it.
    """
    cost = Cost(sizes.flops, moves, sizes.exact)
    reason = sizes.no_tensor_cores
    return Part(role, cost, sizes.params, None, _CONVOLUTION, role, no_tensor_cores=reason)


def _bias_gradient(sizes: Convolution, read: int | None) -> Part:
    written = None if sizes.filters is None else byte_count(sizes.filters, sizes.dtype)
    cost = Cost(sizes.additions, add_known(read, written), sizes.exact)
    return Part("bias", cost, sizes.bias_params, "bias", _REDUCTION)


def _output_bytes(sizes: Convolution) -> int | None:
    return None if sizes.outputs is None else byte_count(sizes.outputs, sizes.dtype)


def read_bytes(sizes: Convolution, x: Tensor) -> int | None:
    """Bytes of the input that the forward pass and the weight gradient read.

    A kernel smaller than its stride skips the rest.
    """
    pixels, channels = sizes.pixels_read, sizes.channels
    whole = moved(x)
    if whole is None or pixels is None or channels is None:
        return whole
    met = byte_count(sizes.batch * channels * pixels, x.dtype)
    return whole if met is None else min(whole, met)
