"""State-space layers of serving stacks: selective scan and causal convolution."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM, SIGMOID
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import moved, texts

# For each element of the state: exp(delta A) 21, delta B u 2, the state 2, C times it added 2.
_STATE: Final = EXPONENTIAL + 1 + 2 + 2 + 2


@operators("""
    (u, delta, a, b, c, d, z, bias, softplus, starts, slots, flags, states, ...):
        _C::selective_scan_fwd
""")
def selective_scan_fwd(
    u: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    states: Tensor,
    d: Tensor | None = None,
    z: Tensor | None = None,
    bias: Tensor | None = None,
    softplus: bool | Unknown = True,
    starts: Tensor | None = None,
    slots: Tensor | None = None,
    flags: Tensor | None = None,
) -> tuple[Cost, str]:
    """The selective scan of Mamba over u [d, tokens] or [batch, d, tokens], with states of n.

    FLOPs: 27 n per element of u (exp(delta A) 21, delta B u 2, state 2, C times state 2), and 2 for
    the skip D, 23 for the gate z, 1 for the bias, 41 for the softplus of delta, if present.
    Bytes: u, delta, A, B, C, D, z, bias read, the result written over u (over z if present), the
    state of each sequence read and written.

    Signature: vLLM csrc/torch_bindings.cpp.
    """
    if len(a.shape) != 2 or len(u.shape) < 2 or a.shape[0] != u.shape[-2]:
        raise CannotModel(f"states of {a.shape} do not fit {u.shape}")
    each = _STATE * a.shape[1]
    each += 2 * (d is not None) + (SIGMOID + 1) * (z is not None) + (bias is not None)
    each += (EXPONENTIAL + LOGARITHM + 1) * (softplus is not False)
    of_states = _states(states, slots, u.shape[0] if len(u.shape) == 3 else 1)
    written = u if z is None else z
    touched = moved(
        u, delta, a, b, c, d, z, bias, starts, slots, flags, written, of_states, of_states
    )
    cost = Cost(each * elements(u.shape), touched, not isinstance(softplus, Unknown))
    return cost, texts(u, a)


@operators("""
    (x, weight, bias, states, starts, slots, flags, ...): _C::causal_conv1d_fwd
        sgl_kernel::causal_conv1d_fwd trtllm::causal_conv1d_fwd
""")
def causal_conv1d_fwd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    states: Tensor | None = None,
    starts: Tensor | None = None,
    slots: Tensor | None = None,
    flags: Tensor | None = None,
) -> tuple[Cost, str]:
    """Each channel of x [d, tokens] or [batch, d, tokens] convolved with its w weights [d, w].

    FLOPs: 2 w per element; bias and SiLU are not counted.
    Bytes: x, weight and bias read, the result written over x, the last w - 1 of each sequence read
    and written.

    Signatures: vLLM csrc/torch_bindings.cpp (before version 0.11), SGLang
    sgl-kernel/csrc/common_extension.cc, TensorRT-LLM cpp/tensorrt_llm/thop/causalConv1dOp.cpp.
    """
    _fits(x, weight, -2)
    of_states = None if states is None else _states(states, slots, _sequences(x, starts))
    touched = moved(x, x, weight, bias, starts, slots, flags, of_states, of_states)
    return Cost(2 * weight.shape[-1] * elements(x.shape), touched), texts(x, weight)


@operators("""
    (x, states, weight, bias, _, lengths, slots, _): _C::causal_conv1d_update
        sgl_kernel::causal_conv1d_update trtllm::causal_conv1d_update
""")
def causal_conv1d_update(
    x: Tensor,
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    slots: Tensor | None = None,
) -> tuple[Cost, str]:
    """The next outputs of each channel, x [batch, d] or [batch, d, s], convolved with w weights.

    FLOPs: 2 w per element; bias and SiLU are not counted.
    Bytes: x, weight and bias read, the result written over x, the last w - 1 of each sequence read
    and written.

    Signatures: those of causal_conv1d_fwd.
    """
    _fits(x, weight, 1)
    of_states = _states(states, slots, x.shape[0])
    touched = moved(x, x, weight, bias, lengths, slots, of_states, of_states)
    return Cost(2 * weight.shape[-1] * elements(x.shape), touched), texts(x, weight)


def _fits(x: Tensor, weight: Tensor, axis: int) -> None:
    if len(x.shape) < 2 or len(weight.shape) != 2 or x.shape[axis] != weight.shape[0]:
        raise CannotModel(f"weights {weight.shape} do not fit {x.shape}")


def _sequences(x: Tensor, starts: Tensor | None) -> int:
    if starts is not None and starts.shape:
        return starts.shape[0] - 1
    return x.shape[0] if len(x.shape) == 3 else 1


def _states(states: Tensor, slots: Tensor | None, sequences: int) -> Tensor:
    # The states of all sequences in a cache [slots, ..].
    count = slots.shape[0] if slots is not None and slots.shape else sequences
    if not states.shape:
        raise CannotModel("no states")
    return Tensor((min(count, states.shape[0]), *states.shape[1:]), states.dtype)
