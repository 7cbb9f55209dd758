"""Recurrent layers of cuDNN, MIOpen and oneDNN: one call forward, one backward."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.parameters import Tensors
from fastprof.ops.recurrent.layers import Layers, layers_of
from fastprof.ops.registry import operators


@operators("""
    (x, weights*, _, _buffer, hx, cx, _, _, _, _, batch_first, _, _, bidirectional, _, _seed):
        aten::_cudnn_rnn
    (x, weights*, _, _buffer, hx, cx, _, _, _, batch_first, _, _, bidirectional, _, _seed):
        aten::_cudnn_rnn
    (x, weights*, _, hx, cx, _, _, _, batch_first, _, _, bidirectional, _, _seed):
        aten::miopen_rnn
""")
def library_layers(
    x: Tensor,
    weights: Tensors,
    hx: Tensor,
    cx: Tensor | None,
    batch_first: bool | Unknown,
    bidirectional: bool | Unknown,
    _buffer: Tensor | Unknown | None = None,
    _seed: Tensor | Unknown | None = None,
) -> Work:
    """The layers of cuDNN or MIOpen in one call.

    FLOPs: 2 tokens for each element of each matrix, gates not counted.
    Bytes: x, states, weights and biases read once, output and states written; the buffer duplicates
    the weights.
    """
    states = [hx] if cx is None else [hx, cx]
    return layers_of(x, (*states, *weights), bidirectional).work("fprop")


@operators("""
    (x, weights*, _, _buffer, hx, cx, _output, _of_output, _of_hx, _of_cx, _, _, _, _,
        batch_first, _, _, bidirectional, _, _seed, _reserve, mask): aten::_cudnn_rnn_backward
    (x, weights*, _, _buffer, hx, cx, _output, _of_output, _of_hx, _of_cx, _, _, _, batch_first,
        _, _, bidirectional, _, _seed, _reserve, mask): aten::_cudnn_rnn_backward
        aten::miopen_rnn_backward
""")
def library_gradients(
    x: Tensor,
    weights: Tensors,
    hx: Tensor,
    cx: Tensor | None,
    _output: Tensor,
    batch_first: bool | Unknown,
    bidirectional: bool | Unknown,
    _reserve: Tensor,
    mask: tuple[bool, ...] | Unknown = (),
    _of_output: Tensor | None = None,
    _of_hx: Tensor | None = None,
    _of_cx: Tensor | None = None,
    _buffer: Tensor | Unknown | None = None,
    _seed: Tensor | Unknown | None = None,
) -> Work:
    """Gradients of the layers, by cuDNN or MIOpen.

    FLOPs: twice the forward pass; once if the mask excludes the weights' gradients.
    Bytes: x, states, weights and the output's gradient read, the other gradients written; the
    reserve is not counted.
    """
    states = [hx] if cx is None else [hx, cx]
    of_weights = isinstance(mask, Unknown) or len(mask) != 4 or mask[3]
    passes = 2 if of_weights else 1
    return layers_of(x, (*states, *weights), bidirectional).work("bprop", passes)


@operators("(x, w_ih, w_hh, b_ih, b_hh, hx, cx, ...): aten::mkldnn_rnn_layer")
def onednn_layer(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, hx: Tensor, cx: Tensor
) -> Work:
    """One layer in one direction of oneDNN: x[t, n, i], states [n, h].

    FLOPs: 2 t n g h (i + h), gates not counted.
    Bytes: x, states, weights and biases read once, output and states written.
    """
    return _one_layer(x, w_ih, w_hh, b_ih, b_hh, hx, cx).work("fprop")


@operators("(x, w_ih, w_hh, b_ih, b_hh, hx, cx, ...): aten::mkldnn_rnn_layer_backward")
def onednn_gradients(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, hx: Tensor, cx: Tensor
) -> Work:
    """Gradients of one layer by oneDNN.

    FLOPs: twice the forward pass.
    Bytes: x, states, weights and the output's gradient read, the other gradients written.
    """
    return _one_layer(x, w_ih, w_hh, b_ih, b_hh, hx, cx).work("bprop")


def _one_layer(
    x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, hx: Tensor, cx: Tensor
) -> Layers:
    # States have no layer dimension.
    if len(hx.shape) != 2 or len(w_ih.shape) != 2 or len(w_hh.shape) != 2:
        raise CannotModel(f"{hx.shape}, {w_ih.shape} and {w_hh.shape} do not form a layer")
    states = (Tensor((1, *each.shape), each.dtype) for each in (hx, cx))
    return layers_of(x, (*states, w_ih, w_hh, b_ih, b_hh), False)
