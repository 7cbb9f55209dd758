"""`fastprof diff`: exit codes, output formats, runs, ranks and baselines."""

import json
import random
from pathlib import Path

import pytest

from support import commands
from support.kineto_files import KinetoFile
from support.training_files import Work, call, kineto


def steps(ns: int, seed: int = 0, n: int = 8) -> list[list[Work]]:
    """Steps of about 3 ns, within 1 %."""
    noise = random.Random(seed)
    return [
        [call("net:in", "mm", int(2 * ns * noise.uniform(0.99, 1.01))), call(None, "add_", ns)]
        for _ in range(n)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    kineto(folder / "a.json", steps(100_000, 1))
    kineto(folder / "slow.json", steps(110_000, 2))
    kineto(folder / "fast.json", steps(80_000, 3))
    KinetoFile().op(0, 10, "aten::mm").write(folder / "host.json")
    kineto(folder / "short.json", steps(200_000, 4, n=2))
    for run, ns in (("ranks", 100_000), ("ranks2", 110_000)):
        (folder / run).mkdir()
        for rank in range(2):
            kineto(folder / run / f"rank{rank}.json", steps(ns + 5_000 * rank, rank))
    return folder


def ran(folder: Path, *words: str) -> tuple[int, str, str]:
    done = commands.run("diff", *words, cwd=folder)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    "after, limit, code",
    [("slow.json", "3", 4), ("slow.json", "3%", 4), ("slow.json", "15", 0), ("fast.json", "0", 0),
     ("a.json", "0", 0), ("short.json", "3", 0)],
)  # fmt: skip
def test_the_exit_code_is_4_if_slower_beyond_noise(folder, after, limit, code):
    assert ran(folder, "a.json", after, "--fail-above", limit)[0] == code
    assert ran(folder, "a.json", after)[0] == 0


def test_too_few_steps_are_not_judged(folder):
    code, text, error = ran(folder, "a.json", "short.json", "--fail-above", "3")
    why = "noise is unknown: expected 3 or more steps of each, found 7 before and 1 after"
    assert (code, error) == (0, f"fastprof: --fail-above: not judged: {why}\n")
    assert f": not judged; {why}\n" in text


def test_the_answer_is_the_first_line(folder):
    first = ran(folder, "a.json", "slow.json")[1].splitlines()[0]
    assert first.startswith("step ")
    assert "95% interval" in first and ": slower; medians " in first


def test_times_have_large_units_even_if_nothing_changes(folder):
    text = ran(folder, "a.json", "a.json")[1]
    assert "  before(us)  after(us)  " in text


def test_json_is_one_object(folder):
    result = json.loads(ran(folder, "a.json", "slow.json", "--json")[1])
    wall = result["wall"]
    assert wall["verdict"] == "slower" and result["same_work"] is True
    assert wall["low"] < wall["change"] < wall["high"]
    changes = sum(row["delta_ns"] for row in result["rows"])
    assert changes == wall["after_ns"] - wall["before_ns"] > 0
    assert {"before_ns", "after_ns", "delta_ns", "why"} <= result["rows"][0].keys()
    assert (result["before"], result["after"]) == (["a.json"], ["slow.json"])


def test_markdown_begins_with_the_answer_in_bold(folder):
    lines = ran(folder, "a.json", "slow.json", "--markdown", "--by", "op")[1].splitlines()
    assert lines[0].startswith("**step ") and lines[0].endswith("**")
    assert any(line.startswith("| compute | mm | ") for line in lines)


def test_output_goes_to_a_file(folder, tmp_path):
    out = tmp_path / "out.csv"
    assert ran(folder, "a.json", "fast.json", "--csv", "-o", str(out)) == (0, "", "")
    assert out.read_text().startswith('"part","dir","layer","op",')


def test_directories_are_the_ranks_of_a_run(folder):
    code, text, _ = ran(folder, "ranks", "ranks2", "--fail-above", "3", "--json")
    result = json.loads(text)
    assert code == 4
    assert [Path(each).name for each in result["before"]] == ["rank0.json", "rank1.json"]
    text = ran(folder, "ranks", "ranks2")[1]
    assert "slowest GPU" in text


