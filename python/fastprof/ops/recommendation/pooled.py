"""Pooled embeddings [samples, widths of all features], permuted or merged.

Source: fbgemm_gpu/src/permute_pooled_embedding_ops, fbgemm_gpu/src/permute_multi_embedding_ops and
fbgemm_gpu/src/merge_pooled_embedding_ops in pytorch/FBGEMM.
"""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.parameters import Tensors
from fastprof.ops.recommendation.names import fbgemm
from fastprof.ops.registry import op
from fastprof.ops.traffic import moved, texts

_NAMES: Final = (
    "permute_pooled_embs",
    "permute_pooled_embs_auto_grad",
    "permute_pooled_embs_split",
    "permute_pooled_embs_auto_grad_split",
)


@op(None, aten=fbgemm(*(f"{name}(pooled, ...)" for name in _NAMES)))
def permuted(pooled: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Columns of pooled embeddings, permuted by feature.

    FLOPs: 0.
    Bytes: the embeddings read, the same amount written; backward the same for their gradient.
    """
    del direction
    return Cost(0, moved(pooled, pooled)), texts(pooled)


@op(
    None,
    aten=fbgemm(
        "merge_pooled_embeddings(pooled*, ...)",
        "all_to_one_device(pooled*, ...)",
        "permute_multi_embedding(pooled*, ...)",
        "regroup_keyed_tensor(pooled*, ...)",
        "permute_multi_embedding_function(pooled*, ...)",
        "sum_reduce_to_one(pooled*, ...)",
    ),
)
def merged(pooled: Tensors, other: Any = None, *, direction: str) -> tuple[Cost, str]:
    """Pooled embeddings of several devices or groups, merged.

    FLOPs: 0 (the sum of a reduction to one device is not counted).
    Bytes: the embeddings read, the same amount written: an estimate: features may be omitted or
        repeated.
    """
    del other, direction
    if not pooled:
        raise CannotModel("the embeddings are not in the capture")
    return Cost(0, moved(*pooled, *pooled), exact=False), texts(*pooled)
