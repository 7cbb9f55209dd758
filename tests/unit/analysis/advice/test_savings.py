"""The plan of `advise`: each saving is replayed after those above it; the sentence made of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import fastprof
from fastprof.analysis.advice import registry
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.savings import _shared, base_of, planned
from support.commands import run
from support.kineto_files import KinetoFile
from support.plans import saved_together

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the rules that a test registers, and those on idle time."""
    own = {
        name: rule
        for name, rule in registry.all_rules().items()
        if rule.function.__module__.endswith("idle")
    }
    monkeypatch.setattr(registry, "_rules", own)


class Loop(KinetoFile):
    """Steps of a host that loads, launches two kernels and waits; times in us.

    On the GPU, `first` and `second` run on streams of their own.
    """

    def __init__(
        self, n: int = 8, load: int = 0, host: int = 0, first: int = 300, second: int = 300
    ) -> None:
        super().__init__()
        at = free = corr = 0
        for step in range(n):
            begin = at
            self.annotation(at * US, (at + load) * US, LOADER) if load else None
            at += load + host
            ends = [free]
            for stream, (name, length) in enumerate((("first", first), ("second", second)), 7):
                corr += 1
                self.launch(at * US, (at + 5) * US, corr)
                start = max(at + 8, free)
                self.kernel(start * US, (start + length) * US, corr, name, stream=stream)
                ends.append(start + length)
                at += 6
            corr += 1
            self.launch(at * US, (max(ends) + 3) * US, corr, name="cudaDeviceSynchronize")
            free, at = max(ends), max(ends) + 5
            self.annotation(begin * US, (at - 1) * US, f"ProfilerStep#{step}")


def faster(name: str, share: float, **fields: Any) -> None:
    """A rule: kernels of a name take a share of their time less."""

    @fastprof.rule(name, least=0.01)
    def rule(facts: Facts) -> Iterator[fastprof.Finding]:
        """Some kernels could be faster."""
        rows = facts.kernels(kernel=name)
        sums = facts.profile.kernels["sil"][rows].sum() / max(facts.n_steps, 1)
        saved = share * max(facts.own_ns(rows), 0.0) or share * sums
        yield fastprof.Finding(f"{name} is slow.", "do", kernels=rows, gpu_ns=saved, **fields)


def test_savings_add_up_to_a_replay_of_all_changes(opened):
    profile = opened(Loop(load=400, host=200))
    table = profile.advise()
    rows = [row for row in table.rows() if row["saving_ns"]]
    assert len(rows) >= 3
    assert (
        sum(row["saving_ns"] for row in rows) == table.total["saving_ns"] <= table.facts["step_ns"]
    )
    total, together = saved_together(Facts(profile))
    assert total == pytest.approx(together, abs=len(rows))
    assert table.total["saving_ns"] == pytest.approx(together, abs=len(rows))
    assert rows[0]["saving_ns"] == max(row["alone_ns"] for row in rows)
    assert rows[0]["id"] == "data-loading"


def test_a_finding_that_a_larger_one_makes_worthless_is_left_out(opened):
    faster("first", 1.0)

    @fastprof.rule("same", least=0.01)
    def same(facts: Facts) -> Iterator[fastprof.Finding]:
        rows = facts.kernels(kernel="first")
        yield fastprof.Finding("Again.", "do", kernels=rows, gpu_ns=facts.own_ns(rows) / 2)

    ids = opened(Loop(first=600, second=1)).advise()["id"].tolist()
    assert "first" in ids
    assert "same" not in ids


def test_changes_that_need_each_other_are_both_in_the_plan(opened):
    facts = Facts(opened(Loop()))
    base = base_of(facts)
    assert base is not None
    findings = []
    for name in ("first", "second"):
        rows = facts.kernels(kernel=name)
        findings.append(fastprof.Finding(name, "do", kernels=rows, gpu_ns=0.9 * facts.own_ns(rows)))
    # Two streams of about equal length: one alone saves little, both save 90 %.
    result = planned(facts, base, findings, [30 * US] * 2)
    assert [each.together for each in result] == [(0, 1), (0, 1)]
    assert result[0].ns == result[1].ns
    assert max(each.alone for each in result) < 30 * US
    assert sum(each.ns for each in result) == pytest.approx(0.9 * 300 * US, rel=0.1)
    assert planned(facts, base, findings[:1], [30 * US]) == []


