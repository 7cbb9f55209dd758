"""The headings, options and help of `advise`. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading
from fastprof.profile.reports import Option

__all__ = ["COLUMNS", "DESCRIPTION", "FAIL_ABOVE", "MIN"]


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
    Heading("share", "step", "share", "this saving, as a share of the step"),
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
    Heading("alone_ns", "alone", "ns", "the saving without the changes above it", in_text=False),
)

DESCRIPTION: Final = """\
What to change to make a step shorter, in order of what a replay of the run saves with each change
alone (docs/replay.md); all changes are replayed together as well. `up to` is a saving per step and
GPU, the mean over all complete steps but a warm-up, taken from idle time or from the time of
kernels. Time that two findings could save counts to the larger one, and the sum is at most a step.
A replay may save more than that: a host that is faster runs ahead of later waits too. The notes
list the rules that the capture does not suffice for.
`fastprof.rule` adds rules; --ops loads a file with them.

$ fastprof advise resnet50.json.gz -w 88 --min 10
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 175.5 ms: findings save up to 114.4 ms, 65%
all together, replayed: 72.02 ms saved, 41%

1. data-loading (up to 56.74 ms, replayed 58.98 ms): The GPU waits for the data loader.
- evidence: 56.74 ms idle per step; median 57.04 ms, 48.19 ms to 62.04 ms; 1 gap, the
  longest 62.34 ms
- where: resnet50_profiler_api.py:44 100%;
  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 100%
- remedy: DataLoader(num_workers=4, pin_memory=True, persistent_workers=True) prefetches
  batches; or move transforms to the GPU
- confidence: high: the thread that launches the next work is in the loader during this
  time

2. no-tensor-cores (up to 57.65 ms, replayed 2.724 ms): Convolutions run in fp32 without
  the tensor cores of Tesla V100-DGXS-32GB.
- evidence: GPU time 61.58 ms; of all kernels 62.5%; operators that can use tensor cores
  67.6%; kernel cudnn::detail::dgrad_engine
- where: 6 x conv2d N=32,C=256,H=14,W=14,K=1024,P=14,Q=14,R=1,S=1,ph=na,pw=na,U=na,V=na,
  dh=na,dw=na,g=1,fp32, resnet50_profiler_api.py:46, and 45 more
- remedy: torch.autocast("cuda", dtype=torch.float16), with torch.amp.GradScaler in
  training
- confidence: high: FLOPs and bytes are known

finding          up to(ms)  replayed(ms)  step(%)  confidence
data-loading          56.7          59.0     32.3  high
no-tensor-cores       57.6           2.7     32.8  high
total                114.4                   65.2
not judged: cudnn-benchmark, because: values of arguments not recorded:
  profile(record_shapes=True) of PyTorch 2.1 or later
"""
