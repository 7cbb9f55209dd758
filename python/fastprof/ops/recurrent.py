"""Recurrent layers and cells.

Modules, torch's operators, cuDNN's and oneDNN's, and the gates of cells as operators. For each
token (a time step of a sequence), a layer multiplies the input by w_ih[g h, i], the hidden state by
w_hh[g h, h] and, with a projection, the result by w_hr[p, h]; g is 4 for an LSTM, 3 for a GRU, 1
for an RNN. As in torch's FlopCounterMode, only these products count, not the gates. Backward has
two products for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import SIGMOID, TRIGONOMETRIC
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.matrix.matmul import GEMM
from fastprof.ops.parameters import Flag, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import byte_count, elements, fresh, moved, present, texts
from fastprof.ops.tensor_cores import why_not

# FLOPs for one element of the hidden state. An LSTM sums four gates, three go through a sigmoid
# and one through tanh; c' = f c + i g; h' = o tanh(c').
_LSTM: Final = 4 + 3 * SIGMOID + TRIGONOMETRIC + 3 + TRIGONOMETRIC + 1
# dc = do tanh(c') and so on: ATen's lstm_cell_backward, four gates with three products each.
_LSTM_BACKWARD: Final = TRIGONOMETRIC + 5 + 4 + 4 * 3 + 1
# A GRU sums two gates, and a third that its reset gate scales; h' = n + z (h - n).
_GRU: Final = 2 * (1 + SIGMOID) + 2 + TRIGONOMETRIC + 3
_GRU_BACKWARD: Final = 5 + 1 + 5 + 1 + 4  # ATen's gru_cell_backward


def _check(input_gates: Tensor, hidden_gates: Tensor, state: Tensor, gates: int) -> None:
    wanted = gates * elements(state.shape)
    if not state.shape or {elements(input_gates.shape), elements(hidden_gates.shape)} != {wanted}:
        raise CannotModel(f"{input_gates.shape} are not {gates} gates of {state.shape}")


def _gates(
    input_gates: Tensor,
    hidden_gates: Tensor,
    state: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    gates: int,
    flops: int,
    biases: int,
    written: int,
) -> Answer:
    # FLOPs for each element of the state, and for it with both biases; `written` states.
    _check(input_gates, hidden_gates, state, gates)
    count, read = elements(state.shape), present(input_gates, hidden_gates, state, b_ih, b_hh)
    moves = moved(*read, fresh(state, (written * count,)))
    return Cost(count * (flops + (biases if len(read) == 5 else 0)), moves), texts(*read)


table_row("""
    Gates [n, 4 h] and cell state [n, h] of an LSTM -> hidden and cell state, and the gates.
    FLOPs: 114 per element of the state: 4 sums, 3 sigmoids, 2 tanh, 4; 8 more with biases.
    Bytes: gates, state and biases read, both states and the gates [n, 4 h] written.
    (input_gates, hidden_gates, state, b_ih, b_hh): aten::_thnn_fused_lstm_cell
""")(_gates, gates=4, flops=_LSTM, biases=8, written=2 + 4)

table_row("""
    Gates [n, 3 h] and hidden state [n, h] of a GRU -> hidden state, and 5 h values for backward.
    FLOPs: 71 per element of the state: 2 sums and sigmoids, 2 and a tanh, 3; 6 more with biases.
    Bytes: gates, state and biases read, the state and [n, 5 h] written.
    (input_gates, hidden_gates, state, b_ih, b_hh): aten::_thnn_fused_gru_cell
""")(_gates, gates=3, flops=_GRU, biases=6, written=1 + 5)


@operators("""
    Gradients of the gates [n, 4 h] and of the cell state [n, h] of an LSTM.
    FLOPs: 42 per element of the state; 4 more with biases, whose gradients are sums.
    Bytes: the given gradients, both states and the gates read, both gradients written.

    If not recorded, no biases are assumed, and the cost is an estimate.
    (of_hidden, of_cell, cx, cy, gates, has_bias): aten::_thnn_fused_lstm_cell_backward
    (of_hidden, of_cell, cx, cy, gates, _): aten::_thnn_fused_lstm_cell_backward_impl
""")
def thnn_fused_lstm_cell_backward(
    cx: Tensor,
    cy: Tensor,
    gates: Tensor,
    of_hidden: Tensor | None = None,
    of_cell: Tensor | None = None,
    has_bias: Flag = False,
) -> Answer:
    _check(gates, gates, cx, 4)
    read = present(of_hidden, of_cell, cx, cy, gates)
    return _backward(_LSTM_BACKWARD, 4, 4 + 1, read, cx, has_bias)


@operators("""
    Gradients of both gates [n, 3 h] and of the hidden state [n, h] of a GRU.
    FLOPs: 16 per element of the state; 6 more with biases, whose gradients are sums.
    Bytes: the gradient and saved values read, the gradients written.

    If not recorded, no biases are assumed, and the cost is an estimate.
    (of_hidden, saved, has_bias): aten::_thnn_fused_gru_cell_backward
