"""The forward of torch.nn's recurrent modules in markers: states determine the weights."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.parameters import Tensors
from fastprof.ops.recurrent.layers import cell, layers_of
from fastprof.ops.registry import op

__all__: list[str] = []

_GATES: Final = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _register_modules(kind: str, gates: int) -> None:
    # The forward of torch.nn.LSTM and torch.nn.LSTMCell; the shapes determine the weights.
    def of_cell(x: Tensor, states: Tensors, *, direction: str) -> Work:
        if not x.shape or len(states) != _states_of(kind) or not states[0].shape:
            raise CannotModel("no recurrent cell without its states")
        hidden = states[0].shape[-1]
        w_ih = Tensor((gates * hidden, x.shape[-1]), x.dtype)
        w_hh = Tensor((gates * hidden, hidden), x.dtype)
        return cell(x, w_ih, w_hh, states=states, direction=direction)

    def of_layer(x: Tensor, states: Tensors, *, direction: str) -> Work:
        # Packed tokens are passed with their batch sizes and indices, of one dimension.
        found = [each for each in states if len(each.shape) > 1]
        if not x.shape or len(found) != _states_of(kind):
            raise CannotModel("no recurrent layer without its states")
        if found[0].shape[0] != 1:
            raise CannotModel(f"{found[0].shape[0]} layers or directions cannot be distinguished")
        if len(found[0].shape) == 2:  # one sequence without a batch dimension
            found = [Tensor((1, *each.shape), each.dtype) for each in found]
        projected, hidden = found[0].shape[-1], found[-1].shape[-1]
        shapes = [(gates * hidden, x.shape[-1]), (gates * hidden, projected)]
        if projected != hidden:
            shapes.append((projected, hidden))
        weights = (Tensor(shape, x.dtype) for shape in shapes)
        return layers_of(x, (*found, *weights), False).work(direction)

    of_cell.__doc__ = f"""torch.nn.{kind}Cell: x[n, i] and hidden[n, h], which determine the
    weights.

    FLOPs: 2 n {gates} h (i + h), gates not counted; backward two products for each.
    Bytes: as the function; biases are not recorded and not counted.
    """
    of_layer.__doc__ = f"""torch.nn.{kind} of one layer in one direction; shapes determine the
    weights.

    FLOPs: 2 tokens {gates} h (i + h), with a projection 2 tokens ({gates} h (i + p) + h p).
    Backward twice that.
    Bytes: as the function; biases are not recorded and not counted.

    Several layers or two directions are not modelled: the call does not distinguish them.
    """
    for name, function in ((f"{kind}Cell", of_cell), (kind, of_layer)):
        function.__name__ = function.__qualname__ = name
    op(f"{kind}Cell", "forward(x, hx=states*)")(of_cell)
    op(kind, "forward(x, hx=states*)")(of_layer)


def _states_of(kind: str) -> int:
    return 2 if kind == "LSTM" else 1


for _kind, _gates in _GATES.items():
    _register_modules(_kind, _gates)
