"""What to record next time, for each depth to which GPU time is not known."""

from __future__ import annotations

from fastprof.model.metadata import About
from fastprof.profile.counts import Contents
from fastprof.profile.coverage import NEVER_TOLD, NO_SHAPES, NOT_TOLD, Coverage, Without

# A smaller share of the GPU time prints as 0.0 %.
_NOTHING = 0.0005
_MOST_NAMES = 3

_EMIT = "wrap the run in torch.autograd.profiler.emit_nvtx(record_shapes=True)"
_NSYS = "record with nsys profile -t cuda,nvtx"
_WHOLE_STEPS = "record whole steps, forward and backward"

# Where a file has nothing of the kind at all.
_MISSING: dict[str, dict[str, str]] = {
    "nsys": {
        "kernels": f"no kernels: {_NSYS}, and let the GPU finish before the recording ends",
        "range": f"no ranges: {_EMIT}, and {_NSYS}",
        "op": f"no operators, only ranges of your own: {_EMIT}",
        "shapes": f"no shapes: {_EMIT}",
        "types": "emit_nvtx writes shapes without types, so bytes are not known: "
        "fastprof.init() in the program and torch.profiler write them",
        "source line": "no source lines: annotate the calls (fastprof.init()), or record with "
        "torch.profiler and with_stack=True",
    },
    "kineto": {
        "kernels": "no kernels: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "range": "no operators: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "op": "no operators, only annotations: profile(activities=[ProfilerActivity.CPU, "
        "ProfilerActivity.CUDA])",
        "shapes": "no shapes: profile(record_shapes=True)",
        "types": "no types: profile(record_shapes=True) with a PyTorch of 2022 or later",
        "source line": "no source lines: profile(with_stack=True)",
    },
}
_MISSING["nvprof"] = {
    **_MISSING["nsys"],
    "kernels": "no kernels: record again, and let the GPU finish before the recording ends",
    "range": f"no ranges: {_EMIT}",
}
_NO_SHAPES = f"calls that say no shapes; backward calls have those of forward: {_WHOLE_STEPS}"
_NO_LINE = f"calls without a line of yours; backward calls have those of forward: {_WHOLE_STEPS}"
# Where a part of the file's kernels lacks it.
_REST = {
    "launch": {
        "nsys": "their launches are not in the file: start the recording some iterations earlier",
        "kineto": "their launches are not in the file: give the schedule a warmup step",
    },
    "range": {
        "nsys": "launched outside of all ranges: open ranges around all of the work, on the "
        "thread that launches it",
        "kineto": "launched outside of all operators and annotations",
    },
    "op": {
        "nsys": f"launched inside of ranges of your own only: {_EMIT}",
        "kineto": "launched outside of PyTorch's operators: make an operator of the call with "
        "torch.library.custom_op",
    },
    "shapes": dict.fromkeys(("nsys", "kineto"), _NO_SHAPES),
    "source line": dict.fromkeys(("nsys", "kineto"), _NO_LINE),
}
for _texts in _REST.values():
    _texts.setdefault("nvprof", _texts["nsys"])

_GRAPHS = (
    "are CUDA graphs, recorded as a whole: record with --cuda-graph-trace=node, and the capture "
    "of the graph too"
)
_REPLAYS = (
    "are kernels of graphs that were captured before the recording: record the capture too, and "
    "give its trace to prof with --graph-capture"
)
_DICT = "dict lines say no more: ask fastprof info of the trace that they were made from"


def advice(about: About, contents: Contents, coverage: Coverage) -> dict[str, list[str]]:
    """What to do about each gap; by depth, or `kernels` or `types`; what has no gap is left out."""
    if not any(kind in contents.work for kind in ("kernel", "graph")):
        return {"kernels": [_MISSING.get(about.format, {}).get("kernels", "no kernels")]}
    found: dict[str, list[str]] = {}
    lost = _lost(coverage)
    graphs = contents.work.get("graph", (0, 0))[1] / max(coverage.total, 1)
    replays = coverage.without(Without.CAPTURE) / max(coverage.total, 1)
    for depth, share in lost.items():
        if share < _NOTHING:
            continue
        found[depth] = []
        if replays >= _NOTHING and depth in ("range", "op"):
            found[depth].append(f"{100 * replays:.1f} % {_REPLAYS}")
            share, replays = share - replays, 0.0
        if share >= _NOTHING:
            told = _formulas(coverage) if depth == "cost" else _advice(about, contents, depth)
            found[depth] += [told] if told else []
        if graphs >= _NOTHING and depth in ("range", "op", "shapes"):
            found[depth].append(f"{100 * graphs:.1f} % {_GRAPHS}")
            graphs = 0.0
    if contents.shapes and not contents.types and about.format in _MISSING:
        found["types"] = [_MISSING[about.format]["types"]]
    if about.format == "dict":
        depths = [depth for depth in found if depth != "cost"]
        found |= {depth: [_DICT] if depth == depths[0] else [] for depth in depths}
    return {depth: told for depth, told in found.items() if told}


def _lost(coverage: Coverage) -> dict[str, float]:
    """The share of the GPU time that is known to the depth before, and not to this one."""
    found = {}
    before = coverage.total
    for depth, time in coverage.known.items():
        if depth == "source line":
            before = coverage.total
        found[depth] = max(0, before - time) / max(coverage.total, 1)
        before = time
    return found


def _advice(about: About, contents: Contents, depth: str) -> str | None:
    ranges = contents.ranges or {}
    there = {
        "range": bool(ranges),
        "op": "operators" in ranges or "annotations" in ranges,
        "shapes": contents.shapes,
        "source line": contents.stacks,
    }
    if there.get(depth, True):
        return _REST[depth].get(about.format)
    return _MISSING.get(about.format, {}).get(depth)


def _formulas(coverage: Coverage) -> str | None:
    """Operators with known shapes and no known cost, the longest first."""
    names: dict[str, int] = {}
    for each in coverage.unknown():
        if each.op is not None and each.reason not in (NO_SHAPES, NOT_TOLD, NEVER_TOLD):
            names[each.op] = names.get(each.op, 0) + each.time
    if not names:
        return None
    longest = sorted(names.items(), key=lambda item: -item[1])[:_MOST_NAMES]
    told = ", ".join(f"{name} {100 * time / coverage.total:.1f} %" for name, time in longest)
    more = f" and {len(names) - len(longest)} more" if len(names) > len(longest) else ""
    return f"no known cost: {told}{more}; prof --unknown says why, fastprof.op adds formulas"
