"""Recurrent cells and layers: FLOPs of their products, bytes."""

import pytest

from fastprof.model.call import Tensor
from fastprof.ops import work
from unit.ops.ops_examples import Example, aten, fp32, int64, python, sizes, tensor


def _torch(op, *values):
    return python("torch", op, *values)


# A layer over 5 steps of 3 sequences, 4 features in and 6 hidden: 15 tokens.
X, H = fp32(5, 3, 4), fp32(1, 3, 6)
TAIL = (True, 1, 0.0, True, False, False)


def weights(gates):
    return fp32(6 * gates, 4), fp32(6 * gates, 6), fp32(6 * gates), fp32(6 * gates)


def cost(gates, states):
    flops = 2 * 15 * (6 * gates) * (4 + 6)
    read = 60 + 18 * states + 60 * gates + 12 * gates
    return flops, 4 * (read + 90 + 18 * states)


def cell_cost(gates, states):
    flops = 2 * 3 * (6 * gates) * (4 + 6)
    return flops, 4 * (12 + 18 * states + 60 * gates + 12 * gates + 18 * states)


ONE = (("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1))
CELLS = (("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1))
PACKED = fp32(15, 4), int64(5)
BUFFER = fp32(288)
CUDNN = (*weights(4), 4, BUFFER, H, H, 2, 6, 0, 1, False, 0.0, True, False, (), None)
NESTED = (weights(4), *CUDNN[4:])
RESULTS = fp32(5, 3, 6), fp32(5, 3, 6), None, None
MASK = (True, True, True, True)
LSTM_READ = 60 + 18 * 2 + 60 * 4 + 12 * 4
LSTM_BACKWARD = 2 * cost(4, 2)[0], 4 * (2 * LSTM_READ + 90)
GATES = fp32(3, 24), fp32(3, 24), fp32(3, 6)
EXAMPLES = [
    # Separate lists, or all tensors flattened.
    *(
        Example(call, *cost(4, 2))
        for each in (aten, _torch)
        for call in (
            each("lstm", X, (H, H), weights(4), *TAIL),
            each("lstm", X, H, H, *weights(4), *TAIL),
            each("lstm", *PACKED, (H, H), weights(4), *TAIL[:-1]),
            each("lstm", *PACKED, H, H, *weights(4), *TAIL[:-1]),
        )
    ),
    *(
        Example(call, *cost(gates, 1))
        for each in (aten, _torch)
        for name, gates in ONE
        for call in (
            each(name, X, H, weights(gates), *TAIL),
            each(name, X, H, *weights(gates), *TAIL),
            each(name, *PACKED, H, weights(gates), *TAIL[:-1]),
            each(name, *PACKED, H, *weights(gates), *TAIL[:-1]),
        )
    ),
    Example(_torch("lstm", X, (H, H), weights(4), *TAIL), *LSTM_BACKWARD, None, "bprop"),
    Example(
        sizes("lstm", (5, 3, 4), *[(1, 3, 6)] * 2, (24, 4), (24, 6), (24,), (24,), *[()] * 6),
        cost(4, 2)[0],
        None,
    ),
    # Two directions write twice as much; a projection of 2 comes after w_hh.
    Example(
        _torch(
            *("gru", X, fp32(2, 3, 6), (*weights(3), *weights(3)), True, 1, 0.0, True, True, False)
        ),
        2 * cost(3, 1)[0],
        4 * (60 + 2 * (18 + 180 + 36) + 180 + 36),
    ),
    Example(
        _torch("lstm", X, (fp32(1, 3, 2), H), (fp32(24, 4), fp32(24, 2), fp32(2, 6)), *TAIL),
        2 * 15 * (96 + 48 + 12),
        4 * (60 + 6 + 18 + 96 + 48 + 12 + 30 + 6 + 18),
    ),
    *(
        Example(call, *cell_cost(4, 2))
        for each in (aten, _torch)
        for call in (
            each("lstm_cell", fp32(3, 4), (fp32(3, 6), fp32(3, 6)), *weights(4)),
            each("lstm_cell", fp32(3, 4), fp32(3, 6), fp32(3, 6), *weights(4)),
        )
    ),
    *(
        Example(each(name, fp32(3, 4), fp32(3, 6), *weights(gates)), *cell_cost(gates, 1))
        for each in (aten, _torch)
        for name, gates in CELLS
    ),
    Example(
        _torch("gru_cell", fp32(3, 4), fp32(3, 6), *weights(3)),
        2 * cell_cost(3, 1)[0],
        2 * 4 * (12 + 18 + 180 + 36 + 54),
        None,
        "bprop",
    ),
    # Modules in PyProf's markers: weights follow from the states, biases are not counted.
    *(
        Example(
            python(f"{kind}Cell", "forward", fp32(16, 512), *[fp32(16, 512)] * states),
            2 * 16 * 512 * gates * 1024,
            4 * (8192 + 8192 * states + 512 * gates * 1024 + 8192 * states),
        )
        for kind, gates, states in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1))
    ),
    *(
        Example(
            python(kind, "forward", X, *[H] * states),
            2 * 15 * 6 * gates * 10,
            4 * (60 + 18 * states + 60 * gates + 90 + 18 * states),
        )
        for kind, gates, states in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1))
    ),
    Example(
        python("LSTM", "forward", X, hx=(H, H)), 2 * 15 * 24 * 10, 4 * (60 + 36 + 240 + 90 + 36)
    ),
    Example(
        python("LSTM", "forward", fp32(5, 4), fp32(1, 6), fp32(1, 6)),
        2 * 5 * 24 * 10,
        4 * (20 + 12 + 240 + 30 + 12),
    ),
    Example(
        python("LSTM", "forward", X, fp32(1, 3, 2), H),
        2 * 15 * (24 * 4 + 24 * 2 + 2 * 6),
        4 * (60 + 24 + 96 + 48 + 12 + 30 + 24),
    ),
    # cuDNN: since torch 1.8 with the size of projections; the buffer is not counted again.
    *(
        Example(call, *cost(4, 2))
        for call in (
            aten("_cudnn_rnn", X, *CUDNN),
            aten("_cudnn_rnn", X, *NESTED),
            aten("_cudnn_rnn", X, *NESTED[:7], *NESTED[8:]),
            aten("_cudnn_rnn", fp32(15, 4), *NESTED[:-2], (3, 3, 3, 3, 3), None),
            aten("_cudnn_rnn", X, *NESTED[:-1], tensor("uint8", 100)),
            aten("miopen_rnn", X, *NESTED[:2], *NESTED[3:7], *NESTED[8:]),
        )
    ),
    Example(
        sizes(
            *("_cudnn_rnn", (5, 3, 4), (24, 4), (24, 6), (24,), (24,), (), (288,)),
            *((1, 3, 6), (1, 3, 6), *[()] * 10),
        ),
        cost(4, 2)[0],
        None,
    ),
    *(
        Example(call, *LSTM_BACKWARD)
        for reserve in (tensor("uint8", 100),)
        for call in (
            aten("_cudnn_rnn_backward", X, *NESTED[:5], *RESULTS, *NESTED[5:], reserve, MASK),
            aten(
                *("_cudnn_rnn_backward", X, *NESTED[:5], *RESULTS, *NESTED[5:7], *NESTED[8:]),
                *(reserve, MASK),
            ),
            aten(
                *("miopen_rnn_backward", X, *NESTED[:5], *RESULTS, *NESTED[5:7], *NESTED[8:]),
                *(reserve, MASK),
            ),
        )
    ),
    Example(
        aten(
            *("_cudnn_rnn_backward", X, *NESTED[:5], *RESULTS, *NESTED[5:], tensor("uint8", 100)),
            (True, True, True, False),
        ),
        cost(4, 2)[0],
        LSTM_BACKWARD[1],
    ),
    Example(
        aten(
            *("mkldnn_rnn_layer", X, *weights(4), fp32(3, 6), fp32(3, 6), False, (), 2, 6, 1),
            *(True, False, False, True),
        ),
        *cost(4, 2),
    ),
    Example(
        aten(
            *("mkldnn_rnn_layer_backward", X, *weights(4), *[fp32(3, 6)] * 2, *[fp32(5, 3, 6)] * 3),
            *(fp32(5, 3, 6), fp32(3, 6), fp32(3, 6), False, 2, 6, 1, True, True, False, ()),
            *(False, tensor("uint8", 9)),
        ),
        *LSTM_BACKWARD,
    ),
    # Gates: 18 elements of the state, 114 FLOPs each, 8 more with biases.
    Example(
        aten("_thnn_fused_lstm_cell", *GATES, fp32(24), fp32(24)),
        18 * (4 + 3 * 22 + 20 + 3 + 20 + 1 + 8),
        4 * (72 + 72 + 18 + 24 + 24 + 36 + 72),
    ),
    Example(
        aten("_thnn_fused_lstm_cell", *GATES, None, None), 18 * 114, 4 * (72 * 2 + 18 + 36 + 72)
    ),
    Example(
        aten("_thnn_fused_gru_cell", fp32(3, 18), fp32(3, 18), fp32(3, 6), fp32(18), fp32(18)),
        18 * (2 * 23 + 2 + 20 + 3 + 6),
        4 * (54 + 54 + 18 + 18 + 18 + 18 + 90),
    ),
    *(
        Example(
            aten(name, fp32(3, 6), None, fp32(3, 6), fp32(3, 6), fp32(3, 24), False),
            18 * (20 + 5 + 4 + 12 + 1),
            4 * (18 * 3 + 72 + 72 + 18),
        )
        for name in ("_thnn_fused_lstm_cell_backward", "_thnn_fused_lstm_cell_backward_impl")
    ),
    Example(
        aten("_thnn_fused_lstm_cell_backward", *[fp32(3, 6)] * 4, fp32(3, 24), True),
        18 * (42 + 4),
        4 * (18 * 4 + 72 + 72 + 18),
    ),
    Example(
        aten("_thnn_fused_gru_cell_backward", fp32(3, 6), fp32(3, 30), True),
        18 * (16 + 6),
        4 * (18 + 90 + 54 + 54 + 18),
    ),
]


