"""`fastprof history`: formats, selections, errors."""

import json
import random
from pathlib import Path

import pytest

from fastprof.analysis.diff import store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.store import Baseline
from support.every_command import Done, run_here
from support.training_files import call, kineto

HOSTILE = "</script><script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    noise = random.Random(1)
    for i in range(16):
        ns = int((50_000 if i < 9 else 60_000) * noise.uniform(0.99, 1.01))
        (side,) = sides_of([kineto(folder / "net.json", [[call("net", HOSTILE, ns)]] * 4)])
        store.save(Baseline(side), folder / "perf.sqlite", {"commit": f"c{i}", "x": HOSTILE})
    return folder / "perf.sqlite"


def ran(kept: Path, *words: str | Path) -> Done:
    return run_here("history", kept, *words)


def test_text_has_the_changes_above_the_table(kept):
    done = ran(kept, "-w", "120", "--limit", "3")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("16 captures, saved from ")
    assert lines[1].startswith("from capture 10 (commit=c9") and "step " in lines[1]
    assert any(line.startswith("... 13 more rows") for line in lines)
    assert all(text not in done.out for text in ("\x1b", "\u202e"))


@pytest.mark.parametrize("words", [["--csv"], ["--json"], ["--markdown"], ["--figure", "ops"],
                                   ["--sort", "step"], ["-c", "capture,tags,step"],
                                   ["--explain", "10"], ["--explain", "10", "--json"]])  # fmt: skip
def test_every_format_is_written(kept, words, tmp_path):
    done = ran(kept, *words, "-o", tmp_path / "out")
    assert (done.code, done.out, done.err) == (0, "", "")
    text = (tmp_path / "out").read_text()
    assert text
    if "--json" in words:
        assert json.loads(text)["rows"]


def test_the_page_has_a_chart_for_each_figure_and_no_markup_of_others(kept, tmp_path):
    done = ran(kept, "--html", tmp_path / "history.html")
    assert done.code == 0 and "wrote " in done.err
    html = (tmp_path / "history.html").read_text()
    assert html.count('data-script="series"') == 5  # step, busy, idle, the operator, the layer
    assert "<script>alert(1)" not in html
    assert "default-src &#x27;none&#x27;" in html or "default-src 'none'" in html
    assert len(html) < 300_000
    done = ran(kept, "--explain", "10", "--html", tmp_path / "diff.html")
    assert done.code == 0 and "What made the change" in (tmp_path / "diff.html").read_text()


@pytest.mark.parametrize(
    "words, message",
    [
        (["--figure", "stepp"], "unknown figure 'stepp'; did you mean step?"),
        (["--since", "x"], "expected a date such as 2026-03-01 or a tag KEY=VALUE, found 'x'"),
        (["--since", "a=b"], "no capture has the tag 'a=b'"),
        (["--tag", "a"], "expected KEY=VALUE such as commit=4f2a, found 'a'"),
        (["-c", "nope"], "unknown column 'nope'"),
        (["--explain", "1"], "expected a capture with one before it, such as 16"),
        (["--threshold", "x"], "expected a percentage such as 3"),
    ],
)
def test_wrong_words_are_usage_errors(kept, words, message):
    done = ran(kept, *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_missing_store_is_one_line(tmp_path):
    for path in (tmp_path, tmp_path / "none.sqlite"):
        done = run_here("history", path)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert "contains no baseline" in done.err


def test_the_store_is_never_written_over(kept):
    before = kept.read_bytes()
    for words in (["-o", kept], ["--html", kept]):
        done = ran(kept, *words)
        assert done.code == 1 and "is an input" in done.err
    assert kept.read_bytes() == before


def test_nothing_fits(kept):
    done = ran(kept, "--tag", "commit=none")
    assert done.code == 0 and "no capture fits" in done.out
