"""`diff` ends with what the plan of BEFORE predicted, beside what was measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import fastprof
from fastprof.analysis.diff import store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.plan import PlanData
from fastprof.analysis.diff.predictions import predictions
from fastprof.analysis.diff.store import Baseline
from fastprof.cli import main
from support.kineto_files import KinetoFile

STEP, LOADER, KERNEL = 1_000_000, 600_000, 250_000
LOADS = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def run(path: Path, loader: int, kernel: int = KERNEL, calls: int = 1, gpu: str = "") -> Path:
    """Six steps: the loader, then calls; the host goes on when the kernel of each ends."""
    gpus = {"deviceProperties": [{"id": 0, "name": gpu, "numSms": 108}]} if gpu else {}
    trace, correlation, time = KinetoFile(**gpus), 0, 10_000
    for number in range(6):
        begin = time
        trace.op(time, time + max(loader, 1_000), LOADS)
        time += max(loader, 1_000)
        for _ in range(calls):
            correlation += 1
            trace.op(
                time + 500, time + 9_000, "aten::mm", dims=[[8, 8], [8, 8]], types=["float"] * 2
            )
            trace.launch(time + 1_000, time + 6_000, correlation)
            trace.kernel(time + 8_000, time + 8_000 + kernel, correlation, "gemm", stream=7)
            time += 10_000 + kernel
        trace.annotation(begin, time, f"ProfilerStep#{number}")
        time += 1_000
    return trace.write(path)


def found(before: Path, after: Path) -> fastprof.Diff:
    return fastprof.diff(before, after)


def test_what_is_gone_was_predicted(tmp_path):
    before, after = run(tmp_path / "a.json", LOADER), run(tmp_path / "b.json", 0)
    facts = found(before, after).table().facts
    measured = facts["wall"]["before_ns"] - facts["wall"]["after_ns"]
    assert measured == pytest.approx(LOADER, rel=0.01)
    predicted = facts["predicted"]
    assert predicted["measured_ns"] == measured
    assert [finding["id"] for finding in predicted["findings"]] == ["data-loading"]
    assert predicted["predicted_ns"] == pytest.approx(measured, rel=0.01)
    assert predicted["findings"][0]["own_ns"] == pytest.approx(measured, rel=0.01)
    last = [line for line in found(before, after).table().notes if "data-loading" in line]
    assert last[0] == "gone: data-loading; the plan of BEFORE predicted 599 us, measured 599 us"


def test_half_of_the_wait_is_half_of_the_prediction(tmp_path):
    before, after = run(tmp_path / "a.json", LOADER), run(tmp_path / "b.json", LOADER // 3)
    (row,) = found(before, after).table().facts["predicted"]["findings"]
    assert row["gone"] == pytest.approx(2 / 3, rel=0.01)
    assert row["predicted_ns"] == pytest.approx(LOADER * 2 / 3, rel=0.01)


@pytest.mark.parametrize("loader", [LOADER, LOADER * 2 // 3, 2 * LOADER])
def test_what_remains_is_not_listed(tmp_path, loader):
    """Also if it is a third less."""
    before, after = run(tmp_path / "a.json", LOADER), run(tmp_path / "b.json", loader)
    predicted = found(before, after).table().facts["predicted"]
    assert predicted is None or not predicted["findings"]
    assert not any("predicted" in line for line in found(before, after).table().notes)


@pytest.mark.parametrize(
    "other, because",
    [
        ({"calls": 2}, "a step of AFTER makes 2 times the calls"),
        ({"gpu": "NVIDIA H100 80GB HBM3"}, "the GPUs differ"),
    ],
)
def test_other_work_is_not_compared(tmp_path, other, because):
    gpu = {"gpu": "NVIDIA A100-SXM4-40GB"} if "gpu" in other else {}
    before = run(tmp_path / "a.json", LOADER, **gpu)  # type: ignore[arg-type]  # a name
    after = run(tmp_path / "b.json", 0, **other)  # type: ignore[arg-type]  # one of both
    table = found(before, after).table()
    assert table.facts["predicted"]["because"] == because
    assert table.notes[-1] == f"the plan of BEFORE is not compared: {because}"


def test_the_plan_is_made_only_if_something_is_shorter(tmp_path):
    before, after = run(tmp_path / "a.json", LOADER), run(tmp_path / "b.json", LOADER)
    same = fastprof.diff(before, after).found
    made = []

    def plan() -> PlanData:
        made.append(1)
        raise AssertionError

    half = replace(same.before, side=replace(same.before.side, plan=plan))
    assert predictions(replace(same, before=half)) is None
    assert not made


def test_ranks_have_no_plan(tmp_path):
    before, after = run(tmp_path / "a.json", LOADER), run(tmp_path / "b.json", 0)
    predicted = fastprof.diff([before, before], [after, after]).table().facts["predicted"]
    assert predicted["because"].startswith("several traces, a selection of work")


def test_a_baseline_has_its_plan(tmp_path):
    before, after = run(tmp_path / "a.json", LOADER), run(tmp_path / "b.json", 0)
    (side,) = sides_of([before])
    store.save(Baseline(side), tmp_path / "store")
    stored = fastprof.diff(tmp_path / "store", after).table().facts["predicted"]
    assert stored == fastprof.diff(before, after).table().facts["predicted"]
    assert store.load(tmp_path / "store").side.plan().claims == side.plan().claims != ()


def test_a_store_keeps_predictions(tmp_path, capsys):
    directory = str(tmp_path / "store")
    before = run(tmp_path / "a.json", LOADER)
    afters = [run(tmp_path / f"b{i}.json", i * 10_000) for i in range(3)]
    main(["diff", "--baseline", directory, "--save", str(before)])
    for each in (afters[0], afters[0], afters[1]):
        main(["diff", "--baseline", directory, str(each)])
    text = capsys.readouterr().out
    assert text.count("1 earlier comparison with") == 1  # not of a capture with itself
    main(["diff", "--baseline", directory, str(afters[2]), "--json"])
    pairs = json.loads(capsys.readouterr().out)["earlier"]
    assert [pair["after"] for pair in pairs] == [[str(after)] for after in afters[:2]]
    for pair in pairs:
        assert pair["ids"] == ["data-loading"]
        assert pair["predicted_ns"] == pytest.approx(pair["measured_ns"], rel=0.01)


def test_the_page_shows_predictions(tmp_path):
    before, after = run(tmp_path / "a.json", LOADER), run(tmp_path / "b.json", 0)
    html = fastprof.diff(before, after).page().html
    assert "What the advice predicted" in html and "Findings of BEFORE that are gone" in html
    assert "What the advice predicted" not in fastprof.diff(after, before).page().html
