"""Embedding look-up to bytes: rows of a table copied, or their gradients added up."""

from __future__ import annotations

from fastprof.call import Tensor
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import byte_count, elements, is_integer, tensor_bytes, tensor_text

__all__ = ["embedding"]


# torch.nn.functional takes (input, weight), torch and ATen (weight, indices): types tell.
@op(
    TORCH,
    "embedding(indices, weight, ...)",
    "embedding(weight, indices, ...)",
    aten=("embedding(weight, indices, ...)",),
)
def embedding(weight: Tensor, indices: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Rows of weight[vocabulary, d] picked by indices[...]: output [..., d].

    Forward moves the indices and each picked row twice (read, written). Backward moves three
    times the picked rows: gradient read, rows of the weight gradient read and written; zeroing
    the rest of a dense gradient is not counted. FLOPs are 0 in both: backward adds only where an
    index repeats, which a capture does not tell. Formulas of PyProf.
    """
    if is_integer(weight.dtype) and not is_integer(indices.dtype):
        indices, weight = weight, indices
    if len(weight.shape) != 2:
        raise CannotModel(f"weight has shape {weight.shape}, not 2-d")
    rows = byte_count(elements(indices.shape) * weight.shape[1], weight.dtype)
    if direction == "fprop":
        moved = add_known(tensor_bytes(indices), rows, rows)
    else:
        moved = add_known(rows, rows, rows)
    return Cost(0, moved), f"{tensor_text(indices)};{tensor_text(weight)}"
