"""Bytes of collective communication: reads and writes of one device in its own memory.

Each input of a rank is read once and each output written once. Network traffic (see
`fastprof.ops.collectives.messages`) and copies through a library's buffers are not counted.
Functional ones return new tensors, whose size follows from the number of ranks, an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.parameters import Int, Size, Tensors, checked
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import byte_count, elements, moved, texts

Function = TypeVar("Function", bound=Callable[..., Any])
Several = Tensors | Tensor | None

_MODULE: Final = "torch.distributed"
_FUNCTION: Final = re.compile(r"\bdist\.(\w+)")


def collective(text: str) -> Callable[[Function], Function]:
    """As `operators`; "dist.send" is a function of torch.distributed, of both of its modules."""
    both = rf"{_MODULE}.\1 {_MODULE}.distributed_c10d.\1"
    return operators(_FUNCTION.sub(both, text))


def several(*given: Several) -> Tensors:
    """The tensors of arguments that are a tensor, a list, or None."""
    lists = [
        value if isinstance(value, tuple) else (value,) for value in given if value is not None
    ]
    return tuple(tensor for one in lists for tensor in one)


def count_of(tensors: Tensors) -> int:
    """Elements of all tensors."""
    return sum(elements(tensor.shape) for tensor in tensors)


@collective("""
    The sum (or another reduction) of tensors over all n ranks, on each of them.
    FLOPs: a rank's share of the additions, (n - 1) / n for each element; one for each, an estimate,
        if the capture does not record the number of ranks.
    Bytes: each tensor read and written.

    Its backward pass is an all-reduce of the gradients.
    (tensor=tensors, ...): dist.all_reduce
    (tensors*, _, _, _): dist.all_reduce_coalesced
    (tensors*, _, _, _, _, _, ranks): c10d::allreduce_
    (tensors*, _, _, _, _, ranks): c10d::allreduce_coalesced_
    (input=tensors, _, _): _c10d_functional::all_reduce _c10d_functional::all_reduce_
    (tensors*, _, _): _c10d_functional::all_reduce_coalesced _c10d_functional::all_reduce_coalesced_
    (tensors, _, _, _, _): c10d_functional::all_reduce
    (tensors*, _, _, _, _): c10d_functional::all_reduce_coalesced
    (tensors*): aten::nccl:all_reduce aten::nccl:allreduce_coalesced
""")
def all_reduce(tensors: Tensors | Tensor, ranks: Size = None, *, direction: str) -> Answer:
    result = several(tensors)
    count, known = count_of(result), isinstance(ranks, int) and ranks > 0
    if isinstance(ranks, int) and ranks > 0:
        count = count * (ranks - 1) // ranks
    return Cost(count, moved(*result, *result), exact=known), texts(*result)


@collective("""
    The sum (or another reduction) of tensors over all ranks, on one of them.
    FLOPs: one for each element, an estimate: a rank's share is (n - 1) / n of that in a ring.
    Bytes: each tensor read, an estimate: the root also writes it, and the call does not identify
        the root.
    (tensor=tensors, ...): dist.reduce
    (tensors*, _, _, _, _, _, _): c10d::reduce_
    (tensors*): aten::nccl:reduce
""")
def reduce_to_one(tensors: Tensors | Tensor) -> Answer:
    result = several(tensors)
    return Cost(count_of(result), moved(*result), exact=False), texts(*result)


@collective("""
    Tensors from one rank to another, or to all.
    FLOPs: 0.
    Bytes: each tensor once: read by the rank that has it, written by one that gets it.
    (tensor=tensors, ...): dist.broadcast dist.send dist.recv dist.isend dist.irecv
    (tensors*, _, _, _, _, _): c10d::broadcast_
    (tensors*, _, _, _): c10d::send c10d::recv_
    (tensors*, _, _): c10d::recv_any_source_
    (tensors, _, _): _c10d_functional::broadcast_
    (tensors, _, _, _): _c10d_functional::isend _c10d_functional::irecv
    (_, _, _, tensors*, _): _c10d_functional::batch_p2p_ops
    (tensors*): aten::nccl:broadcast
