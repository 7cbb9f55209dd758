"""What no replay may break: the limits of docs/replay.md, for every kind of change."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.host.states import State
from fastprof.analysis.idle.causes import Cause
from fastprof.analysis.idle.gaps import gaps_of_steps
from fastprof.analysis.replay import changes as gpu_changes
from fastprof.analysis.replay import changes as host_changes
from fastprof.analysis.replay.changes import overlapped
from fastprof.analysis.replay.graph import pids_of
from fastprof.analysis.replay.late_launches import late_launches
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.runs import Weights
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.errors import ReportError
from support.hypothesis_profiles import IS_FULL

KEYS = ("op", "layer", "line", "name", "stream")
# Names of kernels that are changed alone: those with the most GPU time.
_PARTS = 6 if IS_FULL else 2


def changed_runs(model: Model) -> Iterator[tuple[str, Weights, np.ndarray]]:
    """Every change that only shortens work: of all kernels, some of them, and the host.

    Also [kernels], what is on a stream of its own.
    """
    for name, kernels in _selections(model):
        if name in ("communication", "copies"):
            yield f"overlap {name}", overlapped(model, model.base, kernels)[0], kernels
    stays = np.zeros(len(model.profile), bool)
    for name, change in _changes(model):
        try:
            result = change(model, model.base)
        except ReportError:  # what the change needs is not recorded
            continue
        yield name, result[0] if isinstance(result, tuple) else result, stays


def _changes(model: Model) -> Iterator[tuple[str, Callable[[Model, Weights], Any]]]:
    devices = devices_with(model.whole, None, None, None)
    for name, kernels in _selections(model):
        for factor in (0.9, 0.5, 0.0):
            yield (
                f"scale {name}:{factor}",
                lambda m, w, k=kernels, f=factor: gpu_changes.scaled(m, w, k, f),
            )
        yield f"remove {name}", lambda m, w, k=kernels: host_changes.removed(m, w, k)
        yield f"fuse {name}", lambda m, w, k=kernels: host_changes.fused(m, w, k)
        yield f"graph {name}", lambda m, w, k=kernels: host_changes.as_graph(m, w, k)
        yield (
            f"ideal {name}",
            lambda m, w, k=kernels: gpu_changes.at_ideal(m, w, k, devices, "peak"),
        )
    yield "dtype", lambda m, w: gpu_changes.in_type(m, w, devices, "bf16")
    yield "pad", lambda m, w: gpu_changes.padded(m, w, devices, 8)
    yield "no-sync", host_changes.without_sync
    yield "no-data-loading", host_changes.without_loading
    yield "on time", _on_time
    for factor in (0.5, 0.0):
        yield f"host:{factor}", lambda m, w, f=factor: host_changes.host_scaled(m, w, f)
        for state in State:
            yield (
                f"{state.name}:{factor}",
                lambda m, w, f=factor, s=state: host_changes.states_scaled(m, w, {s}, f),
            )
    yield "no host", _without_host


def _on_time(model: Model, weights: Weights) -> Weights:
    """No launch is late by the host's own time."""
    late = late_launches(model, gaps_of_steps(model.whole, model.whole.find_steps()))
    return host_changes.time_scaled(late, weights, [*Cause], 0.0)[0]


def _without_host(model: Model, weights: Weights) -> Weights:
    for change in (
        host_changes.without_sync,
        lambda m, w: host_changes.states_scaled(m, w, set(State), 0.0),
        lambda m, w: host_changes.host_scaled(m, w, 0.0),
        host_changes.as_graph,
    ):
        weights = change(model, weights)[0]
    return weights


def _selections(model: Model) -> Iterator[tuple[str, np.ndarray]]:
    yield "*", np.ones(len(model.profile), bool)
    for code, name in enumerate(("compute", "communication", "copies")):
        if (model.kernel_class == code).any():
            yield name, model.kernel_class == code
    names = texts(model.profile, "name").ids
    sums = np.bincount(names + 1, model.counted_ns)[1:]
    for each in np.argsort(-sums, kind="stable")[:_PARTS].tolist():
        yield f"name {each}", names == each


