"""The meaning of one range name: its kind and the data parsed from it."""

from __future__ import annotations

import enum
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof.model.call import Arg, Call, Tensor
from fastprof.model.markers.collectives import Collective

EVALUATE: Final = "autograd::engine::evaluate_function: "  # prefix of a node's name


class Kind(enum.IntEnum):
    """The kind of a range."""

    USER = 0
    ARGUMENT = 1
    MODULE = 2
    TRACE = 3
    LAYER = 4
    TORCH = 5
    FRAME = 6  # one function of a Python stack
    HIDDEN = 7  # a Python function without a source line


def text_of(name: str, args: tuple[Arg, ...]) -> str:
    """The text of torch's range of a call, as emit_nvtx writes it: name and sizes of tensors."""
    sizes = []
    for arg in args:
        value = arg.value
        if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
            sizes += [_size(item) for item in value]
        else:
            sizes.append(_size(value))
    return f"{name}, sizes = [{', '.join(sizes)}]"


def _size(value: Any) -> str:
    return f"[{', '.join(map(str, value.shape))}]" if isinstance(value, Tensor) else "[]"


@dataclass(frozen=True, slots=True)
class Details:
    """What the names of few ranges tell; see `Meaning`, which has these attributes too."""

    frames: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    function_stack: str | None = None
    module_repr: str | None = None
    collective: Collective | None = None
    triton: str | None = None


NO_DETAILS: Final = Details()

# Bits of `Meaning.traits`.
HAS_ARGUMENTS: Final = 1
BACKWARD: Final = 2
AUTOGRAD_NODE: Final = 4
RECOMPUTE: Final = 8
ENGINE: Final = 16


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of one range name. Hashable; equal names have equal meanings.

    A capture may have as many as it has kernels: what most of them lack is in `details`, and what
    is true or false is a bit of `traits`.

    Parameters
    ----------
    kind : Kind
        The form of the name.
    text : str or None
        The name as passed to `read`; None if it is `text_of` the name and the arguments of `call`.
    name : str
        The torch name without sizes, the name of the layer, the label for other kinds.
    call : Call or None
        The call of an argument marker or of a torch range; None for other kinds.
    traits : int
        HAS_ARGUMENTS, BACKWARD, AUTOGRAD_NODE, RECOMPUTE, ENGINE, added up.
    details : Details
        The following.

    Attributes
    ----------
    frames : tuple of str
        The stack as `file:line` (the executing lines), outermost first, without frames for which
        `frames.is_library_frame` is true. For a FRAME, `file:line function` of the definition.
    layers : tuple of str
        The layers around an operator, outermost first, if its range records them.
    function_stack : str or None
        The function stack of a trace marker that has one.
    module_repr : str or None
        The text of a module marker, such as `512, 512`.
    collective : Collective or None
        The profiler's record of a collective.
    triton : str or None
        What is recorded of a Triton kernel: `XBLOCK=2, R0_BLOCK=2048, num_warps=8, num_stages=1`.
    """

    kind: Kind
    text: str | None
    name: str
    call: Call | None = None
    traits: int = 0
    details: Details = NO_DETAILS

    @property
    def label(self) -> str:
        """The name as passed to `read`."""
        if self.text is None:
            return text_of(self.name, self.call.args if self.call else ())
        return self.text

    @property
    def has_arguments(self) -> bool:
        """Whether it contains arguments (for torch, sizes). If not, `call.args` is empty."""
        return self.traits & HAS_ARGUMENTS != 0

    @property
    def backward(self) -> bool:
        """Whether the torch range belongs to the backward pass."""
        return self.traits & BACKWARD != 0

    @property
    def autograd_node(self) -> bool:
        """Whether the torch range executes a node of the autograd graph (`MulBackward0`), as
        opposed to an operator of the backward pass (`aten::threshold_backward`).
        """
        return self.traits & AUTOGRAD_NODE != 0

    @property
    def recompute(self) -> bool:
        """Whether the range recomputes a forward pass (activation checkpointing)."""
        return self.traits & RECOMPUTE != 0

    @property
    def engine(self) -> bool:
        """Whether the autograd engine runs the range, and hence backward, whatever its name:
        gradient accumulation and hooks are plain operators.
        """
        return self.traits & ENGINE != 0

    @property
    def frames(self) -> tuple[str, ...]:
        return self.details.frames

    @property
    def layers(self) -> tuple[str, ...]:
        return self.details.layers

    @property
    def function_stack(self) -> str | None:
        return self.details.function_stack

    @property
    def module_repr(self) -> str | None:
        return self.details.module_repr

    @property
    def collective(self) -> Collective | None:
        return self.details.collective

    @property
    def triton(self) -> str | None:
        return self.details.triton

    @property
    def is_operator(self) -> bool:
        """Whether this is an operator of a forward pass, by its name."""
        return self.kind == Kind.TORCH and not self.traits & (BACKWARD | RECOMPUTE)

    @property
    def evaluates(self) -> bool:
        """Whether this is the engine's range of a node: the node itself, hooks and accumulation."""
        return self.name.startswith(EVALUATE)
