"""Sizes of attention over caches, from batch ranges, maximum lengths and block tables."""

from __future__ import annotations

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.attention.sizes import Attention, attention_forward
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.libraries.serving.lengths import lengths_of
from fastprof.ops.parameters import Int
from fastprof.ops.tensor import elements

Batch = str | Unknown | None
Length = Int | None

_NOT_RECORDED = "the lengths of the sequences are not in the capture"


class Attended(NamedTuple):
    """Queries times keys of one head, the keys read, and whether both are exact."""

    scores: int
    keys: int
    exact: bool


def longest(*limits: Length) -> int | None:
    """The minimum of the known limits."""
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known) if known else None


def attended(tokens: int, batch: Batch, sequences: int | None, limit: int | None) -> Attended:
    """The keys that a number of queries attend to.

    Raises CannotModel when the number of keys is unknown.

    Parameters
    ----------
    tokens : int
        Queries of all sequences.
    batch : str, Unknown or None
        Name of the batch's range, which contains the lengths.
    sequences : int or None
        Number of sequences.
    limit : int or None
        Number of keys of the longest sequence, or an upper bound; the result is then an estimate.
    """
    recorded = lengths_of(batch, tokens) if isinstance(batch, str) else None
    if recorded is not None and recorded.scores is not None and recorded.keys is not None:
        return Attended(recorded.scores, recorded.keys, recorded.exact)
    if limit is None:
        raise CannotModel(_NOT_RECORDED)
    return Attended(tokens * limit, min(sequences or tokens, tokens) * limit, False)


def heads_of(x: Tensor, size: int | None) -> tuple[int, int, int]:
    """Tokens, heads and their size: of [.., heads, size], or of [tokens, heads * size].

    Raises CannotModel when the heads cannot be determined.
    """
    if len(x.shape) >= 3:
        return elements(x.shape[:-2]), x.shape[-2], x.shape[-1]
    if len(x.shape) == 2 and size and x.shape[1] % size == 0:
        return x.shape[0], x.shape[1] // size, size
    raise CannotModel(f"cannot determine the heads of {x.shape}")


def size_of_head(x: Tensor) -> int:
    """The last size of a tensor; raises CannotModel when it has no dimensions."""
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
    """The work of attention over cached keys and values.

    Parameters
    ----------
    query : Tensor
    rows : int
        Queries of all heads.
    found : Attended
    key, value : tuple
        Heads, their size and the type of keys and of values. Values without heads are part of the
        keys and not read again.
    """
    (key_heads, depth, key_type), (value_heads, width, value_type) = key, value
    keys = Tensor((found.keys, key_heads, depth), key_type)
    values = Tensor((found.keys, value_heads, width), value_type)
    heads = rows // _tokens(query, rows)
    scores = found.scores * heads
    sizes = Attention(query, keys, values, None, rows, scores, depth, width, found.exact)
    return Work((attention_forward(sizes, sums=False),))


def _tokens(query: Tensor, rows: int) -> int:
    tokens = elements(query.shape[:-2]) if len(query.shape) > 2 else (query.shape or (1,))[0]
    if not tokens or rows % tokens:
        raise CannotModel(f"{rows} rows do not fit {query.shape}")
    return tokens
