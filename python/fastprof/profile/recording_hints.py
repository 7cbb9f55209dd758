"""Advice on what to record next time, for each level of detail that GPU time lacks."""

from __future__ import annotations

from heapq import nsmallest

from fastprof.model.metadata import OF_AMD, About
from fastprof.profile.coverage import Contents, Coverage, Without
from fastprof.profile.program import CUDA, HIP, SERVING, WITH_OPERATORS

LOST, TRUNCATED = "lost work", "cut stacks"

# Smaller shares of the GPU time print as 0.0 %.
_NEGLIGIBLE = 0.0005
_MAX_NAMES = 3

_EMIT = "wrap the run in torch.autograd.profiler.emit_nvtx(record_shapes=True)"
_NSYS = "record with nsys profile -t cuda,nvtx"
_ROCPROF = "rocprofv3 --runtime-trace"
_WHOLE_STEPS = "record whole steps, forward and backward"

# Advice for files that contain none of it.
_MISSING: dict[str, dict[str, str]] = {
    "nsys": {
        "kernels": f"no kernels: {_NSYS}, and synchronize the GPU before the recording ends",
        "range": f"no ranges: {_EMIT}, and {_NSYS}",
        "op": f"no operators, only your own ranges: {_EMIT}",
        "shapes": f"no shapes: {_EMIT}",
        "types": "emit_nvtx records shapes without types, so bytes are unknown: call "
        "fastprof.init() in the program, or use torch.profiler",
        "source line": "no source lines: call fastprof.init() in the program, or record with "
        "torch.profiler and with_stack=True",
        "layer": "no layers: call fastprof.annotate_layers(model) in the program",
    },
    "kineto": {
        "kernels": "no kernels: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "range": "no operators: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "op": "no operators, only annotations: profile(activities=[ProfilerActivity.CPU, "
        "ProfilerActivity.CUDA])",
        "shapes": "no shapes: profile(record_shapes=True)",
        "types": "no types: profile(record_shapes=True) with a PyTorch of 2022 or later",
        "source line": "no source lines: profile(with_stack=True)",
        "layer": "no layers: profile(with_stack=True), or call fastprof.annotate_layers(model)",
    },
}
_MISSING["nvprof"] = {
    **_MISSING["nsys"],
    "kernels": "no kernels: record again, and synchronize the GPU before the recording ends",
    "range": f"no ranges: {_EMIT}",
}
for _amd in OF_AMD:
    _MISSING[_amd] = {
        **_MISSING["nsys"],
        "kernels": f"no kernels: record with {_ROCPROF}, and let the program end by itself",
        "range": f"no ranges: {_EMIT}, and record with {_ROCPROF}",
    }
# How programs without PyTorch open ranges.
_IN_PYTHON = "open ranges with nvtx.annotate of the package nvtx"
_OWN_RANGES = {
    CUDA: "open ranges with nvtx3::scoped_range of nvtx3/nvtx3.hpp",
    HIP: "open ranges with roctxRangePush and roctxRangePop",
}
# How to record with the profilers of engines.
_ENGINES = {
    "vLLM": "record with vLLM's own profiler (--profiler-config, or VLLM_TORCH_PROFILER_DIR in "
    "older versions), with shapes and stacks",
    "SGLang": "record with SGLang's own profiler (SGLANG_TORCH_PROFILER_DIR, /start_profile), with "
    "record_shapes and with_stack",
}
_PLURALS = {
    "range": "ranges", "op": "operators", "source line": "source lines", "layer": "layers",
    "shapes": "shapes",
}  # fmt: skip
_NO_SHAPES = f"shapes not recorded; backward calls take those of forward: {_WHOLE_STEPS}"
_NO_LINE = f"no source line of yours; backward calls take those of forward: {_WHOLE_STEPS}"
_NO_LAYER = f"no GPU work inside the layers of the file: {_WHOLE_STEPS}"
# Advice for files where some of the kernels lack it.
_REST = {
    "launch": {
        "nsys": "launches not in the file: start the recording some iterations earlier",
        "kineto": "launches not in the file: add a warmup step to the schedule",
    },
    "range": {
        "nsys": "launched outside all ranges: open a range around the work, on the thread that "
        "launches it",
        "kineto": "launched outside all operators and annotations",
    },
    "op": {
        "nsys": f"launched inside your own ranges only: {_EMIT}",
        "kineto": "launched outside all operators of PyTorch: register the call with "
        "torch.library.custom_op",
    },
    "shapes": dict.fromkeys(("nsys", "kineto"), _NO_SHAPES),
    "source line": dict.fromkeys(("nsys", "kineto"), _NO_LINE),
    "layer": dict.fromkeys(("nsys", "kineto"), _NO_LAYER),
}
for _texts in _REST.values():
    _texts.setdefault("nvprof", _texts["nsys"])
    for _format in OF_AMD:
        _texts.setdefault(_format, _texts["nsys"])
_REST["launch"] |= dict.fromkeys(
    OF_AMD, f"launches not in the file: record with {_ROCPROF}, from some iterations earlier on"
)

# Advice for files that lack the GPU work of launches.
_LOST = {
    "nsys": "synchronize the GPU before the recording ends; in long recordings, save buffers with "
    "nsys profile --cuda-flush-interval 1000",
    "kineto": "add a warmup step to the schedule, and call torch.cuda.synchronize() before the "
    "profiler stops",
    "nvprof": "synchronize the GPU before the recording ends: call cudaProfilerStop after it",
    **dict.fromkeys(
        OF_AMD,
        "synchronize the GPU before the recording ends, and let the program end by itself",
    ),
}
_CALLERS = "keep the trace whole, or keep the events that enclose the part that is cut out of it"
_GRAPHS = (
    "in CUDA graphs recorded without their kernels: record with --cuda-graph-trace=node, and "
    "include the capture of the graph"
)
_REPLAYS = (
    "in kernels of graphs captured before the recording: record the capture too, and pass its "
    "trace to prof with --graph-capture"
)
_DICT = "not in dict lines: run fastprof info on the original trace"
_DICT_REPORT = "no {} in these dict lines: use the original trace"


