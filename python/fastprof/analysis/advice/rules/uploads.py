"""Parameters that stay on the host and are copied to the GPU for each use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof._system.regex import regex
from fastprof.analysis.advice.facts import Facts, top_shares
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.columns import numbers
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.model.arrays import Int64
from fastprof.model.columns import Values
from fastprof.model.quantity import quantity
from fastprof.profile.program import WITH_OPERATORS

_SHARE: Final = 0.3  # of the busy time, if no range names who copies
_NAMED_SHARE: Final = 0.05  # of the busy time, if one does
_LARGE: Final = 1_000_000  # bytes of a copy; smaller ones are buffers and biases
_SIZE_SHARE: Final = 0.5  # of the bytes, in copies whose size occurs again
_BEFORE: Final = 0.5  # of the bytes, before the first product: the model is loaded
_OFFLOADS: Final = regex(
    r"\bFSDP::|FullyShardedDataParallel|_fsdp/|accelerate/hooks\.py|AlignDevicesHook|\bZeRO\b"
    r"|deepspeed/.*(?:offload|swap)"
)
_MAINLY: Final = 0.5  # of the time of copies, under such ranges
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
        remedy=_remedy(names),
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
    return [text for text, _ in named] if sum(share for _, share in named) >= _MAINLY else []


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


def _remedy(names: list[str]) -> str:
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
