"""Pooled embeddings [samples, widths of all features], permuted or merged.

Source: fbgemm_gpu/src/permute_pooled_embedding_ops, fbgemm_gpu/src/permute_multi_embedding_ops and
fbgemm_gpu/src/merge_pooled_embedding_ops in pytorch/FBGEMM.
"""

from __future__ import annotations

from typing import Any

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.traffic import moved, texts


@operators("""
    (pooled, ...): fbgemm::permute_pooled_embs fbgemm::permute_pooled_embs_auto_grad
        fbgemm::permute_pooled_embs_split fbgemm::permute_pooled_embs_auto_grad_split
        fb::permute_pooled_embs fb::permute_pooled_embs_auto_grad fb::permute_pooled_embs_split
        fb::permute_pooled_embs_auto_grad_split
""")
def permuted(pooled: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Columns of pooled embeddings, permuted by feature.

    FLOPs: 0.
    Bytes: the embeddings read, the same amount written; backward the same for their gradient.
    """
    del direction
    return Cost(0, moved(pooled, pooled)), texts(pooled)


@operators("""
    (pooled*, ...): fbgemm::merge_pooled_embeddings fbgemm::all_to_one_device
        fbgemm::permute_multi_embedding fbgemm::regroup_keyed_tensor
        fbgemm::permute_multi_embedding_function fbgemm::sum_reduce_to_one
        fb::merge_pooled_embeddings fb::all_to_one_device fb::permute_multi_embedding
        fb::regroup_keyed_tensor fb::permute_multi_embedding_function fb::sum_reduce_to_one
""")
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
