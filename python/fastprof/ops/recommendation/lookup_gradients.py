"""The operators inside a lookup's backward pass: gradients of rows and of per-sample weights.

Source: fbgemm_gpu/codegen/training/backward/embedding_backward_split_host_template.cpp and
.../pt2/embedding_split_host_pt2_cuda_wrapper_template.cpp in pytorch/FBGEMM.
"""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Tensors
from fastprof.ops.recommendation.lookups import OPTIMIZERS, gradient
from fastprof.ops.recommendation.names import fbgemm
from fastprof.ops.recommendation.tables import NO_POOLING, Size, Tables, tables
from fastprof.ops.registry import generated, op, operators
from fastprof.ops.tensor import elements, is_floating
from fastprof.ops.traffic import fresh, moved, texts

_BAGS: Final = "ends, widest, _, other, _, indices, offsets, pooling, others**)"
_OLDER: Final = "ends, widest, other, _, indices, offsets, pooling, others**)"
_NO_BAGS: Final = "widest, other, _, indices, offsets, others**)"
_DEVICE: Final = "(gradients, device_weights, unified_weights, other, other, other, "
_HOST: Final = "(gradients, other, device_weights, unified_weights, other, other, other, "


def _register(optimizer: str, update: int) -> None:
    name = f"split_embedding_backward_codegen_{optimizer}"
    forms = (head + tail for head in (_DEVICE, _HOST) for tail in (_BAGS, _OLDER, _NO_BAGS))

    @op(None, aten=fbgemm(*(name + form for form in forms)))
    def _(
        gradients: Tensor,
        indices: Tensor,
        offsets: Tensor,
        device_weights: Tensor,
        unified_weights: Tensor | None = None,
        ends: Tensor | None = None,
        widest: Size = None,
        pooling: int | Unknown | None = None,
        other: Any = None,
        others: Tensors = (),
    ) -> tuple[Cost, str]:
        """Gradient [bags, widths] of a lookup summed by row, and the rows updated.

        FLOPs: one for each element of each picked row, two for a mean or with per-sample weights,
            and the optimizer's for each element of the rows that it touches.
        Bytes: gradient, indices and offsets read; each touched row and its state read and written.

        An estimate: the number of touched rows is at most that of indices and of rows.
        """
        del other
        weights = tuple(w for w in (device_weights, unified_weights) if w is not None)
        found, momentum, per_sample = _backward(
            gradients, weights, ends, widest, indices, offsets, pooling, others
        )
        how = NO_POOLING if ends is None else pooling
        cost = gradient(found, how, (indices, offsets), per_sample, momentum, update)
        return cost, texts(gradients, found.weights, indices)


def _backward(
    gradients: Tensor,
    weights: Tensors,
    ends: Tensor | None,
    widest: Size,
    indices: Tensor,
    offsets: Tensor,
    pooling: int | Unknown | None,
    others: Tensors,
) -> tuple[Tables, Tensor | None, Tensor | None]:
    # The lookup, its optimizer's state and its per-sample weights, as far as known.
    if len(gradients.shape) != 2:
        raise CannotModel(f"the gradient has shape {gradients.shape}, not 2-d")
    features = None if ends is None else max(elements(ends.shape) - 1, 1)
    per_sample = [each for each in others[:1] if _is_weight(each, indices)]
    momentum = next((each for each in others[len(per_sample) :] if _is_state(each)), None)
    total = gradients.shape[1]
    found = tables(
        weights, features, (total, widest), indices, offsets, pooling, momentum, gradients
    )
    return found, momentum, per_sample[0] if per_sample else None


def _is_state(tensor: Tensor) -> bool:
    return is_floating(tensor.dtype) and len(tensor.shape) == 1 and elements(tensor.shape) > 1


def _is_weight(tensor: Tensor, indices: Tensor) -> bool:
    return is_floating(tensor.dtype) and tensor.shape == indices.shape


for _optimizer, _update in OPTIMIZERS.items():
    if _optimizer != "none":
        _register(_optimizer, _update)
        for _kind in ("split", "ssd"):
            generated(
                rf"(fbgemm|fb)::{_kind}_embedding\w*_backward_codegen_(approx_)?{_optimizer}"
                r"_(un)?weighted\w*",
                f"fbgemm::split_embedding_backward_codegen_{_optimizer}",
            )


_OF_WEIGHTS: Final = "split_embedding_codegen_grad_indice_weights"


@operators("""
    (gradients, device_weights, unified_weights, other, other, other, ends, widest, indices,
        offsets, ...): fbgemm::split_embedding_codegen_grad_indice_weights
        fb::split_embedding_codegen_grad_indice_weights
    (gradients, device_weights, unified_weights, other, other, other, ends, widest, _, indices,
        offsets, ...): fbgemm::split_embedding_codegen_grad_indice_weights
        fb::split_embedding_codegen_grad_indice_weights
    (gradients, other, device_weights, unified_weights, other, other, other, ends, widest,
        indices, offsets, ...): fbgemm::split_embedding_codegen_grad_indice_weights
        fb::split_embedding_codegen_grad_indice_weights
    (gradients, other, device_weights, unified_weights, other, other, other, ends, widest, _,
        indices, offsets, ...): fbgemm::split_embedding_codegen_grad_indice_weights
        fb::split_embedding_codegen_grad_indice_weights
""")
def sample_weight_gradients(
    gradients: Tensor,
    indices: Tensor,
    offsets: Tensor,
    device_weights: Tensor,
    unified_weights: Tensor | None = None,
    ends: Tensor | None = None,
    widest: Size = None,
    other: Any = None,
) -> tuple[Cost, str]:
    """Dot product of each picked row and its bag's gradient [bags, widths].

    FLOPs: 2 for each element of each picked row.
    Bytes: gradient, indices, offsets and picked rows read, one float32 number per index written.
    """
    del other
    weights = tuple(w for w in (device_weights, unified_weights) if w is not None)
    found, _, _ = _backward(gradients, weights, ends, widest, indices, offsets, 0, ())
    written = moved(fresh(indices, dtype="float32"))
    read = add_known(moved(gradients, indices, offsets), found.element_bytes(found.picked))
    cost = Cost(2 * found.picked, add_known(read, written), found.exact)
    return cost, texts(gradients, found.weights, indices)


generated(
    r"(fbgemm|fb)::(split|ssd|dense)_embedding\w*_grad_indice_weights\w*",
    f"fbgemm::{_OF_WEIGHTS}",
)
