"""Attention over caches to its sizes: from batches, longest sequences and tables of blocks."""

from __future__ import annotations

from typing import NamedTuple

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.attention.sizes import Attention, forward
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.serving.lengths import lengths_of
from fastprof.ops.tensor import elements

__all__ = ["Batch", "Length", "attended", "heads_of", "longest", "over_cache", "size_of_head"]

Batch = str | Unknown | None
Length = int | Unknown | None

_NOT_TOLD = "the lengths of the sequences are values, which this capture does not hold"


class Attended(NamedTuple):
    """Queries times keys of one head, the keys that are read, and whether both are exact."""

    scores: int
    keys: int
    exact: bool


def longest(*limits: Length) -> int | None:
    """The least of the limits that are known."""
    known = [each for each in limits if isinstance(each, int) and each > 0]
    return min(known) if known else None


def attended(tokens: int, batch: Batch, sequences: int | None, limit: int | None) -> Attended:
    """What so many queries attend to.

    Parameters
    ----------
    tokens : int
        Queries of all sequences.
    batch : str, Unknown or None
        Name of the range of the batch, which tells the lengths.
    sequences : int or None
        How many there are.
    limit : int or None
        Keys that the longest sequence has, or a bound of it: what follows from it is an estimate.

    Raises
    ------
    CannotModel
        When nothing tells how many keys there are.
    """
    told = lengths_of(batch, tokens) if isinstance(batch, str) else None
    if told is not None and told.scores is not None and told.keys is not None:
        return Attended(told.scores, told.keys, told.exact)
    if limit is None:
        raise CannotModel(_NOT_TOLD)
    return Attended(tokens * limit, min(sequences or tokens, tokens) * limit, False)


def heads_of(x: Tensor, size: int | None) -> tuple[int, int, int]:
    """Tokens, heads and their size: of [.., heads, size], or of [tokens, heads * size].

    Raises
    ------
    CannotModel
        When the heads cannot be told.
    """
    if len(x.shape) >= 3:
        return elements(x.shape[:-2]), x.shape[-2], x.shape[-1]
    if len(x.shape) == 2 and size and x.shape[1] % size == 0:
        return x.shape[0], x.shape[1] // size, size
    raise CannotModel(f"the heads of {x.shape} cannot be told")


def size_of_head(x: Tensor) -> int:
    """The last size.

    Raises
    ------
    CannotModel
        When there is none.
    """
    if not x.shape:
        raise CannotModel("no heads")
    return x.shape[-1]


def over_cache(
    query: Tensor,
    rows: int,
    found: Attended,
    key: tuple[int, int, str | None],
    value: tuple[int, int, str | None],
) -> Work:
    """Attention whose keys and values lie in a cache.

    Parameters
    ----------
    query : Tensor
    rows : int
        Queries of all heads.
    found : Attended
    key, value : tuple
        Heads, their size and the type of keys and of values. Values without heads are a part of
        the keys, and are not read again.
    """
    (key_heads, depth, key_type), (value_heads, width, value_type) = key, value
    keys = Tensor((found.keys, key_heads, depth), key_type)
    values = Tensor((found.keys, value_heads, width), value_type)
    heads = rows // _tokens(query, rows)
    scores = found.scores * heads
    sizes = Attention(query, keys, values, None, rows, scores, depth, width, found.exact)
    return Work((forward(sizes, sums=False),))


def _tokens(query: Tensor, rows: int) -> int:
    tokens = elements(query.shape[:-2]) if len(query.shape) > 2 else (query.shape or (1,))[0]
    if not tokens or rows % tokens:
        raise CannotModel(f"{rows} rows do not fit {query.shape}")
    return tokens
