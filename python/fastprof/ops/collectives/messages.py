"""The message of a collective: its kind, size, type and group, and NCCL's tests' bytes of it.

Source: doc/PERFORMANCE.md in NVIDIA/nccl-tests. The *algorithm* bytes of a call are the size of the
complete array, of which a rank may have only a part. Divided by the time, they give the algorithm
bandwidth. The *bus* bytes are the minimum that every rank sends (or receives) over its link, for
any algorithm. Divided by the time, they are comparable with the link's bandwidth, for any number of
ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.call import Call, Tensor
from fastprof.model.markers.collectives import Collective
from fastprof.ops.dtypes import canonical_type, short_type
from fastprof.ops.registry import arguments, home_of
from fastprof.ops.tensor import byte_count, elements

if TYPE_CHECKING:
    from fractions import Fraction


ALL_REDUCE: Final = "all_reduce"
ALL_GATHER: Final = "all_gather"
REDUCE_SCATTER: Final = "reduce_scatter"
ALL_TO_ALL: Final = "all_to_all"
BROADCAST: Final = "broadcast"
REDUCE: Final = "reduce"
GATHER: Final = "gather"
SCATTER: Final = "scatter"
SEND_RECEIVE: Final = "send_recv"
BARRIER: Final = "barrier"  # moves nothing

COLLECTIVES: Final = (
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    GATHER,
    SCATTER,
    SEND_RECEIVE,
)

# Words in names without underscores; the first match wins.
_WORDS: Final = (
    ("barrier", BARRIER),
    ("crossdevicereduce", ALL_REDUCE),  # vLLM's and SGLang's kernels
    ("allreduce", ALL_REDUCE),
    ("allgather", ALL_GATHER),
    ("reducescatter", REDUCE_SCATTER),
    ("alltoall", ALL_TO_ALL),
    ("broadcast", BROADCAST),
    ("gather", GATHER),
    ("scatter", SCATTER),
    ("reduce", REDUCE),
    ("sendrecv", SEND_RECEIVE),
    ("send", SEND_RECEIVE),
    ("recv", SEND_RECEIVE),
)


def kind_of(name: str) -> str | None:
    """The kind of collective with this name; None if it is not a collective.

    Parameters
    ----------
    name : str
        A torch operator (`c10d::allreduce_`), a range (`nccl:_all_gather_base`), a collective's
        name in the PyTorch profiler (`all_to_allv`), or an NCCL kernel
        (`ncclDevKernel_AllReduce_Sum_f32_RING_LL`; `SendRecv` may also be an all-to-all).
    """
    plain = name.lower().replace("_", "")
    return next((kind for word, kind in _WORDS if word in plain), None)


def algorithm_bytes(kind: str, given: int, got: int) -> int:
    """The size of a call.

    Parameters
    ----------
    kind : str
        One of `COLLECTIVES`.
    given, got : int
        Input and output bytes of this rank.

    Returns
    -------
    int
        The size of the complete array: the output of an all-gather, the input of a reduce-scatter,
        else the larger of both (some ranks have only one of them).

    Raises
    ------
    ValueError
        The kind is not in `COLLECTIVES`, or a size is negative.
    """
    if kind not in COLLECTIVES or min(given, got) < 0:
        raise ValueError(
            f"expected one of {COLLECTIVES} and sizes from 0, found {kind!r} {given} {got}"
        )
    if kind == ALL_GATHER:
        return got
    if kind == REDUCE_SCATTER:
        return given
    return max(given, got)


def bus_bytes(kind: str, size: int, ranks: int) -> Fraction:
    """The minimum traffic over each rank's link, for algorithm bytes `size`.

    Parameters
    ----------
    kind : str
        One of `COLLECTIVES`.
    size : int
        Algorithm bytes (`algorithm_bytes`).
    ranks : int
        Ranks of the group.

    Returns
    -------
    Fraction
        size * 2 (n - 1) / n for an all-reduce; size * (n - 1) / n for an all-gather, a
        reduce-scatter, an all-to-all, a gather and a scatter; size for a broadcast, a reduction to
        one rank, and a message.

    Raises
    ------
    ValueError
        The kind is not in `COLLECTIVES`, or `ranks` is less than 1.
    """
    if kind not in COLLECTIVES or ranks < 1:
        raise ValueError(
            f"expected one of {COLLECTIVES} and ranks from 1, found {kind!r} of {ranks}"
        )
    from fractions import Fraction  # imports decimal

    share = Fraction(ranks - 1, ranks)
    if kind == ALL_REDUCE:
        return 2 * size * share
    if kind in (BROADCAST, REDUCE, SEND_RECEIVE):
        return Fraction(size)
    return size * share


# Collectives whose output has the size of the input, where a rank has both.
_ALIKE: Final = frozenset({ALL_REDUCE, REDUCE, BROADCAST, SEND_RECEIVE})
_FORMULAS: Final = ("fastprof.ops.collectives.", "fastprof.ops.libraries.serving.collectives")
_TORCH: Final = ("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd")


@dataclass(frozen=True, slots=True)
class Message:
    """The message of one call of a collective; None where unknown.

    Parameters
    ----------
    kind : str or None
        One of `bandwidth.COLLECTIVES`, or barrier.
    given, got : int or None
        Bytes of this rank's input and output.
    dtype : str or None
        Short name of the type (`fp32`).
    ranks : int or None
        Number of ranks of the process group.
    group : str or None
        Name and description of the process group.
    members : tuple of int
        Its ranks; empty if unknown.
    source, target : int or None
        The rank that sends and the rank that receives, of a message between two ranks.
    """

    kind: str | None
    given: int | None = None
    got: int | None = None
    dtype: str | None = None
    ranks: int | None = None
    group: str | None = None
    members: tuple[int, ...] = ()
    source: int | None = None
    target: int | None = None

    @property
    def size(self) -> int | None:
        """Algorithm bytes, see `bandwidth.algorithm_bytes`."""
        if self.kind not in COLLECTIVES:
            return None
        known = [number for number in (self.given, self.got) if number is not None]
        needed = {ALL_GATHER: self.got, REDUCE_SCATTER: self.given}.get(self.kind, known)
        if needed is None or needed == []:
            return None
        return algorithm_bytes(self.kind, self.given or 0, self.got or 0)

    @property
    def bus(self) -> float | None:
        """Bus bytes, see `bandwidth.bus_bytes`."""
        size = self.size
        if self.kind is None or size is None:
            return None
        if self.kind in (BROADCAST, REDUCE, SEND_RECEIVE):
            return float(size)
        return float(bus_bytes(self.kind, size, self.ranks)) if self.ranks else None


def recorded_message(record: Collective) -> Message:
    """The message of the PyTorch profiler's record of a call."""
    given, got = (
        None if count is None else byte_count(count, record.dtype)
        for count in (record.given, record.got)
    )
    kind = kind_of(record.name)
    message = _message(kind, given, got, record.dtype, record.ranks or None, record.group)
    return replace(message, members=record.members, source=record.source, target=record.target)


