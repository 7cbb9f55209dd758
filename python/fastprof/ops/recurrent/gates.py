"""The gates of recurrent cells as separate operators."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import SIGMOID, TRIGONOMETRIC
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, tensor_bytes, tensor_text

# FLOPs for one element of the hidden state. An LSTM sums four gates, three go through a sigmoid
# and one through tanh; c' = f c + i g; h' = o tanh(c').
_LSTM: Final = 4 + 3 * SIGMOID + TRIGONOMETRIC + 3 + TRIGONOMETRIC + 1
# dc = do tanh(c') and so on: ATen's lstm_cell_backward, four gates with three products each.
_LSTM_BACKWARD: Final = TRIGONOMETRIC + 5 + 4 + 4 * 3 + 1
# A GRU sums two gates, and a third that its reset gate scales; h' = n + z (h - n).
_GRU: Final = 2 * (1 + SIGMOID) + 2 + TRIGONOMETRIC + 3
_GRU_BACKWARD: Final = 5 + 1 + 5 + 1 + 4  # ATen's gru_cell_backward


@operators("(input_gates, hidden_gates, state, b_ih, b_hh): aten::_thnn_fused_lstm_cell")
def thnn_fused_lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    state: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Cost, str]:
    """Gates [n, 4 h] and cell state [n, h] of an LSTM -> hidden and cell state, and the gates.

    FLOPs: 114 per element of the state: 4 sums, 3 sigmoids, 2 tanh, 4; 8 more with biases.
    Bytes: gates, state and biases read, both states and the gates [n, 4 h] written.
    """
    _check(input_gates, hidden_gates, state, 4)
    return _forward(_LSTM, 8, 2 + 4, (input_gates, hidden_gates, state, b_ih, b_hh), state)


@operators("(input_gates, hidden_gates, state, b_ih, b_hh): aten::_thnn_fused_gru_cell")
def thnn_fused_gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    state: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Cost, str]:
    """Gates [n, 3 h] and hidden state [n, h] of a GRU -> hidden state, and 5 h values for backward.

    FLOPs: 71 per element of the state: 2 sums and sigmoids, 2 and a tanh, 3; 6 more with biases.
    Bytes: gates, state and biases read, the state and [n, 5 h] written.
    """
    _check(input_gates, hidden_gates, state, 3)
    return _forward(_GRU, 6, 1 + 5, (input_gates, hidden_gates, state, b_ih, b_hh), state)


@operators("""
    (of_hidden, of_cell, cx, cy, gates, has_bias): aten::_thnn_fused_lstm_cell_backward
    (of_hidden, of_cell, cx, cy, gates, _): aten::_thnn_fused_lstm_cell_backward_impl
""")
def thnn_fused_lstm_cell_backward(
    cx: Tensor,
    cy: Tensor,
    gates: Tensor,
    of_hidden: Tensor | None = None,
    of_cell: Tensor | None = None,
    has_bias: bool | Unknown = False,
) -> tuple[Cost, str]:
    """Gradients of the gates [n, 4 h] and of the cell state [n, h] of an LSTM.

    FLOPs: 42 per element of the state; 4 more with biases, whose gradients are sums.
    Bytes: the given gradients, both states and the gates read, both gradients written.

    If not recorded, no biases are assumed, and the cost is an estimate.
    """
    _check(gates, gates, cx, 4)
    read = (of_hidden, of_cell, cx, cy, gates)
    return _backward(_LSTM_BACKWARD, 4, 4 + 1, read, cx, has_bias)


@operators("(of_hidden, saved, has_bias): aten::_thnn_fused_gru_cell_backward")
def thnn_fused_gru_cell_backward(
    of_hidden: Tensor, saved: Tensor, has_bias: bool | Unknown = False
) -> tuple[Cost, str]:
    """Gradients of both gates [n, 3 h] and of the hidden state [n, h] of a GRU.

    FLOPs: 16 per element of the state; 6 more with biases, whose gradients are sums.
    Bytes: the gradient and saved values read, the gradients written.

    If not recorded, no biases are assumed, and the cost is an estimate.
    """
    _check(saved, saved, of_hidden, 5)
    return _backward(_GRU_BACKWARD, 6, 3 + 3 + 1, (of_hidden, saved), of_hidden, has_bias)


def _check(input_gates: Tensor, hidden_gates: Tensor, state: Tensor, gates: int) -> None:
    wanted = gates * elements(state.shape)
    if not state.shape or {elements(input_gates.shape), elements(hidden_gates.shape)} != {wanted}:
        raise CannotModel(f"{input_gates.shape} are not {gates} gates of {state.shape}")


def _forward(
    flops: int, of_biases: int, written: int, read: tuple[Tensor | None, ...], state: Tensor
) -> tuple[Cost, str]:
    count = elements(state.shape)
    given = [each for each in read if each is not None]
    biases = of_biases if len(given) == len(read) else 0
    moved = add_known(*map(tensor_bytes, given), byte_count(written * count, state.dtype))
    return Cost(count * (flops + biases), moved), ";".join(map(tensor_text, given))


def _backward(
    flops: int,
    of_biases: int,
    written: int,
    read: tuple[Tensor | None, ...],
    state: Tensor,
    has_bias: bool | Unknown,
) -> tuple[Cost, str]:
    known = not isinstance(has_bias, Unknown)
    total = flops + of_biases if known and has_bias else flops
    given = [each for each in read if each is not None]
    count = elements(state.shape)
    moved = add_known(*map(tensor_bytes, given), byte_count(written * count, state.dtype))
    return Cost(count * total, moved, exact=known), ";".join(map(tensor_text, given))
