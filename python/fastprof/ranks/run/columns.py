"""The headings of the tables of `fastprof ranks`. Imports no numpy."""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.heading import Heading

_AS_STEP: Final[dict[str, Any]] = {"same_unit": "step_ns"}
_RANK: Final = Heading("rank", "rank", "", "number of the rank in the run")
_PARTS: Final = (
    Heading("compute_ns", "compute", "ns", "kernels other than communication run", **_AS_STEP),
    Heading(
        "copies_ns", "copies", "ns", "copies and memsets run, and no kernels", rank=2, **_AS_STEP
    ),
    Heading("idle_ns", "idle", "ns", "neither work nor a call that work waits for", **_AS_STEP),
    Heading(
        "transfer_ns",
        "transfer",
        "ns",
        "work waits for a transfer: exposed communication",
        **_AS_STEP,
    ),
    Heading("wait_ns", "waits", "ns", "work waits for another rank to arrive", **_AS_STEP),
)

RANKS: Final = (
    _RANK,
    Heading("file", "file", "", "the trace", keeps_end=True, rank=3, min_width=12),
    Heading("gpu", "gpu", "", "number of the GPU in the trace", rank=3),
    Heading("host", "host", "", "ranks of equal number have one clock", in_text=False),
    Heading("steps", "steps", "", "counted steps"),
    Heading("step_ns", "step", "ns", "mean length of a counted step"),
    *_PARTS,
    Heading("hidden_ns", "hidden", "ns", "transfers while work runs: not part of the step",
            rank=1, **_AS_STEP),
    Heading("last", "last", "", "instances that other ranks waited for this one in", rank=1),
    Heading("waited_for_ns", "waited for", "ns", "work of other ranks waits for this one, a step"),
    Heading("offset_ns", "clock", "ns", "what is added to its times", in_text=False),
    Heading("drift_ppm", "drift", "", "parts per million of its clock", in_text=False),
    Heading("residual_ns", "residual", "ns", "median distance of its ends from those of the others",
            in_text=False),
)  # fmt: skip

GROUPS: Final = (
    Heading("group", "group", "", "recorded name, kinds of collectives", keeps_start=True),
    Heading("groups", "groups", "", "groups of ranks that are alike"),
    Heading("size", "ranks", "", "ranks of a group"),
    Heading("known", "known", "", "ranks of a group that have a file", in_text=False),
    Heading("calls", "calls", "", "calls a step and rank"),
    Heading("bytes", "bytes", "bytes", "algorithm bytes a step and rank"),
    Heading("transfer_ns", "transfer", "ns", "from the last arrival to the end, a step and rank"),
    Heading("exposed_ns", "exposed", "ns", "transfer that work waits for, a step and rank"),
    Heading("wait_ns", "waits", "ns", "work waits for the last rank, a step and rank"),
    Heading("bus_bytes_per_s", "bus", "bytes/s", "bus bytes by the transfer, without waits"),
)

WAITS: Final = (
    _RANK,
    Heading("step", "step", "", "number of the step in the run"),
    Heading("group", "group", "", "as in groups", keeps_start=True),
    Heading("waits_for", "waits for", "", "rank that arrives last; na: one without a file"),
    Heading("calls", "calls", "", "calls that work waits for"),
    Heading("wait_ns", "waits", "ns", "work waits for that rank to arrive"),
)

CAUSES: Final = (
    _RANK,
    Heading("cause", "cause", "", "why it arrives later than the median rank"),
    Heading("times", "last", "", "instances in which it was last for this cause"),
    Heading("waited_ns", "others wait", "ns", "GPU time that ranks waited for it, a step"),
    Heading("costs_ns", "step costs", "ns",
            "what the replayed step is shorter if the rank is like the median one in this",
            same_unit="waited_ns"),
    Heading("where", "where", "", "layer, operator, shape or line with most of it",
            keeps_end=True),
)  # fmt: skip

STEPS: Final = (
    _RANK,
    Heading("step", "step", "", "number of the step in the run"),
    Heading("number", "number", "", "number of the step in the trace", in_text=False),
    Heading("start_ns", "start", "ns", "on the clock of the run", in_text=False),
    Heading("step_ns", "length", "ns", "length of the step"),
    *_PARTS,
    Heading("hidden_ns", "hidden", "ns", "transfers while work runs", **_AS_STEP),
)

INSTANCES: Final = (
    Heading("instance", "instance", "", "number of the instance"),
    Heading("group", "group", "", "as recorded", keeps_start=True),
    Heading("collective", "collective", "", "kind of collective"),
    Heading("bytes", "bytes", "bytes", "algorithm bytes"),
    Heading("ranks", "ranks", "", "ranks with a call"),
    Heading("missing", "missing", "", "ranks of the group without a call"),
    Heading("first_ns", "first", "ns", "arrival of the first rank, since the first of the run"),
    Heading("late_ns", "late", "ns", "from the first to the last arrival"),
    Heading("last_rank", "last", "", "the rank that arrives last"),
    Heading("transfer_ns", "transfer", "ns", "from the last arrival to the end"),
)

UNMATCHED: Final = (
    _RANK,
    Heading("group", "group", "", "as recorded"),
    Heading("calls", "calls", "", "calls that match none of another rank"),
    Heading("reason", "reason", "", "why"),
)

CHANGES: Final = (
    Heading("change", "if", "", "what the replay assumes"),
    Heading("step_ns", "step", "ns", "mean length of a replayed step"),
    Heading("saved_ns", "saved", "ns", "what it is shorter than as recorded", **_AS_STEP),
    Heading("saved_share", "saved", "share", "by the step"),
)

PATH: Final = (
    _RANK,
    Heading("part", "part", "", "compute, copies, cause of idle time, transfer, latency or start"),
    Heading("path_ns", "path", "ns", "time on the critical path, a step"),
    Heading("path_share", "path", "share", "by the path"),
    Heading("where", "where", "", "layer, operator, shape or line with most of it",
            keeps_end=True),
)  # fmt: skip

STAGES: Final = (
    Heading("stage", "stage", "", "ranks of one program, in order"),
    Heading("ranks", "ranks", "", "their numbers"),
    Heading("step_ns", "step", "ns", "mean length of a step"),
    Heading("bubble_ns", "bubble", "ns", "work waits for a message of another stage, a step"),
    Heading("bubble_share", "bubble", "share", "by the step"),
)
