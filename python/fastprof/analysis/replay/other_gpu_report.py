"""What `whatif --on` says of a run on another GPU: GPU time by keys, notes and facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, group
from fastprof.analysis.key_names import check_keys
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.changes import Answer
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.other_gpu import RULES, WIDE, OtherGpu, is_same, vendor
from fastprof.analysis.replay.path import gpu_ns
from fastprof.analysis.replay.runs import Weights
from fastprof.model.columns import Ints, Values
from fastprof.model.devices import CLOCKS, peaks_text
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats

VERDICTS: Final = (
    *("cannot tell", "faster", "slower", "alike", "not slower", "not faster", "either"),
)
_ALIKE: Final = 1.11  # times by the recorded one, up to which they are alike


def times_by(
    model: Model, other: OtherGpu, ends: Sequence[Weights], names: Sequence[str]
) -> dict[str, ColumnData]:
    """The keys and the columns `OF_OTHER_GPU`, the largest GPU time first.

    ends : the weights with the shortest and the longest times

    Raises
    ------
    ReportError
        A key is unknown; the message names the nearest.
    """
    check_keys(tuple(names))
    cells = cells_of(model.whole, names)
    keys = [key_of(cells, name) for name in names]
    groups = group(keys, len(cells))
    of_kernel = take(groups.ids, cells.of_kernel)
    steps = max(model.n_counted, 1)
    recorded, low, high = (
        np.bincount(of_kernel, gpu_ns(model, weights), groups.n) / steps
        for weights in (model.base, *ends)
    )
    order = np.argsort(-recorded, kind="stable")
    ids = [key.ids[groups.first][order] for key in keys]
    columns: dict[str, ColumnData] = {
        name: Values(own, key.values) for name, own, key in zip(names, ids, keys, strict=True)
    }
    for name, ns in (("gpu_ns", recorded), ("low_ns", low), ("high_ns", high)):
        columns[name] = Ints(rounded(ns[order]))
    columns["width"] = Floats(_width(low, high)[order])
    rules = other.spans(model.cells).rule[model.cells.of_kernel]
    columns["rule"] = Values(_heaviest(of_kernel, rules, model, groups.n)[order], [*RULES])
    columns["verdict"] = Values(_verdicts(recorded, low, high)[order], [*VERDICTS])
    return columns


def _width(low: Floats64, high: Floats64) -> Floats64:
    """The longest by the shortest time; NaN without time."""
    result: Floats64 = np.divide(high, low, out=np.full(len(low), np.nan), where=low > 0)
    return result


def _heaviest(of_kernel: np.ndarray, rules: np.ndarray, model: Model, n: int) -> np.ndarray:
    """int32 [groups] The rule with most of the recorded time."""
    place = of_kernel.astype(np.int64) * len(RULES) + rules
    time = np.bincount(place, model.counted_ns, n * len(RULES)).reshape(n, len(RULES))
    return np.where(time.sum(axis=1) > 0, time.argmax(axis=1), -1).astype(np.int32)


def _verdicts(recorded: Floats64, low: Floats64, high: Floats64) -> np.ndarray:
    """int32 [groups] Index into VERDICTS."""
    no_slower, no_faster = high <= _ALIKE * recorded, low >= recorded / _ALIKE
    conditions = [high > WIDE * low, high < recorded, low > recorded, no_slower & no_faster]
    conditions += [no_slower, no_faster]
    result = np.select(conditions, range(len(conditions)), len(conditions))
    return np.where(recorded > 0, result, -1).astype(np.int32)


def facts_of(
    model: Model, other: OtherGpu, ends: Sequence[Weights], answers: Sequence[Answer]
) -> dict[str, Any]:
    """What is known of the run on the other GPU, for JSON; times in ns a step.

    ends : the weights with the shortest and the longest times
    answers : at these ends
    """
    steps = max(model.n_counted, 1)
    times = [gpu_ns(model, weights) for weights in (model.base, *ends)]
    total, low, high = (float(ns.sum()) / steps for ns in times)
    wide = times[2] > WIDE * times[1]
    span = other.spans(model.cells)
    rules = np.bincount(span.rule[model.cells.of_kernel], times[0], len(RULES)) / steps
    return {
        "gpu": other.name,
        "gpu_ns": round(total),
        "low_ns": round(low),
        "high_ns": round(high),
        "wide_ns": round(float(times[0][wide].sum()) / steps),
        "rules": {name: round(ns) for name, ns in zip(RULES, rules.tolist(), strict=True)},
        "step_ns": [round(answer.wall) for answer in answers],
        "host_share": [answer.host for answer in answers],
        "missing": [list(pair) for pair in sorted(span.missing)],
        "may_use_tf32": span.may_use_tf32,
    }


def lead_of(facts: dict[str, Any]) -> str:
    """One line: the GPU time and who decides the step."""
    low, high = (quantity(facts[name], "ns") for name in ("low_ns", "high_ns"))
    host = sorted(f"{share:.0%}" for share in facts["host_share"])
    least, most = min(facts["host_share"]), max(facts["host_share"])
    decides = f"{least:.0%}" if host[0] == host[1] else f"{least:.0%} to {most:.0%}"
    return (
        f"on {facts['gpu']}: GPU time {quantity(facts['gpu_ns'], 'ns')} becomes {low} to {high}; "
        f"the host, as recorded, decides {decides} of the step"
    )


def notes_of(other: OtherGpu, facts: dict[str, Any]) -> Iterator[str]:
    """What limits the prediction."""
    recorded = [*other.recorded.values()]
    if recorded and all(is_same(gpu, other.device) for gpu in recorded):
        yield f"the trace is of {other.name}: no time changes"
        return
    share = facts["wide_ns"] / max(facts["gpu_ns"], 1)
    if share >= 0.005:
        yield (
            f"{share:.0%} of the GPU time: the interval is wider than a factor of two, the trace "
            "cannot tell; --by op,shape lists which"
        )
    low, high = facts["step_ns"]
    if high > WIDE * low:
        yield "the step: the interval is wider than a factor of two, the trace cannot tell"
    if any(vendor(gpu) != vendor(other.device) for gpu in recorded):
        yield "libraries of AMD and NVIDIA differ: intervals between them are wider"
    for name, instead in facts["missing"]:
        yield (
            f"{other.name} does not run products of {name}: their time is that of {instead}, with "
            "numbers of its size"
        )
    memory = [gpu.memory for gpu in recorded if gpu.memory]
    if memory and other.device.memory and other.device.memory < 0.9 * max(memory):
        sizes = (f"{size / 1e9:.0f} GB" for size in (other.device.memory, max(memory)))
        yield "{} of memory instead of {}: whether the program fits is not known".format(*sizes)
    if facts["may_use_tf32"]:
        yield f"convolutions of fp32 may run as TF32 on {other.name}, as torch does by default"
    yield peaks_text(other.device)
    yield CLOCKS