""")
def one_side(tensors: Tensors | Tensor) -> Answer:
    result = several(tensors)
    return Cost(0, moved(*result)), texts(*result)


@collective("""
    Tensors between ranks, unchanged: all-gather, gather, scatter, all-to-all.
    FLOPs: 0.
    Bytes: inputs read and outputs written, if present: only the root passes the list of a gather or
        a scatter.
    (tensor_list=outputs*, tensor=inputs, _, _): dist.all_gather
    (outputs*, _, _): dist.all_gather_coalesced
    (output_tensor=outputs, input_tensor=inputs, ...): dist.all_gather_into_tensor
        dist.all_gather_single dist._all_gather_base
    (output_tensor_list=outputs*, input_tensor_list=inputs*, _, _): dist.all_to_all
    (output=outputs, input=inputs, ...): dist.all_to_all_single
    (tensor=inputs, gather_list=outputs*, _, _, _, _): dist.gather
    (tensor=inputs, _, ...): dist.gather
    (tensor=outputs, scatter_list=inputs*, _, _, _, _): dist.scatter
    (tensor=outputs, _, ...): dist.scatter
    (outputs, inputs, ...): c10d::_allgather_base_ c10d::alltoall_base_
    (outputs*, inputs*, _, _): c10d::allgather_into_tensor_coalesced_
    (outputs*, inputs*, _, _, _): c10d::alltoall_
    (outputs*, _, _, _): c10d::alltoall_
    (outputs*, _, _): dist.all_to_all c10d::allgather_into_tensor_coalesced_
""")
def exchange(outputs: Several = None, inputs: Several = None) -> Answer:
    result = several(outputs, inputs)
    if not result:
        raise CannotModel("no tensor among the arguments")
    return Cost(0, moved(*result)), texts(*result)


@collective("""
    Tensors between ranks, unchanged, to (or from) a list of lists.
    FLOPs: 0.
    Bytes: inputs read, outputs written; unknown in torch ranges, which do not record the list of
        lists.
    (nested, tensors*, _, _, _): c10d::allgather_
    (nested, tensors*, _, _): c10d::allgather_coalesced_
    (nested, tensors*, _, _, _, _): c10d::gather_
    (tensors*, nested, _, _, _, _): c10d::scatter_
""")
def nested_exchange(nested: Any, tensors: Tensors) -> Answer:
    result = _flattened(nested)
    known = None if result is None else moved(*tensors, *result)
    return Cost(0, known), texts(*tensors, *(result or ()))


@collective("""
    An exchange in a range of NCCL's process group, which records inputs only.
    FLOPs: 0.
    Bytes: unknown; the size of the outputs depends on the group or the splits.
    (tensors*): aten::nccl:all_gather aten::nccl:_all_gather_base
        aten::nccl:all_gather_into_tensor_coalesced aten::nccl:all_to_all aten::nccl:gather
        aten::nccl:scatter
""")
def unseen_outputs(tensors: Tensors) -> Answer:
    return Cost(0, None), texts(*tensors)


@collective("""
    The sum (or another reduction) of tensors over all ranks, a piece of it on each.
    FLOPs: inputs' elements less outputs': n - 1 additions for each element of this rank's piece.
    Bytes: inputs read, outputs written.

    Unknown for lists of lists in torch ranges, which do not record them.
    (output=outputs, input_list=inputs*, _, _, _): dist.reduce_scatter
    (output=outputs, input=inputs, ...): dist.reduce_scatter_tensor dist.reduce_scatter_single
        dist._reduce_scatter_base
    (outputs, inputs, ...): c10d::_reduce_scatter_base_
    (outputs*, nested, _, _, _, _): c10d::reduce_scatter_
    (outputs*, inputs*, _, _, _, _): c10d::reduce_scatter_tensor_coalesced_
    (both*, _, _, _, _): c10d::reduce_scatter_tensor_coalesced_
""")
def reduce_scatter(
    outputs: Several = None, inputs: Several = None, nested: Any = None, both: Tensors = ()
) -> Answer:
    given, got = several(inputs), several(outputs)
    if both:
        half, left = divmod(len(both), 2)
        if left:
            raise CannotModel(f"{len(both)} tensors are not inputs and outputs")
        got, given = both[:half], both[half:]
    elif nested is not None:
        given = _flattened(nested) or ()
    if not given or not got:
        raise CannotModel("inputs or outputs are not in the capture")
    added = count_of(given) - count_of(got)
    if added < 0:
        raise CannotModel("the outputs are larger than the inputs")
    return Cost(added, moved(*given, *got)), texts(*got, *given)


@collective("""
    A reduce-scatter in a range of NCCL's process group, which records inputs only.
    FLOPs: one for each element, an estimate: a rank's share is (n - 1) / n of that.
    Bytes: unknown; the size of the output depends on the group.
    (tensors*): aten::nccl:reduce_scatter aten::nccl:_reduce_scatter_base
        aten::nccl:reduce_scatter_tensor_coalesced
""")
def unseen_pieces(tensors: Tensors) -> Answer:
    return Cost(count_of(tensors), None, exact=False), texts(*tensors)


@collective("""
    Ranks, or a stream, wait for each other.
    FLOPs: 0.
    Bytes: 0; a barrier may move one number.
    (...): dist.barrier dist.monitored_barrier c10d::barrier c10d::monitored_barrier_
        _c10d_functional::wait_tensor c10d_functional::wait_tensor aten::nccl:all_reduce_barrier
