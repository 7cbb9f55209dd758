"""What one range name says."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from fastprof.model.call import Call

EVALUATE: Final = "autograd::engine::evaluate_function: "  # before a node's name


class Kind(enum.IntEnum):
    """What a range is for."""

    USER = 0
    ARGUMENT = 1
    MODULE = 2
    TRACE = 3
    LAYER = 4
    TORCH = 5
    FRAME = 6  # one function of a Python stack
    HIDDEN = 7  # a Python function without a line of its own


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one range name says. Hashable; equal names have equal meanings.

    Parameters
    ----------
    kind : Kind
        The form that the name has.
    label : str
        The name as it was given to `read`.
    name : str
        The torch name without sizes, the name of the layer, the whole label for other kinds.
    call : Call or None
        The call of an argument marker or of a torch range; None for other kinds.
    has_arguments : bool
        Whether the range gave arguments (sizes, for torch); if not, `call.args` says nothing.
    frames : tuple of str
        `file:line`, the line that ran, outermost first, without what `frames.is_library_frame`
        leaves out: the whole stack. Of a FRAME `file:line function`, where it is defined.
    layers : tuple of str
        The layers around an operator, outermost first, where its range tells them.
    function_stack : str or None
        The function stack of a trace marker that has one.
    module_repr : str or None
        The text of a module marker, such as `512, 512`.
    backward : bool
        Whether the torch range is a part of the backward pass.
    autograd_node : bool
        Whether the torch range is the run of one node of the autograd graph (`MulBackward0`), not
        an operator for the backward pass (`aten::threshold_backward`).
    recompute : bool
        Whether the range runs a forward pass again (activation checkpointing).
    engine : bool
        Whether the range runs backward because the autograd engine runs it, whatever its name: sums
        of gradients and hooks are plain operators.
    """

    kind: Kind
    label: str
    name: str
    call: Call | None = None
    has_arguments: bool = False
    frames: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    function_stack: str | None = None
    module_repr: str | None = None
    backward: bool = False
    autograd_node: bool = False
    recompute: bool = False
    engine: bool = False

    @property
    def is_operator(self) -> bool:
        """Whether it is an operator of a forward pass, by its name."""
        return self.kind == Kind.TORCH and not self.backward and not self.recompute

    @property
    def evaluates(self) -> bool:
        """Whether it is all that the autograd engine runs for a node: the node, hooks, sums."""
        return self.name.startswith(EVALUATE)