def recorder_of_calls(about: About, ranges: bool = False) -> str:
    """The command that records API calls for a trace of this format.

    ranges : it records ranges too
    """
    if about.format in OF_AMD:
        return _ROCPROF
    return f"nsys profile -t cuda{',nvtx' * ranges}"


def advice(about: About, contents: Contents, coverage: Coverage) -> dict[str, list[str]]:
    """Advice on each gap, keyed by depth, `kernels`, `types` or LOST; others are absent."""
    if not _has_kernels(contents):
        return {"kernels": [_no_kernels(about)]}
    result: dict[str, list[str]] = {}
    lost = _lost(coverage)
    graphs = contents.work.get("graph", (0, 0))[1] / max(coverage.total, 1)
    replays = coverage.without(Without.CAPTURE) / max(coverage.total, 1)
    for depth, share in lost.items():
        if share < _NEGLIGIBLE:
            continue
        result[depth] = []
        if replays >= _NEGLIGIBLE and depth in ("range", "op"):
            result[depth].append(f"{100 * replays:.1f} % {_REPLAYS}")
            share, replays = share - replays, 0.0
        if share >= _NEGLIGIBLE:
            text = _formulas(coverage) if depth == "cost" else _advice(about, contents, depth)
            result[depth] += [text] if text else []
        if graphs >= _NEGLIGIBLE and depth in ("range", "op", "shapes"):
            result[depth].append(f"{100 * graphs:.1f} % {_GRAPHS}")
            graphs = 0.0
    if contents.lost_launches and about.format in _LOST:
        n = contents.lost_launches
        result[LOST] = [f"{n} launches without their GPU work: {_LOST[about.format]}"]
    if contents.truncated_stacks:
        n = contents.truncated_stacks
        result[TRUNCATED] = [f"{n} launches lack the callers of their functions: {_CALLERS}"]
    if contents.shapes and not contents.types and about.format in _MISSING:
        result["types"] = [_MISSING[about.format]["types"]]
    if about.format == "dict":
        depths = [depth for depth in result if depth != "cost"]
        result |= {depth: [_DICT] if depth == depths[0] else [] for depth in depths}
    return {depth: texts for depth, texts in result.items() if texts}


def advice_on(about: About, contents: Contents, depth: str) -> str:
    """Advice for a file where no kernel has a layer, a source line, a range, an operator, shapes.

    depth : "layer", "source line", "range", "op" or "shapes"
    """
    if not _has_kernels(contents):
        return _no_kernels(about)
    result = _advice(about, contents, depth)
    if result is None and about.format != "dict":
        return f"no {_PLURALS[depth]} in the file: known of programs with PyTorch"
    return result or _DICT_REPORT.format(depth if depth == "shapes" else f"{depth}s")


def _has_kernels(contents: Contents) -> bool:
    return any(kind in contents.work for kind in ("kernel", "graph"))


def _no_kernels(about: About) -> str:
    return _MISSING.get(about.format, {}).get("kernels", "no kernels")


def _lost(coverage: Coverage) -> dict[str, float]:
    """For each depth, the share of the GPU time known to the previous depth but not to this one."""
    result = {}
    before = coverage.total
    for depth, time in coverage.known.items():
        if depth == "source line":
            before = coverage.total
        result[depth] = max(0, before - time) / max(coverage.total, 1)
        before = time
    return result


def _advice(about: About, contents: Contents, depth: str) -> str | None:
    ranges = contents.ranges or {}
    there = {
        "range": bool(ranges),
        "op": "operators" in ranges or "annotations" in ranges,
        "shapes": contents.shapes,
        "source line": contents.stacks,
        "layer": contents.layers,
    }
    if contents.program.kind == SERVING and (depth == "op" or not there.get(depth, True)):
        return None if there[depth] else _of_engine(contents, depth)
    if contents.program.kind not in WITH_OPERATORS:
        return _on_ranges(about, contents, depth)
    if there.get(depth, True):
        return _REST[depth].get(about.format)
    return _MISSING.get(about.format, {}).get(depth)


def _on_ranges(about: About, contents: Contents, depth: str) -> str | None:
    """Advice on a program without PyTorch: it can have ranges of its own, and no operators."""
    if depth == "launch" or (depth == "range" and contents.ranges):
        return _REST[depth].get(about.format)
    if depth != "range":
        return None
    own = f"no ranges: {_OWN_RANGES.get(contents.program.kind, _IN_PYTHON)}"
    is_known = about.format in ("nsys", *OF_AMD)
    return f"{own}, and record with {recorder_of_calls(about, ranges=True)}" if is_known else own


def _of_engine(contents: Contents, depth: str) -> str | None:
    """Advice on an engine, which the user does not write: to record with its own profiler."""
    switch = _ENGINES.get(contents.program.name)
    return f"no {_PLURALS.get(depth, depth)}: {switch}" if switch else None


def _formulas(coverage: Coverage) -> str | None:
    """The operators with known shapes but unknown cost, longest GPU time first."""
    names = coverage.without_formula()
    if not names:
        return None
    longest = nsmallest(_MAX_NAMES, names.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} {100 * time / coverage.total:.1f} %" for name, time in longest)
    more = f" and {len(names) - len(longest)} more" if len(names) > len(longest) else ""
    return f"unknown cost: {listed}{more}; prof --unknown gives reasons, fastprof.op adds formulas"