""")
def nothing(*, direction: str) -> Cost:
    return Cost(0, 0)


def _flattened(nested: Any) -> Tensors | None:
    # The tensors in a list of lists; None if not recorded.
    if not isinstance(nested, tuple):
        return None
    results: list[Tensor] = []
    for one in nested:
        if not isinstance(one, tuple):
            return None
        results += map(checked, one)
    return tuple(results)


Splits = tuple[int, ...] | Unknown | None


@operators("""
    The tensors of all n ranks, concatenated, on each of them.
    FLOPs: 0; backward, a reduce-scatter, n - 1 for each element of this rank's tensors.
    Bytes: inputs read, outputs of n times their size written; backward reversed.

    Unknown if it depends on the number of ranks and that is not recorded.
    (tensors, group_size, _): _c10d_functional|_c10d_functional_autograd::all_gather_into_tensor
    (tensors, group_size, _, out): _c10d_functional::all_gather_into_tensor_out
    (tensors*, group_size, _): _c10d_functional::all_gather_into_tensor_coalesced
    (tensors, _, _, group_size): c10d_functional::all_gather_into_tensor
    (tensors*, _, _, group_size): c10d_functional::all_gather_into_tensor_coalesced
""")
def gathered(
    tensors: Tensors | Tensor, group_size: Int, out: Tensor | None = None, *, direction: str
) -> Answer:
    result = several(tensors)
    size = _size(group_size)
    small = moved(*result)
    large = None if small is None or size is None else small * size
    flops: int | None = 0
    if direction == "bprop":
        flops = None if size is None else (size - 1) * count_of(result)
    return Cost(flops, add_known(small, large)), texts(*result)


@operators("""
    The sum (or another reduction) of tensors over n ranks, a piece of it on each.
    FLOPs: n - 1 for each element of this rank's piece; backward, an all-gather, 0.
    Bytes: inputs read, an n-th of their size written; backward reversed.

    Unknown if it depends on the number of ranks and that is not recorded.
    (tensors, _, group_size, _):
        _c10d_functional|_c10d_functional_autograd::reduce_scatter_tensor
    (tensors, _, group_size, _, out): _c10d_functional::reduce_scatter_tensor_out
    (tensors*, _, group_size, _): _c10d_functional::reduce_scatter_tensor_coalesced
    (tensors, _, _, _, group_size): c10d_functional::reduce_scatter_tensor
    (tensors*, _, _, _, group_size): c10d_functional::reduce_scatter_tensor_coalesced
""")
def reduce_scatter_tensor(
    tensors: Tensors | Tensor, group_size: Int, out: Tensor | None = None, *, direction: str
) -> Answer:
    result = several(tensors)
    size = _size(group_size)
    counts = [elements(tensor.shape) for tensor in result]
    if size is not None and any(count % size for count in counts):
        raise CannotModel(f"{size} ranks cannot share {texts(*result)}")
    large = moved(*result)
    small = None if large is None or size is None else large // size
    flops: int | None = 0
    if direction == "fprop":
        flops = None if size is None else sum(counts) // size * (size - 1)
    return Cost(flops, add_known(small, large)), texts(*result)


table_row("""
    One rank's tensor as a new one on each of them.
    FLOPs: 0.
    Bytes: the tensor read, and the same amount written.
    (tensor, _, _): _c10d_functional::broadcast
    (tensor, ...): c10d_functional::broadcast
""")("tensor", Traffic(0, "tensor tensor"))


@operators("""
    Rows from each rank to each: x [m, ..] -> [sum of the output splits, ..].
    FLOPs: 0.
    Bytes: the tensor read, the output written; backward reversed.

    If the splits are not in the capture, the output's size and the bytes are unknown. Without
    splits it is the input's.
    (tensor, splits, _, _): _c10d_functional|_c10d_functional_autograd::all_to_all_single
    (tensor, splits, ...): c10d_functional::all_to_all_single
""")
def all_to_all_single(tensor: Tensor, splits: Splits = None, *, direction: str) -> Answer:
    if splits is None or splits == ():
        written = moved(Tensor(tensor.shape, tensor.dtype))
    elif isinstance(splits, Unknown):
        written = None
    elif not tensor.shape or min(splits) < 0:
        raise CannotModel(f"{tensor.shape} cannot be split into {splits}")
    else:
        written = byte_count(sum(splits) * elements(tensor.shape[1:]), tensor.dtype)
    return Cost(0, add_known(moved(tensor), written)), texts(tensor)


def _size(group_size: Int) -> int | None:
    if isinstance(group_size, Unknown):
        return None
    if group_size < 1:
        raise CannotModel(f"invalid group size {group_size}")
    return group_size
