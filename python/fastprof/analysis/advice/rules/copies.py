"""Rules on copies between host and GPU, also of parameters that stay on the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof._system.regex import regex
from fastprof.analysis.advice.facts import Facts, top_shares
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.grouping import Grouping, numbers
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.model.arrays import Bools, Int64, difference
from fastprof.model.columns import Values
from fastprof.model.numbers import quantity
from fastprof.profile import program as kinds
from fastprof.profile.program import WITH_OPERATORS

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
    results = []
    for key in keys:
        top = facts.top(key, rows, most=2)
        results += [", ".join(f"{name} {share:.0%}" for name, share in top)] if top else []
    return "; ".join(results)


def _pageable(facts: Facts, rows: Int64) -> float | None:
    """The share of the time of copies that is from or to pageable memory; None if not recorded."""
    memory = key_of(facts.profile, "memory").take(rows)
    ns = facts.of_kernels[rows]
    if not (memory.ids >= 0).any():
        return None
    is_pageable = memory.fits(lambda text: "pageable" in str(text))
    return float(ns[is_pageable].sum() / max(float(ns.sum()), 1.0))


_SHARE: Final = 0.3  # of the busy time, if no range names who copies
_NAMED_SHARE: Final = 0.05  # of the busy time, if one does
_LARGE: Final = 1_000_000  # bytes of a copy; smaller ones are buffers and biases
_SIZE_SHARE: Final = 0.5  # of the bytes, in copies whose size occurs again
_BEFORE: Final = 0.5  # of the bytes, before the first product: the model is loaded
_OFFLOADS: Final = regex(
    r"\bFSDP::|FullyShardedDataParallel|_fsdp/|accelerate/hooks\.py|AlignDevicesHook|\bZeRO\b"
    r"|deepspeed/.*(?:offload|swap)"
)
_MAINLY_UPLOADS: Final = 0.5  # of the time of copies, under such ranges
_FSDP: Final = regex(r"FSDP::|FullySharded|_fsdp/")
_ZERO: Final = regex(r"ZeRO|deepspeed/")


@rule("parameter-upload", least=0.05, programs=WITH_OPERATORS, needs=("times",))
def parameter_upload(facts: Facts) -> Iterator[Finding]:
    """Parameters that are copied from the host between the layers that use them."""
    rows = parameter_copies(facts)
    if not len(rows):
        return
    exposed, times = facts.own_ns(rows), facts.times
    others = sum(times[name] for name in ("compute_ns", "exposed_communication_ns", "idle_ns"))
    names = _ranges(facts, rows)
    yield Finding(
        what=f"The GPU copies parameters from the host{_who(names)}.",
        where=", ".join(names[:2]),
        evidence=_evidence(facts, rows, exposed, others),
        remedy=_upload_remedy(names),
        confidence="high" if names else "medium",
        why=(
            "the range names who copies"
            if names
            else "they run between products, and their sizes recur; who copies is not recorded"
        )
        + "; the parameters must fit into the memory of the GPU",
        kernels=rows,
        gpu_ns=exposed,
        cause=f"The GPU copies parameters for {{time}} from the host{_who(names)}.",
        effect="Parameters that stay on the GPU would save {saving}.",
    )


def parameter_copies(facts: Facts) -> Int64:
    """The rows of copies that bring parameters from the host; none if there are few.

    They run between products, in ranges of a library that offloads, or in sizes that recur; the
    copies of a model that is loaded once come before the first product.
    """
    none: Int64 = np.zeros(0, np.int64)
    if not facts.has_times or facts.program.kind not in WITH_OPERATORS:
        return none
    rows = facts.kernels(kind="memcpy", direction="HtoD")
    products = facts.kernels(**{"class": tuple(PRODUCTS)})
    busy = facts.times["busy_ns"]
    own = facts.own_ns(rows)
    if not len(rows) or not len(products) or own < _NAMED_SHARE * busy:
        return none
    is_named = bool(_ranges(facts, rows))
    if not is_named and own < _SHARE * busy:
        return none
    size = np.maximum(numbers(facts.profile, "copied")[rows], 0)
    start = numbers(facts.profile, "start")
    total = max(int(size.sum()), 1)
    if size[start[rows] < start[products].min()].sum() > _BEFORE * total:
        return none
    _, place, count = np.unique(size, return_inverse=True, return_counts=True)
    recurs = (count[place] > 1 + facts.n_steps) & (size >= _LARGE)
    if not is_named and size[recurs].sum() < _SIZE_SHARE * total:
        return none
    return rows


def _ranges(facts: Facts, rows: Int64) -> list[str]:
    """The ranges around most copies that name a library that offloads, the most time first."""
    paths = facts.profile.paths
    is_named = paths.folded.fits(lambda label: bool(_OFFLOADS.search(label or "")))
    if not is_named.any():
        return []
    name = np.where(is_named, paths.folded.ids, -1)
    for level in range(1, int(paths.level.max()) + 1):
        nodes = np.flatnonzero((paths.level == level) & (name < 0))
        name[nodes] = name[paths.parent[nodes]]
    path = numbers(facts.profile, "path")[rows]
    of_row = np.where(path >= 0, name[path], -1)
    own = facts.of_kernels[rows]
    short = Values(of_row.astype(np.int32), paths.folded.values).mapped(_without_module)
    named = top_shares(short, own, 3)
    return (
        [text for text, _ in named] if sum(share for _, share in named) >= _MAINLY_UPLOADS else []
    )


def _without_module(label: str) -> str:
    """`FSDP::pre_forward (encoder.block.0)` is `FSDP::pre_forward`."""
    return label.split(" (")[0]


def _who(names: list[str]) -> str:
    if any(map(_FSDP.search, names)):
        return ", where FSDP keeps them"
    return ", where ZeRO keeps them" if any(map(_ZERO.search, names)) else ""


def _evidence(facts: Facts, rows: Int64, exposed: float, others: float) -> str:
    profile, per = facts.profile, facts.n_steps
    moved = float(np.maximum(numbers(profile, "copied")[rows], 0).sum())
    ns = float(np.maximum(numbers(profile, "sil")[rows], 0).sum())
    memory = [text for text, _ in facts.top("memory", rows, most=1)]
    kind = next((word for word in ("pageable", "pinned") if word in "".join(memory)), "")
    rate = f" at {moved / max(ns, 1):.1f} GB/s" + (f" from {kind} memory" if kind else "")
    return (
        f"{quantity(round(moved / per), 'bytes')} a GPU {facts.per_step}{rate}; "
        f"{quantity(round(exposed), 'ns')} exposed, {len(rows) / per:.0f} copies; overlap alone "
        f"saves at most the {quantity(round(others), 'ns')} in which the GPU computes or "
        "waits"
    )


def _upload_remedy(names: list[str]) -> str:
    if any(map(_FSDP.search, names)):
        return (
            "keep the parameters on the GPU: no CPUOffload (FSDP) or CPUOffloadPolicy (fully_shard)"
            "; shard over more GPUs or use 8-bit weights if they do not fit; in training, "
            "reshard_after_forward=False saves the second upload"
        )
    if any(map(_ZERO.search, names)):
        return (
            "keep the parameters on the GPU: no offload_param in the ZeRO configuration; shard "
            "over more GPUs if they do not fit"
        )
    return (
        "keep the parameters on the GPU: no CPU offload or device_map that leaves layers on the "
        "host; shard over more GPUs or use 8-bit weights if they do not fit"
    )
