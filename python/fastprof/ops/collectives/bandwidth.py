"""A collective's bytes as NCCL's tests count them: per call, and over the wires.

Source: doc/PERFORMANCE.md in NVIDIA/nccl-tests. The *algorithm* bytes of a call are what its users
think of as its size: the whole array, of which a rank may have a piece only. Divided by the time
they are the algorithm bandwidth. The *bus* bytes are what every rank has to send (or receive) at
least over its link, whatever the algorithm; divided by the time they can be compared with the
link's speed, for any number of ranks.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

__all__ = ["COLLECTIVES", "algorithm_bytes", "bus_bytes", "kind_of"]

ALL_REDUCE: Final = "all_reduce"
ALL_GATHER: Final = "all_gather"
REDUCE_SCATTER: Final = "reduce_scatter"
ALL_TO_ALL: Final = "all_to_all"
BROADCAST: Final = "broadcast"
REDUCE: Final = "reduce"
GATHER: Final = "gather"
SCATTER: Final = "scatter"
SEND_RECEIVE: Final = "send_recv"

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

# Words of names, without underscores; the first that a name holds decides.
_WORDS: Final = (
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
    """The kind of collective that a name is of, None for none.

    Parameters
    ----------
    name : str
        Of an operator of torch (`c10d::allreduce_`), of a range (`nccl:_all_gather_base`), of what
        the PyTorch profiler records of a collective (`all_to_allv`), or of a kernel of NCCL
        (`ncclDevKernel_AllReduce_Sum_f32_RING_LL`, where `SendRecv` may also be an all-to-all).
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
        Bytes that this rank gives and gets.

    Returns
    -------
    int
        The whole array: what a rank gets of an all-gather, gives to a reduce-scatter; the larger
        of both for the others, which on some ranks have one side only.

    Raises
    ------
    ValueError
        When the kind is none of `COLLECTIVES`, or a size is negative.
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
    """What crosses each rank's link at least, for algorithm bytes `size`.

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
        When the kind is none of `COLLECTIVES`, or there is no rank.
    """
    if kind not in COLLECTIVES or ranks < 1:
        raise ValueError(
            f"expected one of {COLLECTIVES} and ranks from 1, found {kind!r} of {ranks}"
        )
    share = Fraction(ranks - 1, ranks)
    if kind == ALL_REDUCE:
        return 2 * size * share
    if kind in (BROADCAST, REDUCE, SEND_RECEIVE):
        return Fraction(size)
    return size * share
