"""OpenMetrics, read back with the parser of prometheus_client."""

from pathlib import Path

import pytest

import fastprof
from fastprof.errors import ReportError, StepsError
from support.hypothesis_profiles import some
from support.kineto_files import KinetoFile
from support.real_data import real, traces
from support.training_files import Work, call, kineto

parser = pytest.importorskip("prometheus_client.openmetrics.parser")
CALLS = [call("net:in", "mm", 50_000), call("net:out", "relu", 20_000), call(None, "add_", 9_000)]
UNITS = {"seconds", "bytes", "ratio", ""}


def families(path: Path, target: Path, **options: str) -> dict[str, object]:
    """The metrics of a capture, by name without the prefix."""
    fastprof.open(path, copies=True).export(target, to="openmetrics", **options)
    text = target.read_text("utf-8")
    assert text.endswith("# EOF\n")
    text_string_to_metric_families = list(parser.text_string_to_metric_families(text))
    assert all(
        text_string_to_metric_family.name.startswith("fastprof_")
        for text_string_to_metric_family in text_string_to_metric_families
    )
    return {
        text_string_to_metric_family.name.removeprefix("fastprof_"): text_string_to_metric_family
        for text_string_to_metric_family in text_string_to_metric_families
    }


def by_label(family, label: str) -> dict[str, float]:
    return {sample.labels[label]: sample.value for sample in family.samples}


def value(family) -> float:
    (sample,) = family.samples
    return sample.value


def test_the_figures_are_those_of_the_step(tmp_path):
    path = kineto(tmp_path / "net.json", [CALLS] * 4)
    result = families(path, tmp_path / "net.prom")
    (info,) = result["capture"].samples
    assert result["capture"].type == "info"
    assert info.labels["file"] == str(path) and info.labels["version"] == fastprof.__version__
    assert value(result["steps"]) == 3
    assert value(result["step_busy_seconds"]) == pytest.approx(79e-6)
    busy, idle = (value(result[f"step_{name}_seconds"]) for name in ("busy", "idle"))
    assert value(result["step_seconds"]) == pytest.approx(busy + idle)
    causes = by_label(result["step_idle_cause_seconds"], "cause")
    assert sum(causes.values()) == pytest.approx(idle)
    operators = by_label(result["step_operator_seconds"], "operator")
    assert operators == pytest.approx({"mm": 50e-6, "relu": 20e-6, "add_": 9e-6})
    layers = by_label(result["step_layer_seconds"], "layer")
    assert layers == pytest.approx({"net:in": 50e-6, "net:out": 20e-6, "other": 9e-6})
    assert "mfu_ratio" not in result and "memory_peak_bytes" not in result


def test_the_number_of_series_is_bounded(tmp_path):
    calls = [call(f"net:l{'x' * i}", f"op{'x' * i}", 1_000 + i) for i in range(300)]
    result = families(kineto(tmp_path / "net.json", [calls] * 3), tmp_path / "net.prom")
    for what in ("operator", "layer"):
        times = by_label(result[f"step_{what}_seconds"], what)
        assert len(times) == 21
        assert sum(times.values()) == pytest.approx(value(result["step_busy_seconds"]))


def test_an_operator_may_be_named_as_the_others(tmp_path):
    calls: list[Work] = [call("other", "other", 5_000), *CALLS]
    result = families(kineto(tmp_path / "net.json", [calls] * 3), tmp_path / "net.prom")
    layers = by_label(result["step_layer_seconds"], "layer")
    assert layers["other"] == pytest.approx(14e-6)


@pytest.mark.parametrize(
    "name", ['a"b', "a\\", 'a\\"', "a\nb", '"} 5\n# EOF', "\u2028\u202e", "{a=1}", "mm # {x}"]
)
def test_names_stay_within_their_labels(tmp_path, name):
    path = kineto(tmp_path / "net.json", [[call("net", name, 5_000)]] * 3)
    result = families(path, tmp_path / "net.prom")
    (operator,) = by_label(result["step_operator_seconds"], "operator")
    assert operator == "".join(c if c.isprintable() else " " for c in name)


@pytest.mark.parametrize("trace", some(traces("nsys/*.sqlite", "kineto/*.json.gz"), 8))
def test_real_captures_follow_the_rules_of_the_format(trace, tmp_path):
    try:
        result = families(real(trace), tmp_path / "net.prom")
    except ReportError as error:
        assert "\n" not in str(error)
        return
    assert {"capture", "step_seconds"} <= result.keys()
    for name, family in result.items():
        assert family.unit in UNITS and name.endswith(family.unit)
        assert all(sample.value >= 0 for sample in family.samples)


def test_steps_can_be_chosen_and_other_captures_are_errors(tmp_path):
    path = kineto(tmp_path / "net.json", [CALLS] * 4)
    assert "steps" not in families(path, tmp_path / "net.prom", steps="none")
    with pytest.raises(StepsError):
        families(path, tmp_path / "net.prom", steps="range:nothing")
    KinetoFile().op(0, 10, "aten::mm").write(tmp_path / "host.json")
    assert families(tmp_path / "host.json", tmp_path / "net.prom").keys() == {"capture"}
