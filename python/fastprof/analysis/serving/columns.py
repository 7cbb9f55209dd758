"""The headings and help of `serving`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.registry import Option
from fastprof.model.heading import Heading


def _per_token(key: str, header: str, about: str) -> Heading:
    return Heading(key, header, "ns", about, same_unit="token_ns", rank=2)


STAGES: Final = (
    Heading("stage", "stage", "", "stage of the iterations: prefill, decode, mixed, draft, verify"),
    Heading("iterations", "count", "", "iterations that means count"),
    Heading("requests", "requests", "", "mean requests of an iteration", decimals=1),
    Heading("tokens", "tokens", "", "mean tokens that an iteration computes", decimals=1),
    Heading(
        "tokens_per_s",
        "tokens/s",
        "",
        "tokens by wall time of these iterations, of one process",
        decimals=1,
    ),
    Heading(
        "wall_ns",
        "iteration",
        "ns",
        "mean time from the end of the GPU work of the iteration before to the end of its own",
    ),
    Heading("token_ns", "per token", "ns", "wall time by tokens"),
    Heading(
        "busy_ns", "busy", "ns", "mean time of an iteration in which the GPU works",
        same_unit="wall_ns", rank=1,
    ),
    Heading(
        "between_ns",
        "idle before",
        "ns",
        "mean idle time before the first GPU work of an iteration",
        same_unit="wall_ns",
        rank=1,
    ),
    Heading(
        "idle_ns",
        "idle inside",
        "ns",
        "mean idle time from its first GPU work to its last",
        same_unit="wall_ns",
        rank=1,
    ),
    _per_token("attention_ns", "attention", "GPU time of attention by tokens"),
    _per_token(
        "weights_ns", "weights", "GPU time of products by tokens: layers read their weights"
    ),
    _per_token("communication_ns", "comm", "GPU time of communication by tokens"),
    _per_token("sampling_ns", "sampling", "GPU time of sampling by tokens"),
    _per_token("other_ns", "other", "GPU time of other work by tokens"),
    Heading(
        "memory_share",
        "memory roof",
        "share",
        "least time that the memory needs for the bytes of work of known cost, by wall time: at "
        "least so much of its bandwidth is used",
    ),
    Heading(
        "cost_share", "cost known", "share", "share of the GPU time with known bytes", rank=3
    ),
)  # fmt: skip
IDLE: Final = (
    Heading("place", "idle", "", "before: before the first work of an iteration; inside"),
    Heading(
        "cause",
        "cause",
        "",
        "what the engine does on the host, as its ranges and functions tell (scheduler, preparing "
        "inputs, sampling on the host, detokenizer, waiting for requests), else a cause of idle",
    ),
    Heading("ns", "time", "ns", "idle time of a mean iteration and GPU"),
    Heading("share", "share", "share", "by wall time"),
)

BY_CAUSE: Final = Option(
    "idle", "idle time before and inside iterations by cause, in place of stages", default=False
)

DESCRIPTION: Final = """\
What a serving engine does: iterations by stage, tokens per second, time per token
and between tokens, and why the GPU is idle before and inside iterations. An
iteration is a range that the engine opens around each of its steps; its name tells
the requests and tokens:

  vLLM          execute_context_1(888)_generation_4(4), execute_new_1_cached_3
  SGLang        step[EXTEND bs=2 toks=900], step[DECODE bs=32]
  TensorRT-LLM  [Executor] _forward_step 7: 2 ctx reqs, 30 gen reqs

Columns by token are GPU times, which overlap on streams. The time between tokens is
that between the ends of iterations that generate, of all requests alike: prefill in
between delays them. A decode reads all weights once: the closer it is to the memory
roof, the less a faster kernel can save. With tensor parallelism all processes compute
the same tokens: tokens/s is of one.

$ fastprof serving engine.json.gz -w 86
NVIDIA H100 80GB HBM3, 5 iterations of the engine (1 prefill, 3 decode, 1 mixed)
prefill: 1 iteration of 215 us for 2 requests, 600 tokens: 2,790,698 tokens/s, 358.3
  ns per token
decode: 3 iterations of 169.3 us for 2.333 requests, 2.333 tokens: 13,780 tokens/s,
  72.57 us per token
mixed: 1 iteration of 256 us for 3 requests, 102 tokens: 398,438 tokens/s, 2.51 us per
  token
time between tokens: p50 196 us, p90 256 us, p99 256 us (6 tokens)
idle before the first work of an iteration: 121 us, 63.4% (scheduler 82.5 us, host-
  bound 19 us, sync 16.5 us)

stage    count  requests  tokens   tokens/s  iteration(us)  per token(us)
prefill      1       2.0   600.0  2790697.7          215.0           0.36
decode       3       2.3     2.3    13779.5          169.3          72.57
mixed        1       3.0   102.0   398437.5          256.0           2.51
(too narrow for busy(us), idle before(us), idle inside(us), attention(us),
  weights(us), comm(us), sampling(us), other(us), memory roof(%), cost known(%))
prefill: the capture begins or ends with its only iteration, which may have waited for
  work that is not recorded
the memory's share needs a cost of 10% of the GPU time and a known bandwidth
"""
