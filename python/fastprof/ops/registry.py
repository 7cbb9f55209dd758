"""Which model serves an operator: (module, op) of a call to a function that costs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastprof.call import Call
from fastprof.ops.cost import CannotModel, Work

__all__ = ["DIRECTIONS", "MODULES", "find", "has_model", "model", "work"]

Model = Callable[[Call, str], Work]

DIRECTIONS: Final = frozenset({"fprop", "bprop"})

# Where torch puts the same operator: a function, a method, a binding, an ATen operator. An op
# name means one operator in all of them; a model that must tell them apart reads call.mod.
MODULES: Final = frozenset(
    {
        "aten",
        "operator",
        "Tensor",
        "torch",
        "torch.Tensor",
        "torch._C",
        "torch._C._nn",
        "torch.linalg",
        "torch.nn.functional",
        "torch.special",
    }
)

_models: dict[str, Model] = {}


def model(*names: str) -> Callable[[Model], Model]:
    """Register the decorated function as the model of these op names, in every module above.

    Parameters
    ----------
    *names : str
        Op names, as "mm", "addmm_" or "__matmul__".

    Raises
    ------
    ValueError
        When a name has a model already.
    """

    def register(function: Model) -> Model:
        for name in names:
            if name in _models:
                raise ValueError(f"op {name!r} has a model already: {_models[name]!r}")
            _models[name] = function
        return function

    return register


def find(call: Call) -> Model | None:
    """Model of the operator that is called, None when there is none."""
    return _models.get(call.op) if call.mod in MODULES else None


def work(call: Call, direction: str) -> Work | None:
    """Work of a call in one direction.

    Parameters
    ----------
    call : Call
        The call, forward also where its backward pass is asked for.
    direction : str
        "fprop" or "bprop".

    Returns
    -------
    Work or None
        None when the operator has no model, the model cannot read these arguments, or the
        operator has no backward pass.

    Raises
    ------
    ValueError
        When the direction is neither. The call itself never raises, however malformed.
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction {direction!r} is not one of {sorted(DIRECTIONS)}")
    function = find(call)
    if function is None:
        return None
    try:
        return function(call, direction)
    except CannotModel:
        return None


def has_model(call: Call) -> bool:
    """Whether the call's own work is known: it has a model that can read its arguments."""
    return work(call, "fprop") is not None
