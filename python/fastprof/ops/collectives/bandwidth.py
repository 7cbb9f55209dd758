"""Algorithm bytes and bus bytes of a collective, as defined by NCCL's tests.

Source: doc/PERFORMANCE.md in NVIDIA/nccl-tests. The *algorithm* bytes of a call are the size of the
complete array, of which a rank may have only a part. Divided by the time, they give the algorithm
bandwidth. The *bus* bytes are the minimum that every rank sends (or receives) over its link, for
any algorithm. Divided by the time, they are comparable with the link's bandwidth, for any number of
ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
