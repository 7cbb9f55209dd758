"""Values of a call's inputs where random numbers do not do: indices, probabilities, lengths.

Positions are those of torch's schemas, which functions of torch of the same name mostly share.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from fastprof.model.call import Tensor

# By operator, the integers that index another argument: (the argument of integers, the argument
# that they index, its dimension).
_IN_DIMENSION: Final = -1  # the dimension is argument 1
_ANYWHERE: Final = -2  # an index into all elements
_IN_LAST: Final = -3  # the dimension is argument 2
_INDEXES: Final[dict[str, tuple[int, int, int]]] = {
    **dict.fromkeys(("embedding", "embedding_bag", "_embedding_bag"), (1, 0, 0)),
    **dict.fromkeys(("nll_loss", "nll_loss_nd", "nll_loss_forward"), (1, 0, 1)),
    **dict.fromkeys(("nll_loss2d", "nll_loss2d_forward", "cross_entropy_loss"), (1, 0, 1)),
    **dict.fromkeys(("cross_entropy", "multi_margin_loss", "multilabel_margin_loss"), (1, 0, 1)),
    **dict.fromkeys(("index_select", "gather", "index_fill", "index_fill_"), (2, 0, -1)),
    **dict.fromkeys(("scatter", "scatter_", "scatter_add", "scatter_add_"), (2, 0, -1)),
    **dict.fromkeys(("scatter_reduce", "scatter_reduce_"), (2, 0, -1)),
    **dict.fromkeys(("index_add", "index_add_", "index_copy", "index_copy_"), (2, 0, -1)),
    **dict.fromkeys(("index_reduce", "index_reduce_"), (2, 0, -1)),
    **dict.fromkeys(("take", "put", "put_"), (1, 0, _ANYWHERE)),
    "take_along_dim": (1, 0, _IN_LAST),
    "ctc_loss": (1, 0, 2),
    "_ctc_loss": (1, 0, 2),
}
# Functions of torch.nn.functional with another order of arguments.
_FUNCTIONAL: Final = {"embedding": (0, 1, 0), "embedding_bag": (0, 1, 0)}
_OTHER_ORDER: Final = frozenset({"embedding_bag", "batch_norm", "instance_norm"})
# By operator and argument, a kind of values; the script's `T.fill` makes them.
_KINDS: Final[dict[str, dict[int, str]]] = {
    "bernoulli": {0: "probabilities"},
    "binary_cross_entropy": {0: "probabilities", 1: "probabilities"},
    "binomial": {0: "positive", 1: "probabilities"},
    "multinomial": {0: "probabilities"},
    "normal": {1: "positive"},
    **{key: {0: "positive"} for key in ("poisson", "_standard_gamma", "_sample_dirichlet")},
    **{key: {4: "positive"} for key in ("batch_norm", "native_batch_norm", "instance_norm")},
    **{key: {4: "positive"} for key in ("cudnn_batch_norm", "miopen_batch_norm")},
    **{
        key: {3: "positive", 4: "positive", 5: "steps"} for key in ("_fused_adam_", "_fused_adamw_")
    },
    **{key: {0: "definite"} for key in ("cholesky", "linalg_cholesky", "linalg_cholesky_ex")},
    # Pivots: each row stays in its place.
    **{key: {1: "nonzero"} for key in ("lu_unpack", "linalg_lu_solve", "linalg_ldl_solve")},
    "searchsorted": {0: "sorted"},
    "bucketize": {1: "sorted"},
    **{key: {1: "nonzero"} for key in ("remainder", "remainder_", "fmod", "floor_divide")},
    **{key: {1: "nonzero"} for key in ("div", "div_", "divide", "true_divide")},
    **{key: {2: "offsets"} for key in ("embedding_bag", "_embedding_bag")},
    "_flash_attention_forward": {3: "offsets", 4: "offsets"},
    "_efficient_attention_forward": {4: "offsets", 5: "offsets"},
    "ctc_loss": {1: "nonzero", 2: "lengths", 3: "lengths"},
    "_ctc_loss": {1: "nonzero", 2: "lengths", 3: "lengths"},
    "_pack_padded_sequence": {1: "lengths"},
}
# The sizes that offsets and lengths end at: (the argument, its dimension).
_LIMITS: Final[dict[str, dict[int, tuple[int, int]]]] = {
    **{key: {2: (1, 0)} for key in ("embedding_bag", "_embedding_bag")},
    "_flash_attention_forward": {3: (0, 0), 4: (1, 0)},
    "_efficient_attention_forward": {4: (0, 1), 5: (1, 1)},
    "ctc_loss": {2: (0, 0), 3: (1, -1)},
    "_ctc_loss": {2: (0, 0), 3: (1, -1)},
    "_pack_padded_sequence": {1: (0, 0)},
}
# Texts that an operator requires and a trace does not record: (the argument, one of its texts).
TEXTS: Final[dict[str, tuple[int, str]]] = {
    **dict.fromkeys(("scatter_reduce", "scatter_reduce_"), (4, "sum")),
    **dict.fromkeys(("index_reduce", "index_reduce_"), (4, "mean")),
    "segment_reduce": (1, "sum"),
}
# Arguments that are lists of tensors with gaps, which a trace records as no type and no size.
LISTS: Final[dict[str, int]] = {
    **dict.fromkeys(("index", "_unsafe_index", "index_put", "index_put_"), 1),
    **dict.fromkeys(("_index_put_impl_", "_unsafe_index_put"), 1),
    **dict.fromkeys(("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"), 2),
}


def hints(op: str, values: Sequence[Any], is_functional: bool) -> dict[int, list[str]]:
    """By argument, what `T` of the script is told of its values: `most=100`, `values="lengths"`.

    is_functional : the arguments are those of `torch.nn.functional`
    """
    result: dict[int, list[str]] = {}
    indexes = _FUNCTIONAL.get(op, _INDEXES.get(op)) if is_functional else _INDEXES.get(op)
    if indexes is not None:
        most = _choices(values, *indexes)
        if most is not None:
            result.setdefault(indexes[0], []).append(f"most={max(most, 1)}")
    kinds = {} if is_functional and op in _OTHER_ORDER else _KINDS.get(op, {})
    for at, kind in kinds.items():
        result.setdefault(at, []).append(f"values={kind!r}")
        limit = _LIMITS.get(op, {}).get(at)
        size = None if limit is None else _size(values, *limit)
        if size is not None:
            result[at].append(f"most={size}")
    return result


def _choices(values: Sequence[Any], integers: int, of: int, dimension: Any) -> int | None:
    """The number of choices that integers have; None if unknown."""
    if integers >= len(values):
        return None
    if dimension == _ANYWHERE:
        tensor = values[of]
        return prod(tensor.shape) if isinstance(tensor, Tensor) else None
    if dimension in (_IN_DIMENSION, _IN_LAST):
        place = 1 if dimension == _IN_DIMENSION else 2
        dimension = values[place] if place < len(values) else None
    is_number = isinstance(values[of], Tensor) and not values[of].shape
    return 1 if is_number else _size(values, of, dimension)


def _size(values: Sequence[Any], at: int, dimension: Any) -> int | None:
    """The size of an argument in a dimension; of classes, the last, where there is no batch."""
    tensor = values[at] if at < len(values) else None
    if not isinstance(tensor, Tensor) or not isinstance(dimension, int) or not tensor.shape:
        return None
    n = len(tensor.shape)
    return tensor.shape[dimension if -n <= dimension < n else n - 1]
