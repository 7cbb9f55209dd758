"""The headings, options and help of `advise`. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.registry import Option
from fastprof.model.heading import Heading


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise ValueError(f"expected a percentage from 0 to 100, found {text!r}")
    return value


MIN: Final = Option(
    "min",
    "smallest saving that is listed, percent of a step (default: each rule's own)",
    "PERCENT",
    _percent,
)
FAIL_ABOVE: Final = Option(
    "fail_above",
    "exit with code 4 if a finding saves more than this, percent of a step",
    "PERCENT",
    _percent,
)

COLUMNS: Final = (
    Heading("id", "finding", "", "id of the rule", min_width=20),
    Heading(
        "saving_ns",
        "saves",
        "ns",
        "time that a step saves by this change after those above it, replayed; unknown for "
        "findings that save no time by themselves; see docs/replay.md",
    ),
    Heading(
        "share",
        "step",
        "share",
        "this saving, as a share of the step; of one without the recorder where that is known",
    ),
    Heading(
        "is_bound",
        "bound",
        "",
        "1 if the saving is an upper bound, because the trace cannot be replayed",
        in_text=False,
    ),
    Heading("confidence", "confidence", "", "high, medium or low"),
    Heading("where", "where", "", "layer, source line, operator, shapes, range", in_text=False),
    Heading("what", "what", "", "one sentence", in_text=False),
    Heading("evidence", "evidence", "", "the numbers", in_text=False),
    Heading("remedy", "remedy", "", "what to change", in_text=False),
    Heading("why", "why", "", "reason for the confidence", in_text=False),
    Heading("alone_ns", "alone", "ns", "the saving without other changes", in_text=False),
    Heading(
        "together",
        "together",
        "",
        "the numbers of the findings that need each other; each has an equal share of what they "
        "save",
        in_text=False,
    ),
)

DESCRIPTION: Final = """\
What to change to make a step shorter: a plan. A replay of the run (docs/replay.md) tries each
change; the one that saves most comes first. With it, all others are tried again, and so on: each
saving is per step and GPU, after the findings above it, and the savings add up to what all changes
together save. Changes that need each other, such as shorter kernels and earlier launches, say
so: each counts with an equal share of what they save together. The first line says it in a
sentence.
Without API calls in the trace there is no replay: savings are then upper bounds, from idle time or
from the time of kernels, `at most`. Confidence does not change the order. The notes list the rules
that the capture does not suffice for.
`fastprof.rule` adds rules; --ops loads a file with them.

$ fastprof advise resnet50.json.gz -w 88 --min 6
The GPU waits 57 of 176 ms a step for the data loader. Workers would save about 57 ms.
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 175.5 ms: all findings together save 108.3 ms, 62%
each saving is replayed, after the findings above it

1. data-loading (saves 56.98 ms, 32%): The GPU waits for the data loader.
- evidence: 56.74 ms idle per step; median 57.04 ms, 48.19 ms to 62.04 ms; 1 gap, the
  longest 62.34 ms
- where: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 100%
- remedy: DataLoader(num_workers=4, pin_memory=True, persistent_workers=True) prefetches
  batches; or move transforms to the GPU
- confidence: high: the thread that launches the next work is in the loader during this
  time

2. launch-bound (saves 25.68 ms, 15%): The GPU finishes kernels faster than the host
  launches them.
- together: 2 and 3 need each other and save 51.36 ms, of which each has an equal share;
  2 alone saves 12.01 ms
- evidence: 17.5% of the kernels start within 10 us of their launch; 9.157 ms idle per
  step (launch-bound 4.323 ms, launch latency 4.834 ms); median 9.11 ms, 9.062 ms to
  9.354 ms; 1417 gaps, the longest 49 us; without the recorder 7.065 ms to 8.003 ms
  (estimate); 3.391 ms of longer gaps, 50 us of each; each step launches the same 1462
  kernels
- where: zero_ 62%, add_ 10%; resnet50_profiler_api.py:49 66%,
  resnet50_profiler_api.py:46 21%; Optimizer.zero_grad#SGD.zero_grad 66%, ProfilerStep#*
  11%
- remedy: shapes repeat: torch.cuda.make_graphed_callables, or
  torch.compile(mode="reduce-overhead") replays a CUDA graph; optimizers with fused=True
  or foreach=True; a larger batch
- confidence: medium: a graph needs static shapes and no synchronisation inside

3. no-tensor-cores (saves 25.68 ms, 15%): Convolutions run in fp32 without the tensor
  cores of Tesla V100-DGXS-32GB.
- evidence: GPU time 61.58 ms; of all kernels 62.5%; operators that can use tensor cores
  67.6%; kernel cudnn::detail::dgrad_engine
- where: 6 x conv2d N=32,C=256,H=14,W=14,K=1024,P=14,Q=14,R=1,S=1,ph=na,pw=na,U=na,V=na,
  dh=na,dw=na,g=1,fp32, resnet50_profiler_api.py:46, and 45 more
- remedy: torch.autocast("cuda", dtype=torch.float16), with torch.amp.GradScaler in
  training
- confidence: high: FLOPs and bytes are known

finding          saves(ms)  step(%)  confidence
data-loading          57.0     32.5  high
launch-bound          25.7     14.6  medium
no-tensor-cores       25.7     14.6  high
total                108.3     61.7
means exclude step 5: the GPU work before it is not recorded
not judged: cudnn-benchmark, because: values of arguments not recorded:
  profile(record_shapes=True) of PyTorch 2.1 or later
"""