def test_a_change_that_pays_after_another_shares_with_it(opened):
    faster("first", 0.9)
    faster("second", 0.9, cause="second takes {time}.", effect="It would save {saving}.")
    profile = opened(Loop(first=350, second=400))
    table = profile.advise()
    rows = [row for row in table.rows() if row["saving_ns"]]
    assert [row["together"] for row in rows[:2]] == ["1,2", "1,2"]
    assert abs(rows[0]["saving_ns"] - rows[1]["saving_ns"]) <= 1
    together = rows[0]["saving_ns"] + rows[1]["saving_ns"]
    assert together == pytest.approx(0.9 * 400 * US, rel=0.1)
    # The longer one by itself waits for the other.
    assert rows[0]["alone_ns"] == pytest.approx(60 * US, rel=0.2)
    assert table.facts["answer"].endswith("; with the next finding, 360 us.")
    assert "- together: 1 and 2 need each other and save 36" in "\n".join(table.lead)
    assert "; 1, 2 only together" in profile.overview().text()


def test_shares_are_in_order_and_add_up():
    for saved, groups in (
        ([5.0, 4.0, 1.0], [0, 1, 2]),
        ([1.0, 2.0, 9.0], [0, 0, 0]),
        ([9.0, 1.0, 4.0, 2.0], [0, 1, 1, 2]),
        ([4.0, 1.0, 6.0], [0, 1, 1]),
        ([3.0, 1.0, 6.0], [0, 0, 0]),
        ([2.0, 2.0], [0, 1]),
        ([], []),
    ):
        shares = _shared(saved)
        ns = [each for each, _ in shares]
        assert ns == sorted(ns, reverse=True)
        assert sum(ns) == pytest.approx(sum(saved))
        places = [together[0] if together else i for i, (_, together) in enumerate(shares)]
        assert [sorted({*places}).index(place) for place in places] == groups


def test_launches_on_time_stay_so_with_faster_kernels(opened):
    """Without Python between launches, the host is no limit for kernels half as long."""
    faster("first", 0.5)
    registry._rules.pop("sync", None)
    profile = opened(Loop(host=600, first=600, second=1))
    result = {row["id"]: row["saving_ns"] for row in profile.advise().rows()}
    assert next(iter(result)) == "host-bound"
    assert result["first"] == pytest.approx(300 * US, rel=0.1)


def test_confidence_does_not_reorder(opened):
    orders = []
    for doubts in (("low", "high"), ("high", "low")):
        faster("first", 0.9, confidence=doubts[0])
        faster("second", 0.5, confidence=doubts[1])
        orders.append(opened(Loop(first=900, second=300)).advise()["id"].tolist())
    assert orders[0] == orders[1]


def test_terminal_json_page_and_overview_have_one_order(tmp_path):
    path = Loop(load=400, host=200).write(tmp_path / "net.json")
    values = json.loads(run("advise", path, "--json").stdout)
    ids = [row["id"] for row in values["rows"]]
    overview = json.loads(run(path, "--json").stdout)
    assert [row["id"] for row in overview["tables"]["findings"]["rows"]] == ids
    text = run("advise", path).stdout.decode()
    places = [text.index(f"{number}. {name}") for number, name in enumerate(ids, 1)]
    assert places == sorted(places)
    assert values["answer"] == overview["answer"]
    for words in (["advise", path], [path]):
        shown = " ".join(run(*words).stdout.decode().split())
        assert shown.startswith(values["answer"])


def test_the_loader_in_a_sentence(opened):
    table = opened(Loop(load=4000, first=5000)).advise()
    answer = table.facts["answer"]
    assert answer.startswith("The GPU waits 4.0")
    assert " a step for the data loader. Workers would save about 4.0" in answer
    assert table.lead[0] == answer


def test_a_sentence_of_any_rule(opened):
    faster("first", 0.9)
    answer = opened(Loop(first=900, second=1)).advise().facts["answer"]
    assert answer.startswith("first is slow: ")
    assert " a step. Without this, a step would take about " in answer
    assert answer.endswith(" less.")


def test_names_in_a_sentence_are_no_templates(opened):
    faster("first", 0.9, cause="{0} {name} for {time}.", effect="{x} saves {saving}.")
    answer = opened(Loop(first=900, second=1)).advise().facts["answer"]
    assert answer.startswith("{0} {name} for ")
    assert "{x} saves about " in answer


def test_without_a_saving_the_sentence_says_what_is_not_known(opened):
    answer = opened(Loop(first=90_000, second=1)).advise().facts["answer"]
    assert answer.startswith("The GPU is busy 100 % of the step. Whether its kernels could be")
    assert "no operators in the file" in answer