""")
def thnn_fused_gru_cell_backward(
    of_hidden: Tensor, saved: Tensor, has_bias: Flag = False
) -> Answer:
    _check(saved, saved, of_hidden, 5)
    return _backward(_GRU_BACKWARD, 6, 3 + 3 + 1, (of_hidden, saved), of_hidden, has_bias)


def _backward(
    flops: int, biases: int, written: int, read: Tensors, state: Tensor, has_bias: Flag
) -> Answer:
    known = not isinstance(has_bias, Unknown)
    count = elements(state.shape)
    total = count * (flops + (biases if known and has_bias else 0))
    return Cost(total, moved(*read, fresh(state, (written * count,))), known), texts(*read)


@operators("""
    One step: x[n, i] @ w_ih[g h, i]^T, hidden[n, h] @ w_hh[g h, h]^T, and the gates.
    FLOPs: 2 n g h (i + h), gates not counted; backward two products for each.
    Bytes: x, states, weights and biases read, states written, gate values not counted; backward x,
    states, weights and the gates' gradient read and the gradients of all written.

    Weights are row-major, as in linear, so the layout in a kernel's name distinguishes the gradient
    of x and hidden ("nn") from that of the weights ("nt").
    (x, hidden, state, w_ih, w_hh, b_ih, b_hh): lstm_cell
    (x, hx=states*, w_ih, w_hh, b_ih, b_hh): lstm_cell
    (x, hx=hidden, w_ih, w_hh, b_ih, b_hh): gru_cell rnn_tanh_cell rnn_relu_cell
""")
def cell(
    x: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    hidden: Tensor | None = None,
    state: Tensor | None = None,
    states: Tensors = (),
    *,
    direction: str,
) -> Work:
    given = present(hidden, state, *states)
    if not given or not x.shape or len(w_ih.shape) != 2 or len(w_hh.shape) != 2:
        raise CannotModel("no recurrent cell without hidden state and two matrices")
    fits = x.shape[-1] == w_ih.shape[1] and given[0].shape[-1:] == w_hh.shape[1:]
    if not fits or w_ih.shape[0] != w_hh.shape[0] or given[0].shape[:-1] != x.shape[:-1]:
        raise CannotModel(f"{x.shape} and {given[0].shape} do not fit {w_ih.shape}, {w_hh.shape}")
    rows = elements(x.shape[:-1])
    flops = 2 * rows * (elements(w_ih.shape) + elements(w_hh.shape))
    text = texts(x, *given, w_ih, w_hh)
    reason = why_not(x.dtype, {"I": w_ih.shape[1], "H": w_hh.shape[1]})
    read = (x, *given, w_ih, w_hh, b_ih, b_hh)
    if direction == "fprop":
        cost = Cost(flops, moved(*read, *given))
        return Work((Part("main", cost, text, kernels=GEMM, no_tensor_cores=reason),))
    moves = moved(*read, fresh(x, (rows, w_ih.shape[0])))
    gradients = [
        Part(role, Cost(flops, moves), text, None, GEMM, layout, True, reason)
        for role, layout in (("dgrad", "nn"), ("wgrad", "nt"))
    ]
    return Work(tuple(gradients))


# cuDNN's persistent kernel of a layer ("RNN_blockPersist_fp_LSTM") is a gemm by name.
_KERNELS: Final = GEMM | {"other"}


@operators("""
    Layers over x[t, n, i], or over packed tokens x[tokens, i]: states [layers, n, h] in and out.
    FLOPs: 2 tokens for each element of each matrix, gates not counted; backward twice that.
    Bytes: x, states, weights and biases read once, output and states written, intermediates not
    counted; backward all read again and their gradients written.

    Weights, states and biases are distinguished by rank. Bytes are unknown if bidirectional is not
    recorded.
    (tensors*, _, _, _, _, bidirectional, _): lstm gru rnn_tanh rnn_relu
    (x, states*, weights*, _, _, _, _, bidirectional, _): lstm
    (x, sizes, states*, weights*, _, _, _, _, bidirectional): lstm
    (x, hidden, weights*, _, _, _, _, bidirectional, _): gru rnn_tanh rnn_relu
    (x, sizes, hidden, weights*, _, _, _, _, bidirectional): gru rnn_tanh rnn_relu
