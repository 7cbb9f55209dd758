"""Which steps of real traces count, where the first begins, and what slow ones wait for."""

import pytest

from real.open_traces import events, profile

MS = 1e6
LOADER = "kineto/resnet_intermittent_loader.json.gz"
REPLAYS = "kineto/graph_replay_2024.json.gz"
TOY = "kineto/toy_mi250.json.gz"


def test_slow_steps_count_and_their_cause_is_the_answer() -> None:
    """14 of 29 steps wait for the loader, up to 748 ms: these are no outliers."""
    trace = profile(LOADER, copies=True)
    steps, overview = trace.steps(), trace.overview()
    flags = steps["flag"].tolist()
    assert flags[0] == "warm-up"
    assert flags.count("slow") == 14
    assert "outlier" not in flags
    (slow,) = steps.facts["outliers"]
    assert max(slow["causes"], key=slow["causes"].get) == "data loading"
    assert "slow: 14 of 29 steps" in steps.text(width=400)
    causes = {row["cause"]: row["ns"] for row in overview["idle"].rows()}
    assert max(causes, key=causes.get) == "data loading"
    assert sum(causes.values()) == pytest.approx(overview.facts["step_idle_ns"], abs=len(causes))
    assert overview.facts["step_ns"] == pytest.approx(333.6 * MS, abs=0.1 * MS)
    loads = [e["dur"] for e in events(LOADER) if "DataLoader" in e["name"] and e.get("ph") == "X"]
    assert sum(sorted(map(float, loads))[:-1]) / 1e6 > 6  # seconds, without the first
    findings = overview["findings"]
    assert findings["id"].tolist()[0] == "data-loading"


def test_the_first_step_starts_where_the_work_before_it_ends() -> None:
    """Work of an earlier replay ends at 154.359 ms, the first step at 370.645 ms."""
    gpu = [e for e in events(REPLAYS) if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    origin = min(e["ts"] for e in gpu)
    trace = profile(REPLAYS, copies=True)
    steps = trace.find_steps()
    first = (float(steps.gpu_end[0] - steps.length[0]) / 1e3 - float(origin)) / 1e3
    assert first == pytest.approx(154.359, abs=0.002)
    rows = list(trace.steps().rows())
    assert rows[0]["wall_ns"] == pytest.approx(216.286 * MS, abs=0.002 * MS)
    assert {row["flag"] for row in rows} == {""}
    others = [row["wall_ns"] / MS for row in rows[1:]]
    assert min(others) > 212
    assert max(others) < 217


def test_a_step_without_work_is_no_step_and_of_two_none_is_an_outlier() -> None:
    table = profile(TOY, copies=True).steps()
    assert table["flag"].tolist() == ["", "no GPU work"]
    assert table["is_counted"].tolist() == [1, 0]
    facts = profile(TOY, copies=True).overview().facts
    assert facts["step_ns"] == pytest.approx(9.18 * MS, abs=0.01 * MS)
    assert facts["step_kernels"] == 16
