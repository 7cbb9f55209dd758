"""The terms of reports, for `fastprof explain` and docs/glossary.md. Imports no numpy."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.analysis.idle.columns import BEFORE_LAUNCH, FROM_LAUNCH
from fastprof.analysis.key_names import KEY_NAMES
from fastprof.analysis.reports import all_reports
from fastprof.model.heading import headed, unknown_name

TERMS: Final = {
    "bandwidth": "Bytes that the GPU reads and writes in a second. The peak is that of the GPU's "
    "data sheet; `fastprof devices` lists it, --bandwidth replaces it.",
    "bprop": "The backward pass: kernels that compute gradients. They carry the operator, layer "
    "and source line of the forward call that made them necessary.",
    "busy": "The time in which at least one kernel or copy runs on the GPU. Kernels that overlap "
    "on several streams count once, so the sum of all rows can be larger.",
    "call": "One call of an operator. It launches one kernel or more.",
    "capture": "The recorded stretch of a run, from the first to the last GPU work. Where no "
    "steps are known, reports treat it as one step.",
    "collective": "Communication among the ranks of a group: all_reduce, all_gather, "
    "reduce_scatter, all_to_all, broadcast. A rank that comes early waits for the last one, "
    "inside its communication kernel.",
    "compute type": "The type of the arithmetic of a kernel: fp32, tf32, fp16, bf16, fp8. It "
    "decides which peak rate the kernel is compared with.",
    "confidence": "How sure a finding is. high: the trace shows it directly. medium: it rests on "
    "one assumption, which the finding names. low: it is a guess worth a try.",
    "copy": "A memory copy or memset on the GPU. A copy from pageable memory makes the host wait, "
    "one from pinned memory does not.",
    "counted step": "A step that means and totals use: complete, with GPU work, and no warm-up.",
    "coverage": "The share of the GPU time of which the launch, the range, the operator, its "
    "shapes, its cost and its source line are known. `fastprof info` says what to record for more.",
    "exposed": "Communication or copies during which the GPU computes nothing. What runs behind "
    "compute is hidden, and costs no time.",
    "finding": "A change that would make a step shorter, with its evidence and its saving. "
    "`fastprof advise` lists them in the order in which they should be made.",
    "fprop": "The forward pass: kernels launched by operators outside of the backward pass.",
    "graph": "A CUDA or HIP graph: kernels that were captured once and are launched together. A "
    "trace of the capture supplies their operators: --graph-capture.",
    "ideal": "The time that a call would take at the GPU's peak rates: its FLOPs by the peak of "
    "its type or its bytes by the bandwidth, whichever is longer.",
    "idle": "The time in which nothing runs on the GPU. `fastprof idle` divides it by cause.",
    "kernel": "A program that runs on the GPU. Reports also count copies and memsets as GPU work.",
    "known": "See coverage.",
    "launch": "The API call by which the host starts a kernel, such as cudaLaunchKernel.",
    "layer": "A module of the model, by its name in it, with the modules around it: "
    "blocks.0:attention. `blocks.*` stands for all that differ by number.",
    "lost": "GPU time above the ideal time: what a perfect kernel for the same call would save.",
    "MFU": "Model FLOPs utilisation: the FLOPs of the operators in a step, by the step's length, "
    "by the peak rate of the GPU. Recomputed work does not count.",
    "na": "Unknown. The trace does not record it, or recorded too little to be sure.",
    "operator": "A function of torch or of a library, such as aten::linear, that launches kernels.",
    "overlap": "Work of two kinds at the same time, such as communication behind compute.",
    "peak": "The highest rate of a GPU according to its data sheet, by type: FLOP/s with and "
    "without tensor cores, bytes per second. --peak replaces it.",
    "phase": "What a kernel is for: forward, backward, recompute, optimizer, zero_grad, "
    "communication, copy or other.",
    "practical roof": "The peak rates times what the best kernels reach: 90 % of the bandwidth, "
    "some 80 % of the FLOP/s. Findings on slow kernels compare with it.",
    "range": "A named stretch of the program: torch.profiler.record_function, an NVTX range.",
    "rank": "One process of a run on several GPUs.",
    "recompute": "Forward work that the backward pass repeats, for activation checkpointing.",
    "repetition": "Steps found without marks: launches of the same kernels in the same order. "
    "They count only if 98 % of the GPU time repeats; otherwise mark steps with --steps.",
    "replay": "The run computed anew from its launches, kernels and dependencies after a change. "
    "Savings of findings and `fastprof whatif` come from it; see docs/replay.md.",
    "roof": "Ideal time by GPU time: 100 % is a kernel at the GPU's peak rate. Shown if it is "
    "known of 90 % of the time of the row.",
    "shape": "The sizes and types of a call's tensors: M, N, K of a product; N, C, H, W of a "
    "convolution.",
    "start-up": "What a program does once: loading libraries and kernels, the first call of each "
    "operator. Reports leave it out of steps; --trim chooses the part that counts.",
    "starved": "The GPU finishes work as soon as it is launched: kernels start within 10 us of "
    "their launch. The host is the limit.",
    "step": "One iteration of the program. It ends with ProfilerStep of torch.profiler, an "
    "optimizer, a batch of the data loader, a range of yours, or is found by repetition: --steps.",
    "stream": "A queue of GPU work. Work of one stream runs in order, that of two may overlap.",
    "tc": "Tensor cores: 1 if the kernel uses them, 0 if it could and does not, - if it cannot.",
    "together": "Findings that save only if both are made, such as shorter kernels and earlier "
    "launches. Each counts with an equal share of what they save together.",
}


class Explanation(NamedTuple):
    """What a term means.

    Parameters
    ----------
    what : what it is: a term, a cause of idle time, a finding, a key, a column of some reports
    text : one paragraph
    """

    what: str
    text: str


def explain(term: str) -> list[Explanation]:
    """Everything that a word on a screen can mean: a term, a cause, a finding, a key, a column.

    Raises
    ------
    KeyError
        There is no such word; the message names the nearest.
    """
    name = term.strip()
    explanations = list(_explanations(name))
    if not explanations:
        raise KeyError(unknown_name("term", name, words()))
    return explanations


def words() -> list[str]:
    """All words that `explain` knows, but for columns."""
    from fastprof.analysis.advice.registry import all_rules

    return [*TERMS, *causes(), *all_rules(), *KEY_NAMES]


def _explanations(name: str) -> Iterator[Explanation]:
    from fastprof.analysis.advice.registry import all_rules

    for term, text in TERMS.items():
        if term.lower() == name.lower():
            yield Explanation(term, text)
    for cause, text in causes().items():
        if cause.lower() == name.lower():
            yield Explanation(f"{cause}, a cause of idle time", text)
    if rule := all_rules().get(name):
        yield Explanation(f"{name}, a finding of fastprof advise", rule.about)
    if name in KEY_NAMES:
        yield Explanation(f"{name}, a key of --by and --where", KEY_NAMES[name])
    reports: dict[tuple[str, str], list[str]] = {}
    for report in all_reports().values():
        keys = [heading for heading in report.columns if heading.key == name]
        for heading in keys or headed(name, report.columns):
            reports.setdefault((heading.key, heading.about), []).append(report.name)
    for (key, about), names in reports.items():
        if about and about != KEY_NAMES.get(name):
            yield Explanation(f"{key}, a column of {', '.join(names)}", about)


def causes() -> dict[str, str]:
    """What each cause of idle time is."""
    before = "Before the launch of the next work, the launching thread:"
    texts = {name: f"{before} {text}" for name, text in BEFORE_LAUNCH.items()}
    after = "From the launch of the next work on:"
    return {**texts, **{name: f"{after} {text}" for name, text in FROM_LAUNCH.items()}}


def glossary_page() -> str:
    """The text of docs/glossary.md."""
    terms = [f"**{term}**: {text}" for term, text in sorted(TERMS.items(), key=_alphabetical)]
    of_idle = [f"**{name}**: {text}." for name, text in causes().items()]
    paragraphs = [*terms, "## Causes of idle time", *of_idle]
    return "\n".join([_HEAD, *(f"{fill(text, 119)}\n" for text in paragraphs)])


def _alphabetical(entry: tuple[str, str]) -> str:
    return entry[0].lower()


_HEAD: Final = """\
# Terms

Written by `python docs/make_glossary.py`. `fastprof explain TERM` prints one of these, and explains
the headings of reports, the keys of `--by`, and the findings of `fastprof advise`.
"""