""")
def lstm(
    tensors: Tensors = (),
    x: Tensor | None = None,
    sizes: Tensor | None = None,
    hidden: Tensor | None = None,
    states: Tensors = (),
    weights: Tensors = (),
    bidirectional: Flag = False,
    *,
    direction: str,
) -> Work:
    result = (*tensors, *present(x, sizes, hidden, *states, *weights))
    if len(result) < 2:
        raise CannotModel("no recurrent layers without states and weights")
    # Packed tokens have two dimensions, followed by batch sizes, which are on the CPU.
    packed = len(result[0].shape) == 2 and len(result[1].shape) == 1
    return layers_of(result[0], result[2 if packed else 1 :], bidirectional).work(direction)


class RecurrentLayers(NamedTuple):
    """The inputs of recurrent layers, by kind; `directions` is None if unknown."""

    x: Tensor
    states: list[Tensor]
    matrices: list[Tensor]
    biases: list[Tensor]
    directions: int | None

    def work(self, direction: str, passes: int = 2) -> Work:
        """Work in one direction; backward has `passes` products for each forward product."""
        tokens = elements(self.x.shape[:-1])
        flops = 2 * tokens * sum(elements(tensor.shape) for tensor in self.matrices)
        read = moved(self.x, *self.states, *self.matrices, *self.biases)
        width = self.states[0].shape[-1]
        output = None
        if self.directions is not None:
            output = byte_count(tokens * self.directions * width, self.x.dtype)
        if direction == "fprop":
            cost = Cost(flops, add_known(read, output, moved(*self.states)))
        else:
            cost = Cost(passes * flops, add_known(read, read, output))
        text = texts(self.x, *self.states, *self.matrices)
        reason = why_not(self.x.dtype, {"I": self.x.shape[-1], "H": width}, cudnn=True)
        return Work((Part("main", cost, text, kernels=_KERNELS, no_tensor_cores=reason),))


def layers_of(x: Tensor, others: Iterable[Tensor], bidirectional: Flag) -> RecurrentLayers:
    """Layers over x, by the dimensions of the rest: biases one, matrices two, states three.

    Each layer has two matrices, w_ih and w_hh, and with a projection a third. Raises CannotModel
    when the tensors do not form layers over x.
    """
    kinds: dict[int, list[Tensor]] = {1: [], 2: [], 3: []}
    for tensor in others:
        kinds.get(len(tensor.shape), []).append(tensor)
    biases, matrices, states = kinds.values()
    if not states or not matrices:
        raise CannotModel("no recurrent layers without states and weights")
    directions = None if isinstance(bidirectional, Unknown) else 1 + bidirectional
    count = states[0].shape[0]
    if len(matrices) not in (2 * count, 3 * count) or x.shape[-1:] != matrices[0].shape[1:]:
        raise CannotModel(f"{len(matrices)} matrices do not fit {x.shape} and {states[0].shape}")
    if matrices[0].shape[0] != matrices[1].shape[0]:
        raise CannotModel(f"{matrices[0].shape} and {matrices[1].shape} belong to different layers")
    return RecurrentLayers(x, states, matrices, biases, directions)


_GATES: Final = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _states_of(kind: str) -> int:
    return 2 if kind == "LSTM" else 1


def _cell(x: Tensor, states: Tensors, *, kind: str, direction: str) -> Work:
    # The forward of torch.nn.LSTMCell; the shapes determine the weights.
    if not x.shape or len(states) != _states_of(kind) or not states[0].shape:
        raise CannotModel("no recurrent cell without its states")
    hidden = states[0].shape[-1]
    w_ih = Tensor((_GATES[kind] * hidden, x.shape[-1]), x.dtype)
    w_hh = Tensor((_GATES[kind] * hidden, hidden), x.dtype)
    return cell(x, w_ih, w_hh, states=states, direction=direction)


def _layer(x: Tensor, states: Tensors, *, kind: str, direction: str) -> Work:
    # The forward of torch.nn.LSTM. Packed tokens are passed with their batch sizes and indices, of
    # one dimension.
    results = [tensor for tensor in states if len(tensor.shape) > 1]
    if not x.shape or len(results) != _states_of(kind):
        raise CannotModel("no recurrent layer without its states")
    if results[0].shape[0] != 1:
        raise CannotModel(f"{results[0].shape[0]} layers or directions cannot be distinguished")
    if len(results[0].shape) == 2:  # one sequence without a batch dimension
        results = [Tensor((1, *tensor.shape), tensor.dtype) for tensor in results]
    projected, hidden = results[0].shape[-1], results[-1].shape[-1]
    shapes = [(_GATES[kind] * hidden, x.shape[-1]), (_GATES[kind] * hidden, projected)]
    if projected != hidden:
        shapes.append((projected, hidden))
    weights = (Tensor(shape, x.dtype) for shape in shapes)
    return layers_of(x, (*results, *weights), False).work(direction)


for _kind, _g in _GATES.items():
    table_row(f"""
        torch.nn.{_kind}Cell: x[n, i] and hidden[n, h], which determine the weights.
        FLOPs: 2 n {_g} h (i + h), gates not counted; backward two products for each.
        Bytes: as the function; biases are not recorded and not counted.
        (x, hx=states*): {_kind}Cell.forward
    """)(_cell, kind=_kind)
    table_row(f"""
        torch.nn.{_kind} of one layer in one direction; shapes determine the weights.
        FLOPs: 2 tokens {_g} h (i + h), with a projection 2 tokens ({_g} h (i + p) + h p).
        Backward twice that.
        Bytes: as the function; biases are not recorded and not counted.

        Several layers or two directions are not modelled: the call does not distinguish them.
        (x, hx=states*): {_kind}.forward
    """)(_layer, kind=_kind)


@operators("""
    The layers of cuDNN or MIOpen in one call.
    FLOPs: 2 tokens for each element of each matrix, gates not counted.
    Bytes: x, states, weights and biases read once, output and states written; the buffer duplicates
    the weights.
    (x, weights*, _, _buffer, hx, cx, _, _, _, _, batch_first, _, _, bidirectional, _, _seed):
        aten::_cudnn_rnn
    (x, weights*, _, _buffer, hx, cx, _, _, _, batch_first, _, _, bidirectional, _, _seed):
        aten::_cudnn_rnn
    (x, weights*, _, hx, cx, _, _, _, batch_first, _, _, bidirectional, _, _seed):
        aten::miopen_rnn
