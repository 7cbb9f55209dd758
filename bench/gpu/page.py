"""docs/measured.md: what fastprof says beside what a GPU measured."""

from __future__ import annotations

import json
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import fastprof
from bench.gpu import operators, plan
from fastprof.analysis.roofline.ideal import PRACTICAL
from fastprof.model.devices import resolve

RECORDED = Path(__file__).parent / "h200"

# Names of a peak's figure in the device table.
_FIGURES = {
    "bfloat16": "half", "float16": "half", "tf32": "tf32", "float32": "fp32", "float64": "fp64_tc",
    "float8": "fp8", "int8": "int8",
}  # fmt: skip


class Change(NamedTuple):
    """A change of a program: the findings that advise it, and the program with it."""

    program: str
    findings: tuple[str, ...]
    changed: str


CHANGES = [
    Change("small", ("launch-bound",), "small graph"),
    Change("lm", ("unaligned-kernel",), "lm pad"),
    Change("lm", ("unfused-attention",), "lm sdpa"),
    Change("lm", ("unfused-optimizer",), "lm fused"),
    Change(
        "lm", ("unaligned-kernel", "unfused-attention", "unfused-optimizer"),
        "lm sdpa pad fused noclip",
    ),
    Change("cv", ("data-loading",), "cv workers"),
]  # fmt: skip