def test_backward_of_a_cell_tells_gradients_of_states_and_of_weights_by_layout():
    cell = _torch("gru_cell", fp32(3, 4), fp32(3, 6), *weights(3))
    parts = work(cell, "bprop").parts
    assert [(part.role, part.layout) for part in parts] == [("dgrad", "nn"), ("wgrad", "nt")]
    assert {part.cost.flops for part in parts} == {cell_cost(3, 1)[0]}


def test_gates_that_may_have_biases_are_an_estimate():
    call = sizes("_thnn_fused_gru_cell_backward", (3, 6), (3, 30), ())
    assert not work(call, "fprop").cost.exact


@pytest.mark.parametrize(
    "malformed",
    [
        _torch("lstm", X),
        _torch("lstm", X, (H, H), (fp32(24, 5), fp32(24, 6)), *TAIL),
        _torch("lstm", X, (H, H), (fp32(24, 4), fp32(18, 6)), *TAIL),
        _torch("lstm", X, (H, H), (fp32(24, 4),), *TAIL),
        _torch("gru", X, H, (), *TAIL),
        _torch("gru_cell", fp32(3, 4), fp32(3, 6), fp32(18, 5), fp32(18, 6)),
        _torch("gru_cell", fp32(3, 4), fp32(2, 6), fp32(18, 4), fp32(18, 6)),
        _torch("lstm_cell", fp32(3, 4), (), fp32(24, 4), fp32(24, 6)),
        # Two layers, or two directions? No state: how wide?
        python("LSTM", "forward", X, fp32(2, 3, 6), fp32(2, 3, 6)),
        python("LSTM", "forward", X),
        python("LSTM", "forward", X, H),
        python("GRUCell", "forward", fp32(3, 4)),
        python("GRUCell", "forward", fp32(3, 4), Tensor(())),
        aten("_thnn_fused_lstm_cell", fp32(3, 18), fp32(3, 18), fp32(3, 6)),
        aten("mkldnn_rnn_layer", X, *weights(4), H, H),
    ],
)
def test_a_malformed_call_has_no_work(malformed):
    assert work(malformed, "fprop") is None
