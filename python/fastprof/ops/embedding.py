"""Embedding look-up to bytes: rows of a table copied, or their gradients added up."""

from __future__ import annotations

from fastprof.call import Call, Tensor
from fastprof.ops.arguments import tensor
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.registry import model
from fastprof.ops.tensor import byte_count, elements, is_integer, tensor_bytes, tensor_text

__all__ = ["embedding"]


@model("embedding")
def embedding(call: Call, direction: str) -> Work:
    """Rows of weight[vocabulary, d] picked by indices[...]: output [..., d].

    Forward moves the indices and each picked row twice (read, written). Backward moves three
    times the picked rows: gradient read, rows of the weight gradient read and written; zeroing
    the rest of a dense gradient is not counted. FLOPs are 0 in both: backward adds only where an
    index repeats, which a capture does not tell. Formulas of PyProf.
    """
    indices, weight = _indices_and_weight(call)
    rows = byte_count(elements(indices.shape) * weight.shape[1], weight.dtype)
    if direction == "fprop":
        moved = add_known(tensor_bytes(indices), rows, rows)
    else:
        moved = add_known(rows, rows, rows)
    params = f"{tensor_text(indices)};{tensor_text(weight)}"
    return Work((Part("main", Cost(0, moved), params),))


def _indices_and_weight(call: Call) -> tuple[Tensor, Tensor]:
    # torch.nn.functional takes (input, weight), torch and ATen (weight, indices). Where the
    # types say that it is the other way round, they are right.
    if call.mod == "torch.nn.functional":
        indices, weight = tensor(call, 0, "input"), tensor(call, 1, "weight")
    else:
        weight, indices = tensor(call, 0, "weight"), tensor(call, 1, "indices")
    if is_integer(weight.dtype) and not is_integer(indices.dtype):
        indices, weight = weight, indices
    if len(weight.shape) != 2:
        raise CannotModel(f"embedding: weight has shape {weight.shape}, not 2-d")
    return indices, weight
