"""Terms that reports print, explained."""

import re
from pathlib import Path

import pytest

from fastprof.analysis.advice.registry import all_rules
from fastprof.analysis.glossary import TERMS, causes, explain, glossary_page
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.key_names import KEY_NAMES
from fastprof.analysis.reports import all_reports
from support.commands import run

PAGE = Path(__file__).parents[3] / "docs" / "glossary.md"


def test_the_page_is_that_of_the_terms() -> None:
    assert PAGE.read_text(encoding="utf-8") == glossary_page(), "run: python docs/make_glossary.py"


def test_every_word_that_a_report_prints_is_explained() -> None:
    headers = {h.header for r in all_reports().values() for h in r.columns if h.in_text and h.about}
    for word in (*TERMS, *causes(), *all_rules(), *KEY_NAMES, *headers):
        assert all(len(entry.text) > 2 for entry in explain(word)), word


def test_all_causes_are_explained_but_the_row_of_short_gaps() -> None:
    assert set(causes()) == set(CAUSES) - {"short gaps"}
    assert all(re.match("(Before|From) the launch of the next work", t) for t in causes().values())
    assert causes()["sync"].endswith("until the thread can launch again")


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["roof"], "roof: Ideal time by GPU time"),
        (["ROOF"], "roof: Ideal time"),
        (["launch", "latency"], "launch latency, a cause of idle time: From the launch"),
        (["far-from-roof"], "far-from-roof, a finding of fastprof advise: "),
        (["stream"], "stream: A queue of GPU work"),
        (["gpu(ms)"], "gpu_ns, a column of "),
    ],
)
def test_a_word_has_one_paragraph_for_each_meaning(words: list[str], start: str) -> None:
    text = run("explain", *words).stdout.decode()
    assert text.startswith(start)
    assert max(map(len, text.splitlines())) <= 100


def test_an_unknown_word_gets_the_nearest() -> None:
    done = run("explain", "rooof")
    assert done.returncode == 2 and b"unknown term 'rooof'; did you mean roof" in done.stderr
    assert {"roof", "bprop", "launch latency"} <= set(
        re.split(", |,?\n", run("explain").stdout.decode())
    )
