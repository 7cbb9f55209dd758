"""The figures of a capture in the text format of OpenMetrics, for Prometheus and what reads it.

The format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, Final

from fastprof._system.classes import NamedTuple
from fastprof._version import __version__
from fastprof.analysis.diff.figures import PARTS, figures_of
from fastprof.analysis.diff.measure import side_of
from fastprof.analysis.diff.profile_figures import mfu_and_memory
from fastprof.analysis.diff.side import Side
from fastprof.analysis.idle.causes import CAUSES
from fastprof.model.heading import printable
from fastprof.profile.data import ProfileData

_MOST: Final = 20  # operators, layers: each is a series of its own
_OTHER: Final = "other"
_S: Final = 1e-9  # seconds of a ns


class _Metric(NamedTuple):
    """A family of metrics: a gauge, or with the unit `info` facts in labels.

    Parameters
    ----------
    name : without the prefix; ends with the unit, if it has one
    about : one line of help
    unit : seconds, bytes, ratio or ""
    samples : value by the labels (name, text) of each
    """

    name: str
    about: str
    unit: str
    samples: Mapping[tuple[tuple[str, str], ...], float | None]


def write(profile: ProfileData, file: BinaryIO, steps: str | None = None) -> None:
    """Write the figures of a mean step: its times, MFU, memory, operators, layers, causes of idle.

    Times are seconds of a step and GPU. Unknown values are absent. At most `_MOST` operators and
    layers have a series; the time of the others is that of `other`.

    Parameters
    ----------
    profile : the profile
    file : binary file
    steps : what a step is, see `Profile.find_steps`

    Raises
    ------
    ReportError
        The capture has no times, or no steps with GPU work.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    """
    metrics: Iterable[_Metric] = [_capture({"file": profile.name})]  # of one without GPU work
    if len(profile):
        of_file = mfu_and_memory(profile, steps)
        metrics = _metrics(side_of(profile, steps), of_file)
    lines = [line for metric in metrics for line in _lines(metric)]
    file.write("".join(f"{line}\n" for line in (*lines, "# EOF")).encode("utf-8", "replace"))


def _metrics(side: Side, of_file: tuple[float | None, float | None]) -> Iterator[_Metric]:
    figures = figures_of(side, [of_file])
    yield _capture({"file": side.names[0], "gpu": side.gpus, "steps": side.steps})
    yield _plain("steps", "Measured steps.", "", figures.steps)
    times = {
        "step_seconds": ("Mean length of a step; of the capture, if it has none.", figures.step_ns),
        "step_busy_seconds": ("Part of a step in which the GPU works.", figures.busy_ns),
        "step_idle_seconds": ("Part of a step without GPU work.", figures.idle_ns),
        "step_exposed_communication_seconds": (
            "Part of a step with communication and without compute.",
            _mean(side, "exposed_communication_ns"),
        ),
    }
    for name, (text, ns) in times.items():
        yield _plain(name, text, "seconds", None if ns is None else ns * _S)
    yield _plain("mfu_ratio", "Model FLOPs utilisation.", "ratio", figures.mfu)
    yield _plain("memory_peak_bytes", "Most memory of a GPU.", "bytes", figures.peak_bytes)
    idle = side.idle.sum(axis=0) / side.n_windows
    yield _Metric(
        "step_idle_cause_seconds",
        "Idle time of a step by cause.",
        "seconds",
        {(("cause", name),): ns * _S for name, ns in zip(CAUSES, idle.tolist(), strict=True) if ns},
    )
    for key, what in zip(PARTS, ("operator", "layer"), strict=True):
        yield _Metric(
            f"step_{what}_seconds",
            f"Busy time of a step by {what}, of the {_MOST} with the most.",
            "seconds",
            {((what, name),): ns * _S for name, ns in _parts(side, figures.parts[key]).items()},
        )


def _capture(facts: Mapping[str, str]) -> _Metric:
    labels = {**facts, "version": __version__}
    known = tuple((name, text) for name, text in labels.items() if text)
    return _Metric("capture", "The capture that all other figures are of.", "info", {known: 1})


def _parts(side: Side, times: Mapping[str, float]) -> dict[str, float]:
    """ns of a step by name: the largest, and the rest as `other`."""
    result = dict(list(times.items())[:_MOST])
    rest = float(side.own.sum()) / side.n_windows - sum(result.values())
    if rest > 0.5:
        result[_OTHER] = result.get(_OTHER, 0.0) + rest
    return result


def _plain(name: str, about: str, unit: str, value: float | None) -> _Metric:
    return _Metric(name, about, unit, {(): value})


def _mean(side: Side, name: str) -> float | None:
    values = side.windows[name]
    return float(values.mean()) if (values >= 0).all() else None


def _lines(metric: _Metric) -> Iterator[str]:
    known = {labels: value for labels, value in metric.samples.items() if value is not None}
    if not known:
        return
    name, is_info = f"fastprof_{metric.name}", metric.unit == "info"
    yield f"# TYPE {name} {'info' if is_info else 'gauge'}"
    if metric.unit and not is_info:
        yield f"# UNIT {name} {metric.unit}"
    yield f"# HELP {name} {metric.about}"
    for labels, value in known.items():
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        sample = f"{name}_info" if is_info else name
        yield f"{sample}{{{inner}}} {value!r}" if inner else f"{sample} {value!r}"


def _escaped(text: str) -> str:
    """The value of a label: names are from files of others."""
    return printable(text).replace("\\", r"\\").replace('"', r"\"")