def kernel_message(name: str, message: Message | None = None) -> Message:
    """The message with the kind of collective in the kernel's name, if it lacks one.

    Kernels named SendRecv also run all-to-alls; a generic kernel may run any collective.
    """
    if message is None:
        return Message(kind_of(name))
    return message if message.kind else replace(message, kind=kind_of(name))


def joined(message: Message, other: Message | None) -> Message:
    """A message with what it lacks from another of the same call.

    The exchange of messages by which an operator is implemented is the operator's.
    """
    if other is None:
        return message
    is_part = other.kind in (None, SEND_RECEIVE)
    kind = message.kind if is_part and message.kind else other.kind or message.kind
    given, got = message.given, message.got
    if message.size is None:
        given, got = other.given, other.got
    ranks, group = message.ranks or other.ranks, message.group or other.group
    return replace(
        _message(kind, given, got, None, ranks, group),
        dtype=message.dtype,
        members=message.members or other.members,
        source=other.source if message.source is None else message.source,
        target=other.target if message.target is None else message.target,
    )


def call_message(call: Call | None, kernel: str = "") -> Message | None:
    """The message of a call of a collective's operator; None for any other call.

    kernel : the name of its kernel, for the type of tensors whose types the call does not record
    """
    if call is None or not _is_collective(call):
        return None
    kind = kind_of(call.op)
    if kind is None:
        return None
    recorded = arguments(call)
    values = {name: recorded.get(name) for name in _PARAMETERS}
    counts = (values[name] for name in _RANKS)
    ranks = next((count for count in counts if isinstance(count, int) and count > 0), None)
    if isinstance(values["group"], tuple):
        ranks = len(values["group"])
    both = _tensors(values["both"])
    is_input = kind in (REDUCE_SCATTER, SCATTER)
    given = [*_tensors(values["nested"] if is_input else None), *both[len(both) // 2 :]]
    got = [*_tensors(None if is_input else values["nested"]), *both[: len(both) // 2]]
    for names, tensors in ((_INPUTS, given), (_OUTPUTS, got)):
        tensors += [tensor for name in names for tensor in _tensors(values[name])]
    if kind == SCATTER and values["nested"]:  # c10d::scatter_(outputs, nested inputs)
        given, got = _tensors(values["nested"]), _tensors(values["tensors"])
    default = _type_of_kernel(kernel)
    types = {canonical_type(tensor.dtype) or default for tensor in (*given, *got)}
    dtype = types.pop() if len(types) == 1 else None
    return _message(kind, _bytes(given, default), _bytes(got, default), dtype, ranks, None)


_INPUTS: Final = ("inputs", "tensors", "tensor", "x")
_OUTPUTS: Final = ("outputs", "out")
_RANKS: Final = ("ranks", "group_size")
_PARAMETERS: Final = (*_INPUTS, *_OUTPUTS, *_RANKS, "nested", "both", "group")


def _is_collective(call: Call) -> bool:
    if call.mod in _TORCH or call.op.startswith("nccl:"):
        return True
    home = home_of(call)
    return home is not None and home.startswith(_FORMULAS)


def _message(
    kind: str | None,
    given: int | None,
    got: int | None,
    dtype: str | None,
    ranks: int | None,
    group: str | None,
) -> Message:
    """The message, with the size and the number of ranks that follow from the others."""
    if kind == BARRIER:
        given = got = None
    elif kind in _ALIKE:
        sizes = [size for size in (given, got) if size is not None]
        given = got = max(sizes, default=None)
    elif kind in (ALL_GATHER, GATHER) and got is None and None not in (given, ranks):
        got = (given or 0) * (ranks or 0)
    elif kind in (REDUCE_SCATTER, SCATTER) and given is None and None not in (got, ranks):
        given = (got or 0) * (ranks or 0)
    if ranks is None and kind in (ALL_GATHER, REDUCE_SCATTER) and given and got:
        ranks, left = divmod(max(given, got), min(given, got))
        ranks = None if left else ranks
    name = short_type(dtype)
    return Message(kind, given, got, None if name == "na" else name, ranks, group)


def _tensors(value: Any) -> list[Tensor]:
    """The tensors of an argument: a tensor, or a list of them, possibly nested."""
    if isinstance(value, Tensor):
        return [value]
    members = value if isinstance(value, tuple) else ()
    return [tensor for member in members for tensor in _tensors(member)]


# NCCL's reductions: ncclDevKernel_AllReduce_Sum_f32_RING_LL, ncclKernel_AllReduce_RING_LL_Sum_half.
_REDUCTION: Final = regex(
    r"nccl\w*Reduce\w*_(?:sum|prod|min|max|minmax|premulsum|sumpostdiv)_+"
    r"(\w+?)(?:_(?:ring|tree|collnet|nvls)\w*)?(?:\(|\Z)",
    re.IGNORECASE,
)
_BITS: Final = (8, 32, 64)
_TYPES: Final = {
    "half": "float16",
    "f16": "float16",
    "float": "float32",
    "f32": "float32",
    "double": "float64",
    "f64": "float64",
    "nv_bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "hip_bfloat16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    **{f"{sign}{n}": f"{name}{n}" for sign, name in (("i", "int"), ("u", "uint")) for n in _BITS},
    **{f"{name}{n}_t": f"{name}{n}" for name in ("int", "uint") for n in _BITS},
}


def _type_of_kernel(name: str) -> str | None:
    """The type of a reduction's operands, from its kernel's name."""
    match = _REDUCTION.match(name)
    return None if match is None else _TYPES.get(match[1])


def _bytes(tensors: Iterable[Tensor], default: str | None) -> int | None:
    """Bytes of all tensors; None if there are none, or a type is unknown."""
    sizes = [byte_count(elements(tensor.shape), tensor.dtype or default) for tensor in tensors]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None