def test_runs_widen_the_interval(folder):
    """Two runs each have one degree of freedom or two, however many steps they have."""
    one = json.loads(ran(folder, "a.json", "slow.json", "--json")[1])["wall"]
    runs = ran(folder, "a.json", "slow.json", "--runs", "fast.json,slow.json", "--json")[1]
    two = json.loads(runs)["wall"]
    assert two["verdict"] == "same"
    assert (one["samples"], two["samples"]) == ("7 and 7 steps", "2 and 2 runs")
    assert two["low"] < one["low"]


def test_a_baseline_replaces_the_capture_before(folder, tmp_path):
    store = str(tmp_path / "store")
    code, text, error = ran(folder, "--baseline", store, "--save", "a.json")
    assert (code, text) == (0, "") and error.startswith("fastprof: stored a.json in ")
    assert ran(folder, "--baseline", store, "slow.json", "--fail-above", "3")[0] == 4
    plain = ran(folder, "a.json", "slow.json", "--json")[1]
    assert ran(folder, "--baseline", store, "slow.json", "--json")[1] == plain


def test_an_older_capture_of_a_store_is_chosen_by_number_or_tag(folder, tmp_path):
    store = str(tmp_path / "perf.sqlite")
    for name in ("slow", "a"):
        ran(folder, "--baseline", store, "--save", f"{name}.json", "--tag", f"commit={name}")
    assert ran(folder, "--baseline", store, "slow.json", "--fail-above", "3")[0] == 4
    for which in ("1", "commit=slow"):
        words = ("--baseline", store, "--against", which, "slow.json", "--fail-above", "3")
        assert ran(folder, *words)[0] == 0
    code, _, error = ran(folder, "--baseline", store, "--against", "commit=x", "slow.json")
    assert (code, error.count("\n")) == (1, 1) and "contains no capture commit=x" in error


@pytest.mark.parametrize(
    "words, message",
    [
        (("a.json",), "expected BEFORE and AFTER, found a.json"),
        (("a.json", "slow.json", "fast.json"), "expected BEFORE and AFTER, found a.json slow"),
        (("--baseline", "x", "a.json", "slow.json"), "expected AFTER with --baseline, found"),
        (("a.json", "--save"), "--save adds the capture to the store of --baseline STORE"),
        (("a.json", "slow.json", "--tag", "a=b"), "--tag needs --save, which adds the capture"),
        (("--baseline", "x", "--save", "a.json", "--tag", "ab"), "expected KEY=VALUE such as"),
        (("a.json", "slow.json", "--against", "1"), "--against needs --baseline STORE, without"),
        (("a.json", "slow.json", "--fail-above", "-1"), "expected a percentage such as 3"),
        (("a.json", "slow.json", "--threshold", "x"), "expected a percentage such as 3"),
        (("a.json", "slow.json", "--by", "opp"), "unknown key 'opp'; did you mean op?"),
        (("a.json", "slow.json", "--by", "op,op"), "expected keys to group by, each once"),
        (("a.json", "slow.json", "--runs", "fast.json"), "expected BEFORE,AFTER, found"),
        (("a.json", "slow.json", "--where", "opp=x"), "unknown key 'opp'; did you mean op?"),
        (("a.json", "slow.json", "--columns", "nope"), "unknown column 'nope'"),
    ],
)
def test_wrong_words_are_usage_errors(folder, words, message):
    code, _, error = ran(folder, *words)
    assert code == 2
    assert message in error


@pytest.mark.parametrize(
    "words, message",
    [
        (("a.json", "none.json"), "none.json"),
        (("a.json", "host.json"), "host.json: no kernels"),
        (("--baseline", "ranks", "a.json"), "contains no baseline; store one with"),
        (("a.json", "slow.json", "--steps", "range:nothing"), "nothing"),
    ],
)
def test_bad_input_is_one_line(folder, words, message):
    code, text, error = ran(folder, *words)
    assert (code, text) == (1, "")
    assert error.count("\n") == 1 and message in error
