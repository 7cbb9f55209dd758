"""Recurrent cells and layers: FLOPs of their products, bytes."""

from fastprof.model.call import Tensor
from fastprof.ops import work
from unit.ops.ops_calls import aten, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Rows


def _torch(op, *values):
    return python("torch", op, *values)


# A layer over 5 steps of 3 sequences, 4 features in and 6 hidden: 15 tokens.
X, H = fp32(5, 3, 4), fp32(1, 3, 6)
TAIL = (True, 1, 0.0, True, False, False)
UNBATCHED = TAIL[:-1]


def weights(gates):
    return fp32(6 * gates, 4), fp32(6 * gates, 6), fp32(6 * gates), fp32(6 * gates)


def cost(gates, states):
    flops = 2 * 15 * (6 * gates) * (4 + 6)
    read = 60 + 18 * states + 60 * gates + 12 * gates
    return flops, 4 * (read + 90 + 18 * states)


def cell_cost(gates, states):
    flops = 2 * 3 * (6 * gates) * (4 + 6)
    return flops, 4 * (12 + 18 * states + 60 * gates + 12 * gates + 18 * states)


ONE_GATE, THREE, FOUR = weights(1), weights(3), weights(4)
X1, H1 = fp32(3, 4), fp32(3, 6)  # a step
PACKED = fp32(15, 4), int64(5)
BUFFER, RESERVE = fp32(288), tensor("uint8", 100)
CUDNN = (*weights(4), 4, BUFFER, H, H, 2, 6, 0, 1, False, 0.0, True, False, (), None)
NESTED = (weights(4), *CUDNN[4:])
RESULTS = fp32(5, 3, 6), fp32(5, 3, 6), None, None
MASK, NO_BIAS = (True, True, True, True), (True, True, True, False)
# Parts of cuDNN's arguments: to the states, without the size of projections, and the rest.
FIRST, STATES, OTHERS = NESTED[:5], NESTED[5:7], NESTED[8:]
LSTM_READ = 60 + 18 * 2 + 60 * 4 + 12 * 4
LSTM_BACKWARD = 2 * cost(4, 2)[0], 4 * (2 * LSTM_READ + 90)
BOTH_GRUS = (*THREE, *THREE)
rows = Rows(globals())
two = Rows(globals(), "torch", "aten")


def of_module(kind, gates, states):
    """Modules in PyProf's markers: weights follow from the states, biases are not counted."""
    return [
        *rows(
            f"{kind}Cell.forward fp32[16,512] fp32[16,512]*{states}",
            2 * 16 * 512 * gates * 1024,
            4 * (8192 + 8192 * states + 512 * gates * 1024 + 8192 * states),
        ),
        *rows(
            f"{kind}.forward X H*{states}",
            2 * 15 * 6 * gates * 10,
            4 * (60 + 18 * states + 60 * gates + 90 + 18 * states),
        ),
    ]


