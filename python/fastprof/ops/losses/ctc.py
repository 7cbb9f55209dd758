"""FLOPs and bytes of connectionist temporal classification (CTC)."""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

# One step of the recursion, log(e^a + e^b + e^c) + p: maximum 2, subtracted and exponential of
# three, added 2, logarithm, maximum and p added 2.
STEP: Final = 3 * (EXPONENTIAL + 1) + LOGARITHM + 6
# alpha + beta of a state summed for its class: sum, maximum, two exponentials, logarithm, 4 more.
COLLECTED: Final = 2 * EXPONENTIAL + LOGARITHM + 6
# dx = (exp(p) - exp(collected + loss - p)) dloss
GRADIENT: Final = 2 * EXPONENTIAL + 4


def _states(x: Tensor, targets: Tensor) -> tuple[int, int]:
    # Batch size n, and states of one step of the recursion: 2 s + 1 per target of s labels.
    batched = len(x.shape) == 3
    if len(x.shape) not in (2, 3) or len(targets.shape) not in (1, 2):
        raise CannotModel(f"log probabilities {x.shape} do not fit targets {targets.shape}")
    batch = x.shape[1] if batched else 1
    return batch, 2 * elements(targets.shape) + batch


@operators("(x, targets, input_lengths, target_lengths, ...): ctc_loss _ctc_loss")
def ctc_loss(
    x: Tensor,
    targets: Tensor,
    input_lengths: Any = None,
    target_lengths: Any = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Loss[n] of log probabilities x[t, n, c] and targets[n, s], by the forward variables.

    FLOPs: 89 for each of t (2 s + 1) states of each n; backward 155 (89 for the backward variables,
    66 to combine both), and 44 per element of x.
    Bytes: x and targets read, the variables and the loss written. Backward reads dloss, x, targets
    and variables, writes the backward variables and dx.

    Full lengths are assumed, because actual lengths are not recorded (not exact, an upper bound).
    Formulas: Graves et al., Connectionist Temporal Classification, section 4.
    """
    batch, states = _states(x, targets)
    steps = x.shape[0] * states
    variables, loss = fresh(x, (steps,)), fresh(x, (batch,))
    if direction == "bprop":
        return Cost(*_gradient(loss, x, targets, variables, steps), False), texts(x, targets)
    moves = moved(x, targets, variables, loss)
    return Cost(steps * STEP, moves, exact=False), texts(x, targets)


@operators("(x, targets, input_lengths, target_lengths, ...): _cudnn_ctc_loss miopen_ctc_loss")
def cudnn_ctc_loss(
    x: Tensor, targets: Tensor, input_lengths: Any = None, target_lengths: Any = None
) -> tuple[Cost, str]:
    """Loss[n] of log probabilities x[t, n, c] and its gradient, which cuDNN computes together.

    FLOPs: 244 for each of t (2 s + 1) states of each n, and 44 per element of x.
    Bytes: x and targets read, the loss and the gradient written.

    Full lengths are assumed (not exact, an upper bound).
    """
    batch, states = _states(x, targets)
    steps = x.shape[0] * states
    flops = steps * (2 * STEP + COLLECTED) + elements(x.shape) * GRADIENT
    moves = moved(x, targets, fresh(x, (batch,)), fresh(x))
    return Cost(flops, moves, exact=False), texts(x, targets)


@operators("""
    (gradient, x, targets, input_lengths, target_lengths, loss, variables, ...):
        _ctc_loss_backward
""")
def ctc_loss_backward(
    gradient: Tensor,
    x: Tensor,
    targets: Tensor,
    variables: Tensor,
    loss: Tensor | None = None,
    input_lengths: Any = None,
    target_lengths: Any = None,
) -> tuple[Cost, str]:
    """dx[t, n, c] of a CTC loss, by the backward variables.

    FLOPs: 155 for each of t (2 s + 1) states of each n, and 44 per element of x.
    Bytes: dloss, x, targets and the forward variables read, backward variables and dx written.

    Full lengths are assumed (not exact, an upper bound).
    """
    _, states = _states(x, targets)
    flops, moves = _gradient(gradient, x, targets, variables, x.shape[0] * states)
    return Cost(flops, moves, exact=False), texts(x, targets)


def _gradient(
    gradient: Tensor, x: Tensor, targets: Tensor, variables: Tensor, steps: int
) -> tuple[int, int | None]:
    flops = steps * (STEP + COLLECTED) + elements(x.shape) * GRADIENT
    return flops, moved(gradient, x, targets, variables, fresh(variables), fresh(x))