@lru_cache(maxsize=1)
def _streams(model: Model) -> np.ndarray:
    """[kernels] A number for each stream of a process and GPU."""
    keys = [numbers(model.profile, name) for name in ("device", "stream")]
    return np.unique([pids_of(model.profile), *keys], axis=1, return_inverse=True)[1].ravel()


def remaining_busy_ns(model: Model, weights: Weights, moved: np.ndarray) -> float:
    """ns a step: of each process, the stream whose remaining work takes longest.

    Work that overlaps on its stream counts once, for the work that began first.

    moved : [kernels] what is on a stream of its own
    """
    start, pid = numbers(model.profile, "start"), pids_of(model.profile)
    end = start + np.maximum(numbers(model.profile, "sil"), 0)
    nodes = model.graph.node_of_kernel
    recorded = (model.base.duration + _waits(model, model.base))[nodes]
    left = (weights.duration + _waits(model, weights))[nodes] / np.maximum(recorded, 1)
    streams = 2 * _streams(model) + moved
    longest: dict[int, float] = {}
    for stream in np.unique(streams):
        rows = np.flatnonzero(streams == stream)
        before = np.concatenate([[start[rows[0]]], np.maximum.accumulate(end[rows])[:-1]])
        own = np.maximum(end[rows] - np.maximum(start[rows], before), 0)
        share = own / np.maximum(end[rows] - start[rows], 1)
        busy = float((model.counted_ns[rows] * share * left[rows]).sum())
        longest[pid[rows[0]]] = max(longest.get(pid[rows[0]], 0.0), busy)
    steps_are_of_all = set(model.steps.pid.tolist()) == {-1}
    total = max(longest.values()) if steps_are_of_all else sum(longest.values())
    return total / model.n_counted


def _waits(model: Model, weights: Weights) -> np.ndarray:
    """[nodes] Of collectives, the wait for other ranks is part of their time."""
    zeros = np.zeros(len(model.graph), np.int64)
    nodes = model.graph.node_of_kernel[model.kernel_class == 1]
    zeros[nodes] = weights.before[nodes]
    return zeros


def check_changes(model: Model) -> None:
    """No change that shortens makes a step longer, nor shorter than what remains."""
    base = model.mean(model.run(model.base).wall)
    assert base == pytest.approx(model.mean(model.wall), abs=1)
    for name, weights, moved in changed_runs(model):
        replayed = model.run(weights)
        wall = model.mean(replayed.wall)
        assert wall <= base, name
        assert (replayed.wall >= 0).all(), name
        # Shares of durations are rounded to ns.
        assert wall >= remaining_busy_ns(model, weights, moved) - len(model.profile), name


def check_table(profile: fastprof.Profile) -> None:
    """No part saves more than it takes; parts of the path add up; less has a reason."""
    table = profile.whatif()
    step = sum(step["wall_ns"] * step["is_counted"] for step in table.facts["steps"])
    step /= sum(step["is_counted"] for step in table.facts["steps"])
    rows = list(table.rows())
    slack = 1 + len(profile)  # durations are rounded to ns
    on_path = sum(row["path_ns"] for row in rows if row["key"] == "resource")
    assert on_path == pytest.approx(step, abs=len(rows))
    assert sum(table.facts["resources"].values()) == pytest.approx(step, abs=len(rows))
    on_path = table.facts["critical_path"]
    assert sum(each["ns"] for each in on_path) == pytest.approx(step, abs=len(on_path))
    for row in rows:
        for percent in (10, 50, 100):
            saved = row[f"saved_{percent}_ns"]
            for most in (row["path_ns"], row["gpu_ns"], step):
                if saved is not None and most is not None:
                    assert -1 <= saved <= most * percent / 100 + slack, row
        if row["saved_100_ns"] is not None and row["path_ns"] is not None:
            assert row["then"] or row["saved_100_ns"] >= 0.97 * row["path_ns"] - 1, row
            assert row["then_ns"] is None or row["then_ns"] <= step, row
    for key in KEYS:
        for change in ({}, {"no_sync": True}, {"scale": "host:0.5"}):
            table = profile.whatif(by=key, **change)
            expected = table.facts["changes"][-1]["wall_ns"] if change else step
            assert table["path_ns"].sum() == pytest.approx(expected, abs=table.n_rows), key