EXAMPLES = [
    # Separate lists, or all tensors flattened.
    *two(
        """lstm X (H,H) FOUR *TAIL
        lstm X H H *FOUR *TAIL
        lstm *PACKED (H,H) FOUR *UNBATCHED
        lstm *PACKED H H *FOUR *UNBATCHED""",
        *cost(4, 2),
    ),
    *(
        example
        for name, of_name, gates in (
            ("gru", "THREE", 3),
            ("rnn_tanh", "ONE_GATE", 1),
            ("rnn_relu", "ONE_GATE", 1),
        )
        for example in (
            *two(
                f"""{name} X H {of_name} *TAIL
                {name} X H *{of_name} *TAIL
                {name} *PACKED H {of_name} *UNBATCHED
                {name} *PACKED H *{of_name} *UNBATCHED""",
                *cost(gates, 1),
            ),
            *two(f"{name}_cell X1 H1 *{of_name}", *cell_cost(gates, 1)),
        )
    ),
    *rows.back("torch.lstm X (H,H) FOUR *TAIL", *LSTM_BACKWARD),
    *rows("lstm [5,3,4] [1,3,6]*2 [24,4] [24,6] [24] [24] []*6", cost(4, 2)[0], None),
    # Two directions write twice as much; a projection of 2 comes after w_hh.
    *rows(
        "torch.gru X fp32[2,3,6] BOTH_GRUS true 1 0.0 true true false",
        *(2 * cost(3, 1)[0], 4 * (60 + 2 * (18 + 180 + 36) + 180 + 36)),
    ),
    *rows(
        "torch.lstm X (fp32[1,3,2],H) (fp32[24,4],fp32[24,2],fp32[2,6]) *TAIL",
        *(2 * 15 * (96 + 48 + 12), 4 * (60 + 6 + 18 + 96 + 48 + 12 + 30 + 6 + 18)),
    ),
    *two("lstm_cell X1 (H1,H1) *FOUR\nlstm_cell X1 H1 H1 *FOUR", *cell_cost(4, 2)),
    *rows.back(
        "torch.gru_cell X1 H1 *THREE",
        *(2 * cell_cost(3, 1)[0], 2 * 4 * (12 + 18 + 180 + 36 + 54)),
    ),
    *of_module("LSTM", 4, 2),
    *of_module("GRU", 3, 1),
    *of_module("RNN", 1, 1),
    *rows("LSTM.forward X hx=(H,H)", 2 * 15 * 24 * 10, 4 * (60 + 36 + 240 + 90 + 36)),
    *rows("LSTM.forward fp32[5,4] fp32[1,6]*2", 2 * 5 * 24 * 10, 4 * (20 + 12 + 240 + 30 + 12)),
    *rows(
        "LSTM.forward X fp32[1,3,2] H",
        *(2 * 15 * (24 * 4 + 24 * 2 + 2 * 6), 4 * (60 + 24 + 96 + 48 + 12 + 30 + 24)),
    ),
    # cuDNN: since torch 1.8 with the size of projections; the buffer is not counted again.
    *rows(
        """_cudnn_rnn X *CUDNN
        _cudnn_rnn X *NESTED
        _cudnn_rnn X *FIRST *STATES *OTHERS
        _cudnn_rnn fp32[15,4] FOUR 4 BUFFER H H 2 6 0 1 false 0.0 true false (3,3,3,3,3) -
        _cudnn_rnn X FOUR 4 BUFFER H H 2 6 0 1 false 0.0 true false () RESERVE
        miopen_rnn X FOUR 4 H H 2 6 *OTHERS""",
        *cost(4, 2),
    ),
    *rows(
        "_cudnn_rnn [5,3,4] [24,4] [24,6] [24] [24] [] [288] [1,3,6] [1,3,6] []*10",
        *(cost(4, 2)[0], None),
    ),
    *rows(
        """_cudnn_rnn_backward X *FIRST *RESULTS *STATES 0 *OTHERS RESERVE MASK
        _cudnn_rnn_backward X *FIRST *RESULTS *STATES *OTHERS RESERVE MASK
        miopen_rnn_backward X *FIRST *RESULTS *STATES *OTHERS RESERVE MASK""",
        *LSTM_BACKWARD,
    ),
    *rows(
        "_cudnn_rnn_backward X *FIRST *RESULTS *STATES 0 *OTHERS RESERVE NO_BIAS",
        *(cost(4, 2)[0], LSTM_BACKWARD[1]),
    ),
    *rows("mkldnn_rnn_layer X *FOUR H1 H1 false () 2 6 1 true false false true", *cost(4, 2)),
    *rows(
        "mkldnn_rnn_layer_backward X *FOUR H1 H1 fp32[5,3,6]*3 fp32[5,3,6] H1 H1 false 2 6 1 true"
        " true false () false uint8[9]",
        *LSTM_BACKWARD,
    ),
    # Gates: 18 elements of the state, 114 FLOPs each, 8 more with biases.
    *rows(
        "_thnn_fused_lstm_cell fp32[3,24]*2 H1 fp32[24]*2",
        *(18 * (4 + 3 * 22 + 20 + 3 + 20 + 1 + 8), 4 * (72 + 72 + 18 + 24 + 24 + 36 + 72)),
    ),
    *rows("_thnn_fused_lstm_cell fp32[3,24]*2 H1 - -", 18 * 114, 4 * (72 * 2 + 18 + 36 + 72)),
    *rows(
        "_thnn_fused_gru_cell fp32[3,18]*2 H1 fp32[18]*2",
        *(18 * (2 * 23 + 2 + 20 + 3 + 6), 4 * (54 + 54 + 18 + 18 + 18 + 18 + 90)),
    ),
    *rows(
        "_thnn_fused_lstm_cell_backward|_thnn_fused_lstm_cell_backward_impl H1 - H1 H1 fp32[3,24]"
        " false",
        *(18 * (20 + 5 + 4 + 12 + 1), 4 * (18 * 3 + 72 + 72 + 18)),
    ),
    *rows(
        "_thnn_fused_lstm_cell_backward H1*4 fp32[3,24] true",
        *(18 * (42 + 4), 4 * (18 * 4 + 72 + 72 + 18)),
    ),
    *rows(
        "_thnn_fused_gru_cell_backward H1 fp32[3,30] true",
        *(18 * (16 + 6), 4 * (18 + 90 + 54 + 54 + 18)),
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


MALFORMED = [
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
]
