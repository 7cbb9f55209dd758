"""FLOPs and bytes of functional collectives, used by compiled and sharded models.

They return new tensors, whose size follows from the number of ranks, an argument.
"""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.collectives.distributed import count_of, several
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts

Size = int | Unknown
Splits = tuple[int, ...] | Unknown | None


@operators("""
    (tensors, group_size, _): _c10d_functional::all_gather_into_tensor
        _c10d_functional_autograd::all_gather_into_tensor
    (tensors, group_size, _, out): _c10d_functional::all_gather_into_tensor_out
    (tensors*, group_size, _): _c10d_functional::all_gather_into_tensor_coalesced
    (tensors, _, _, group_size): c10d_functional::all_gather_into_tensor
    (tensors*, _, _, group_size): c10d_functional::all_gather_into_tensor_coalesced
""")
def gathered(
    tensors: Tensors | Tensor,
    group_size: Size,
    out: Tensor | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """The tensors of all n ranks, concatenated, on each of them.

    FLOPs: 0; backward, a reduce-scatter, n - 1 for each element of this rank's tensors.
    Bytes: inputs read, outputs of n times their size written; backward reversed.

    Unknown if it depends on the number of ranks and that is not recorded.
    """
    del out
    found = several(tensors)
    size = _size(group_size)
    small = moved(*found)
    large = None if small is None or size is None else small * size
    flops: int | None = 0
    if direction == "bprop":
        flops = None if size is None else (size - 1) * count_of(found)
    return Cost(flops, add_known(small, large)), texts(*found)


@operators("""
    (tensors, _, group_size, _): _c10d_functional::reduce_scatter_tensor
        _c10d_functional_autograd::reduce_scatter_tensor
    (tensors, _, group_size, _, out): _c10d_functional::reduce_scatter_tensor_out
    (tensors*, _, group_size, _): _c10d_functional::reduce_scatter_tensor_coalesced
    (tensors, _, _, _, group_size): c10d_functional::reduce_scatter_tensor
    (tensors*, _, _, _, group_size): c10d_functional::reduce_scatter_tensor_coalesced
""")
def scattered(
    tensors: Tensors | Tensor,
    group_size: Size,
    out: Tensor | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """The sum (or another reduction) of tensors over n ranks, a piece of it on each.

    FLOPs: n - 1 for each element of this rank's piece; backward, an all-gather, 0.
    Bytes: inputs read, an n-th of their size written; backward reversed.

    Unknown if it depends on the number of ranks and that is not recorded.
    """
    del out
    found = several(tensors)
    size = _size(group_size)
    counts = [elements(each.shape) for each in found]
    if size is not None and any(count % size for count in counts):
        raise CannotModel(f"{size} ranks cannot share {texts(*found)}")
    large = moved(*found)
    small = None if large is None or size is None else large // size
    flops: int | None = 0
    if direction == "fprop":
        flops = None if size is None else sum(counts) // size * (size - 1)
    return Cost(flops, add_known(small, large)), texts(*found)


@operators("""
    (tensor, _, _): _c10d_functional::broadcast
    (tensor, ...): c10d_functional::broadcast
""")
def broadcast(tensor: Tensor) -> tuple[Cost, str]:
    """One rank's tensor as a new one on each of them.

    FLOPs: 0.
    Bytes: the tensor read, and the same amount written.
    """
    return Cost(0, moved(tensor, tensor)), texts(tensor)


@operators("""
    (tensor, splits, _, _): _c10d_functional::all_to_all_single
        _c10d_functional_autograd::all_to_all_single
    (tensor, splits, ...): c10d_functional::all_to_all_single
""")
def exchanged(tensor: Tensor, splits: Splits = None, *, direction: str) -> tuple[Cost, str]:
    """Rows from each rank to each: x [m, ..] -> [sum of the output splits, ..].

    FLOPs: 0.
    Bytes: the tensor read, the output written; backward reversed.

    If the splits are not in the capture, the output's size and the bytes are unknown. Without
    splits it is the input's.
    """
    del direction
    if splits is None or splits == ():
        written = moved(Tensor(tensor.shape, tensor.dtype))
    elif isinstance(splits, Unknown):
        written = None
    elif not tensor.shape or min(splits) < 0:
        raise CannotModel(f"{tensor.shape} cannot be split into {splits}")
    else:
        written = byte_count(sum(splits) * elements(tensor.shape[1:]), tensor.dtype)
    return Cost(0, add_known(moved(tensor), written)), texts(tensor)


def _size(group_size: Size) -> int | None:
    if isinstance(group_size, Unknown):
        return None
    if group_size < 1:
        raise CannotModel(f"invalid group size {group_size}")
    return group_size