_HEAD = """# Measured on a GPU

<!-- Made by `python -m bench.gpu page -o bench/gpu/h200`; a test compares. -->

What fastprof says, beside what the GPU measured: the peaks, the FLOPs and bytes of operators, the
steps after following the advice, and what recording costs. `make gpu` measures it on your GPU, in
parts that can run alone and go on after an interruption; it needs torch, torchvision, timm and
transformers, and `ncu` for counters. The programs are in `bench/gpu/programs`, the recordings in
`bench/gpu/h200`.
"""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], n_texts: int = 1) -> str:
    """A Markdown table; columns after the first `n_texts` are numbers."""
    lines = [list(head), ["---"] * n_texts + ["--:"] * (len(head) - n_texts), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _prose(text: str) -> str:
    """Paragraphs and items of a list, wrapped; a blank line before each paragraph."""
    lines = []
    for part in text.split("\n"):
        indent = "  " if part.startswith("- ") else ""
        lines.append(textwrap.fill(part, 100, subsequent_indent=indent, break_on_hyphens=False))
    return "\n".join(lines)


def _ratio(value: float | None, counted: float) -> str:
    return "na" if value is None or not counted else f"{value / counted:.2f}"


def _scientific(value: float | None) -> str:
    return "na" if value is None else f"{value:.3g}".replace("e+0", "e").replace("e+", "e")


def _milliseconds(case: dict) -> float:
    """A program's time of a step: the median of its rounds."""
    return statistics.median(case["ms"])


def _machine(results: dict) -> str:
    gpu = results["peaks"]["gpu"]
    versions = results["runs"]["lm"]["versions"]
    return _prose(
        f"\nThis page: {gpu['gpu']}, {gpu['sms']} multiprocessors, "
        f"{gpu['memory'] / 2**30:.0f} GiB, L2 cache {gpu['l2'] / 2**20:.0f} MiB; "
        f"torch {gpu['torch']}, Python {versions['python']}; clocks as found.\n"
    )


def _peaks(results: dict) -> str:
    gpu = results["peaks"]["gpu"]
    device = resolve(gpu["gpu"])
    rows = []
    for name, flops in gpu["flops"].items():
        peak = device.flops[_FIGURES[name]]
        rows.append([name, f"{flops / 1e12:.1f}", f"{peak / 1e12:.1f}", f"{flops / peak:.0%}"])
    text = _prose(
        "\n## Peaks\n\nProducts of square matrices of random numbers with 8192 rows (4096 in "
        "float64), the median of ten. "
        f"The practical roof of reports is {PRACTICAL[0]:.0%} of the tensor-core peak and "
        f"{PRACTICAL[1]:.0%} of the bandwidth.\n\n"
    )
    text += _table(("type", "measured, TFLOP/s", "table, TFLOP/s", "share"), rows)
    copied = gpu["bytes"]
    bandwidth = device.bandwidth or 0
    rows = [
        [
            name,
            f"{rate / 1e9:.0f}",
            f"{rate / bandwidth:.0%}" if name in ("device", "write") else "",
        ]
        for name, rate in copied.items()
    ]
    text += _prose(
        "\nCopies of 1 GiB; on the device, bytes read and written count. Table: "
        f"{bandwidth / 1e9:.0f} GB/s.\n\n"
    )
    text += _table(("copy", "GB/s", "share of the table"), rows)
    launch = gpu["ns"]
    return text + _prose(
        f"\n`add_` of one element takes {launch['add_ on the host'] / 1e3:.1f} us on the host, and "
        f"{launch['add_ in a graph'] / 1e3:.2f} us from one to the next in a graph.\n"
    )


def _operators(folder: Path) -> str:
    rows = [
        [
            each.name, f"{each.ns / 1e3:.1f}", _scientific(each.flops), _scientific(each.counted),
            _ratio(each.flops, each.counted), _scientific(each.bytes), _scientific(each.dram),
            _ratio(each.bytes, each.dram),
        ]
        for each in operators.compare(folder / "operators.json.gz", folder / "counters.csv.gz")
    ]  # fmt: skip
    return _prose(
        "\n## FLOPs and bytes of operators\n\n"
        "fastprof's models beside the counters of Nsight Compute: operations of the tensor cores, "
        "and of other floating-point instructions with a fused multiply-add as two; bytes read "
        "from and written to device memory. The L2 cache is flushed before each operator.\n\n"
        "- Products and convolutions agree within 3 %. Few rows, as in `linear_gemv` and "
        "`sdpa_decode`, fill a part of a tile: the tensor cores compute the whole tile. "
        "`conv7x7_stem` and `lstm` are padded likewise.\n"
        "- A causal mask does not halve the FLOPs of the model, as in torch's FlopCounterMode; the "
        "kernel computes half. The share of the roof of causal attention is twice as high as it "
        "should be.\n"
        "- Pointwise operators, normalisations, reductions and sorts count as documented in "
        "[ops.md](ops.md), not by instruction; bytes decide their time.\n"
        "- Bytes of the model are each input and output once. The counters have less where the "
        "output stays in the L2 cache, up to its size, and more where a large product reads its "
        "operands again: up to 2.4 times.\n"
        "- `na`: torch.profiler records no types or sizes of the tensors in lists. `fastprof run` "
        "does.\n\n"
    ) + _table(
        ("operator", "GPU, us", "FLOPs", "counted", "ratio", "bytes", "counted", "ratio"), rows
    )


def _changes(results: dict, folder: Path) -> str:
    rows = []
    advised = {
        change.program: fastprof.open(folder / "traces" / f"{change.program}.json.gz").advise()
        for change in CHANGES
    }
    for change in CHANGES:
        savings = {row["id"]: row["saving_ns"] for row in advised[change.program].rows()}
        predicted = [savings.get(finding) for finding in change.findings]
        before = _milliseconds(results["steps"][change.program])
        after = _milliseconds(results["steps"][change.changed])
        known = None if None in predicted else sum(predicted) / 1e6
        rows.append(
            [
                change.program, ", ".join(change.findings),
                f"`{change.changed.removeprefix(change.program + ' ')}`", f"{before:.1f}",
                f"{after:.1f}", f"{before - after:.1f}",
                "not found" if known is None else f"{known:.1f}",
            ]
        )  # fmt: skip
    return _prose(
        "\n## Advice, followed\n\n"
        "Each finding's saving beside the step measured before and after the change, without a "
        "recorder; milliseconds. A step bound by its host takes as long as the host of that "
        "process: `small` took 5.3 ms in the process that was recorded.\n\n"
    ) + _table(("program", "findings", "options", "before", "after", "saved", "predicted"), rows, 3)


def _recording(results: dict, folder: Path) -> str:
    rows = []
    for name, run in results["runs"].items():
        if "error" in run:
            continue
        trace = folder / "traces" / f"{plan.file_name(name)}.json.gz"
        lengths = [row["wall_ns"] / 1e6 for row in fastprof.open(trace).steps().rows()]
        plain = run["unrecorded"]["median_ns"] / 1e6
        # The GPU work before the first recorded step is not in the trace.
        during = statistics.median(lengths[1:])
        rows.append([name, f"{plain:.1f}", f"{during:.1f}", f"{during / plain:.2f}"])
    text = _prose(
        "\n## What recording costs\n\n"
        "Medians of steps before the recording of `fastprof run`, on the host, and of the recorded "
        "steps; milliseconds.\n\n"
    ) + _table(("program", "before", "recorded", "ratio"), rows)
    recorders = [
        [mode, f"{case['before']:.2f}", f"{case['during']:.2f}", f"{case['ratio']:.2f}"]
        for mode, case in results.get("overhead", {}).items()
        if "error" not in case
    ]
    if recorders:
        text += "\nRecorders of a launch-bound step, milliseconds.\n\n"
        text += _table(("recorder", "before", "during", "ratio"), recorders)
    return text


def _steps(results: dict) -> str:
    rows = [
        [name, f"{_milliseconds(case):.2f}", f"{min(case['ms']):.2f} to {max(case['ms']):.2f}",
         f"{case['bytes'] / 2**30:.2f}"]
        for name, case in results["steps"].items()
        if "error" not in case
    ]  # fmt: skip
    return _prose(
        "\n## Steps\n\nEach program with its options, without a recorder: the median of three "
        "rounds, their range, and the peak of torch's memory.\n\n"
    ) + _table(("program", "ms", "rounds", "GiB"), rows)


def _missing(results: dict) -> str:
    """What the plan has and the results have not."""
    steps = [case.name for case in (*plan.STEPS, *plan.COMPILED)]
    measured = {
        part: [name for name, case in cases.items() if "error" not in case]
        for part, cases in results.items()
    }
    runs = [case.name for case in (*plan.RECORDED, *plan.RECORDED_COMPILED)]
    lines = []
    for part, names in (("steps", steps), ("runs", runs), ("overhead", plan.RECORDERS)):
        left = [name for name in names if name not in measured.get(part, [])]
        if left:
            lines.append(f"- {part}: {', '.join(f'`{name}`' for name in left)}")
    if not measured.get("nsys"):
        lines.append("- nsys: recordings by Nsight Systems")
    return _prose("\n## Not measured\n\n" + "\n".join(lines) + "\n") if lines else ""


def page(folder: Path = RECORDED) -> str:
    """The page of a folder: `results.json`, `operators.json.gz`, `counters.csv.gz`, `traces/`."""
    results = json.loads((folder / "results.json").read_text())
    parts = [
        _HEAD, _machine(results), _changes(results, folder), _operators(folder), _peaks(results),
        _recording(results, folder), _steps(results), _missing(results),
    ]  # fmt: skip
    return "".join(parts)
