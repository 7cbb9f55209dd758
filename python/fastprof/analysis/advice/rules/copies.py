"""Rules on copies between host and GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.advice.rules.uploads import parameter_copies
from fastprof.analysis.grouping import Grouping
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Bools, Int64, difference
from fastprof.model.quantity import quantity
from fastprof.profile import program as kinds

_NEGLIGIBLE: Final = 0.001  # of a step


@rule("exposed-copy", least=0.02, needs=("times",))
def exposed_copy(facts: Facts) -> Iterator[Finding]:
    """Copies between host and GPU during which the GPU does nothing else."""
    rows = facts.kernels(kind="memcpy", direction=("HtoD", "DtoH"))
    rows = difference(rows, parameter_copies(facts))  # they have a finding of their own
    exposed = facts.own_ns(rows)
    if exposed <= _NEGLIGIBLE * facts.step_ns:
        return
    pageable = _pageable(facts, rows)
    memory = ""
    if pageable is not None:
        share, name = max((pageable, "pageable"), (1 - pageable, "pinned"))
        memory = f"; {share:.0%} of it from or to {name} memory"
    is_shared = _is_on_stream_of_compute(facts, rows)
    stream = "; on the stream of the kernels" if is_shared else ""
    yield Finding(
        what="The GPU only copies from or to the host.",
        where=_where(facts, rows, "direction", "line", "op"),
        evidence=f"{quantity(round(exposed), 'ns')} exposed {facts.per_step}, "
        f"{facts.count(rows):.4g} copies{memory}{stream}",
        remedy=_remedy(facts, rows, pageable is not None and pageable >= _MAINLY),
        confidence="medium",
        why="overlap needs other work that does not depend on the copy",
        kernels=rows,
        gpu_ns=facts.hidden_ns(rows),
        cause="The GPU only copies from or to the host for {time}.",
        effect="Copies behind other work would save {saving}.",
        overlaps=True,
    )


def _remedy(facts: Facts, rows: Int64, is_pageable: bool) -> str:
    """The change for what is copied: parameters, results, or else batches."""
    program = facts.program
    ns = facts.of_kernels[rows]
    to_host = facts.own_ns(facts.kernels(kind="memcpy", direction="DtoH"))
    if to_host >= _MAINLY * float(ns.sum()):
        return program.choose(_RESULTS if is_pageable else _RESULTS_PINNED)
    return program.choose(_BATCHES if is_pageable else _BATCHES_PINNED)


_MAINLY: Final = 0.5
_BATCHES_PINNED: Final = {
    kinds.CUDA: "divide the work in parts: copy the next part on a stream of its own "
    "(cudaStreamNonBlocking) while kernels work on this one; keep on the GPU what is used again",
    kinds.OTHER: "copy the next batch on another stream while the GPU computes",
}
_BATCHES: Final = {
    kinds.TORCH: "DataLoader(pin_memory=True) and .to(device, non_blocking=True); "
    + _BATCHES_PINNED[kinds.OTHER],
    kinds.INFERENCE: "pinned memory (tensor.pin_memory()) and .to(device, non_blocking=True); "
    + _BATCHES_PINNED[kinds.OTHER],
    kinds.CUDA: "pinned memory (cudaMallocHost, or cudaHostRegister) and cudaMemcpyAsync; "
    + _BATCHES_PINNED[kinds.CUDA],
    kinds.CUPY: "pinned memory (cupyx.empty_pinned) and array.set(..., stream=stream); keep "
    "arrays on the GPU between operations",
    kinds.NUMBA: "cuda.pinned_array and cuda.to_device(..., stream=stream); keep device arrays "
    "between kernels: arrays of NumPy as arguments are copied at each call",
    kinds.RAPIDS: "read files on the GPU (cudf.read_parquet) in place of to_cudf and from_pandas",
    kinds.TENSORFLOW: "tf.data: prefetch_to_device copies the next batch while the GPU computes",
    kinds.OTHER: "pinned memory; " + _BATCHES_PINNED[kinds.OTHER],
}
_RESULTS_PINNED: Final = {
    kinds.CUDA: "copy results on a stream of its own while the next kernels run; copy once, at "
    "the end",
    kinds.OTHER: "keep results on the GPU; copy them on another stream while the GPU computes",
}
_RESULTS: Final = {
    kinds.TORCH: "keep results on the GPU, or copy them into pinned memory with non_blocking=True",
    kinds.CUDA: "copy results with cudaMemcpyAsync into pinned memory (cudaMallocHost) on a "
    "stream of its own while the next kernels run; copy once, at the end",
    kinds.RAPIDS: "keep results on the GPU: to_pandas() and to_numpy() copy",
    kinds.OTHER: "keep results on the GPU, or copy them into pinned memory on another stream",
}


def _is_on_stream_of_compute(facts: Facts, rows: Int64) -> bool:
    """Whether most of the time of copies is on streams that run kernels too."""
    is_kernel = key_of(facts.profile, "kind").fits(lambda kind: kind not in ("memcpy", "memset"))

    def computes(streams: Grouping) -> Bools:
        return np.bincount(streams.ids[is_kernel], minlength=streams.n) > 0

    return facts.share_on_streams(rows, computes) >= _MAINLY


@rule("device-copy", least=0.03, needs=("times",))
def device_copy(facts: Facts) -> Iterator[Finding]:
    """Copies within the memory of the GPU during which it does nothing else."""
    rows = facts.kernels(kind="memcpy", direction=("DtoD", "PtoP"))
    exposed = facts.own_ns(rows)
    if exposed <= _NEGLIGIBLE * facts.step_ns:
        return
    yield Finding(
        what="The GPU only copies within its own memory.",
        where=_where(facts, rows, "line", "op", "layer"),
        evidence=f"{quantity(round(exposed), 'ns')} exposed {facts.per_step}, "
        f"{facts.count(rows):.4g} copies",
        remedy=facts.program.choose(_WITHIN),
        confidence="low",
        why="the program may need both copies",
        kernels=rows,
        gpu_ns=exposed,
        cause="The GPU only copies within its own memory for {time}.",
    )


_WITHIN: Final = {
    kinds.TORCH: "avoid clone(), cat() and contiguous(): write into views of one tensor (out=)",
    kinds.JAX: "donate_argnums lets a step write into its inputs; lax.dynamic_update_slice in "
    "place of concatenate",
    kinds.CUDA: "swap pointers in place of copies; let a kernel write where the next one reads",
    kinds.OTHER: "write results where the next operation reads them, in place of copies",
}


def _where(facts: Facts, rows: Int64, *keys: str) -> str:
    """The values of some keys that take most of the time of copies."""
    found = []
    for key in keys:
        top = facts.top(key, rows, most=2)
        found += [", ".join(f"{name} {share:.0%}" for name, share in top)] if top else []
    return "; ".join(found)


def _pageable(facts: Facts, rows: Int64) -> float | None:
    """The share of the time of copies that is from or to pageable memory; None if not recorded."""
    memory = key_of(facts.profile, "memory").take(rows)
    ns = facts.of_kernels[rows]
    if not (memory.ids >= 0).any():
        return None
    is_pageable = memory.fits(lambda text: "pageable" in str(text))
    return float(ns[is_pageable].sum() / max(float(ns.sum()), 1.0))