""")
def cudnn_rnn(
    x: Tensor,
    weights: Tensors,
    hx: Tensor,
    cx: Tensor | None,
    batch_first: Flag,
    bidirectional: Flag,
    _buffer: Tensor | Unknown | None = None,
    _seed: Tensor | Unknown | None = None,
) -> Work:
    states = [hx] if cx is None else [hx, cx]
    return layers_of(x, (*states, *weights), bidirectional).work("fprop")


@operators("""
    Gradients of the layers, by cuDNN or MIOpen.
    FLOPs: twice the forward pass; once if the mask excludes the weights' gradients.
    Bytes: x, states, weights and the output's gradient read, the other gradients written; the
    reserve is not counted.
    (x, weights*, _, _buffer, hx, cx, _output, _of_output, _of_hx, _of_cx, _, _, _, _,
        batch_first, _, _, bidirectional, _, _seed, _reserve, mask): aten::_cudnn_rnn_backward
    (x, weights*, _, _buffer, hx, cx, _output, _of_output, _of_hx, _of_cx, _, _, _, batch_first,
        _, _, bidirectional, _, _seed, _reserve, mask): aten::_cudnn_rnn_backward
        aten::miopen_rnn_backward
""")
def cudnn_rnn_backward(
    x: Tensor,
    weights: Tensors,
    hx: Tensor,
    cx: Tensor | None,
    _output: Tensor,
    batch_first: Flag,
    bidirectional: Flag,
    _reserve: Tensor,
    mask: tuple[bool, ...] | Unknown = (),
    _buffer: Tensor | Unknown | None = None,
    _seed: Tensor | Unknown | None = None,
) -> Work:
    states = [hx] if cx is None else [hx, cx]
    of_weights = isinstance(mask, Unknown) or len(mask) != 4 or mask[3]
    passes = 2 if of_weights else 1
    return layers_of(x, (*states, *weights), bidirectional).work("bprop", passes)


def _one_layer(
    x: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    hx: Tensor,
    cx: Tensor,
    *,
    direction: str,
) -> Work:
    # States have no layer dimension.
    if len(hx.shape) != 2 or len(w_ih.shape) != 2 or len(w_hh.shape) != 2:
        raise CannotModel(f"{hx.shape}, {w_ih.shape} and {w_hh.shape} do not form a layer")
    states = (Tensor((1, *tensor.shape), tensor.dtype) for tensor in (hx, cx))
    return layers_of(x, (*states, w_ih, w_hh, b_ih, b_hh), False).work(direction)


table_row("""
    One layer in one direction of oneDNN: x[t, n, i], states [n, h].
    FLOPs: 2 t n g h (i + h), gates not counted.
    Bytes: x, states, weights and biases read once, output and states written.
    (x, w_ih, w_hh, b_ih, b_hh, hx, cx, ...): aten::mkldnn_rnn_layer
""")(_one_layer, direction="fprop")


table_row("""
    Gradients of one layer by oneDNN.
    FLOPs: twice the forward pass.
    Bytes: x, states, weights and the output's gradient read, the other gradients written.
    (x, w_ih, w_hh, b_ih, b_hh, hx, cx, ...): aten::mkldnn_rnn_layer_backward
""")(_one_layer, direction="bprop")
