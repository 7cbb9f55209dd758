"""The action diff-gate: its script on captures, and inputs that are never part of a command."""

import json
import os
import random
import re
import shlex
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from fastprof.analysis.diff import store
from support import processes
from support.commands import forked
from support.training_files import Work, call, kineto

ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / ".github" / "actions" / "diff-gate"
HOSTILE = "x\"; touch pwned; $(touch pwned) `touch pwned` '.json"


def steps(ns: int, seed: int) -> list[list[Work]]:
    noise = random.Random(seed)
    return [[call("net:in", "mm", int(ns * noise.uniform(0.99, 1.01)))] for _ in range(8)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    for i, (name, ns) in enumerate((("a.json", 90_000), ("b.json", 90_000), ("slow.json", 99_000))):
        kineto(folder / name, steps(ns, i))
    (folder / HOSTILE).write_bytes((folder / "a.json").read_bytes())
    command = shlex.join(forked())
    (folder / "fastprof").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (folder / "fastprof").chmod(0o755)
    return folder


def gate(folder: Path, out: Path, **inputs: str) -> CompletedProcess[str]:
    """Run the script with inputs by the names of their variables, and with the files of a CI."""
    variables = {f"GATE_{name.upper()}": text for name, text in inputs.items()}
    return processes.ran(
        ["sh", ACTION / "gate.sh"],
        cwd=folder,
        env={
            **os.environ,
            "GATE_FASTPROF": "./fastprof",
            "GATE_OUT": str(out),
            "GITHUB_STEP_SUMMARY": str(out.with_suffix(".md")),
            "GITHUB_OUTPUT": str(out.with_suffix(".txt")),
            **variables,
        },
    )


def outputs(out: Path) -> dict[str, str]:
    lines = out.with_suffix(".txt").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(
    "after, code, verdict", [("b.json", 0, "same"), ("slow.json", 4, "slower")]
)
def test_two_captures(folder, tmp_path, after, code, verdict):
    out = tmp_path / "out"
    done = gate(folder, out, before="a.json", after=after)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert outputs(out) == {"exit-code": str(code), "verdict": verdict}
    summary = out.with_suffix(".md").read_text()
    assert summary == (out / "diff.md").read_text() and summary.startswith("**step ")
    assert json.loads((out / "diff.json").read_text())["wall"]["verdict"] == verdict
    assert "<html" in (out / "diff.html").read_text()


def test_the_limit_is_an_input(folder, tmp_path):
    words = {"before": "a.json", "after": "slow.json", "fail_above": "15"}
    assert gate(folder, tmp_path / "out", **words).returncode == 0


def test_a_store_grows_with_what_passes(folder, tmp_path):
    kept = tmp_path / "perf.sqlite"
    for i, (after, code) in enumerate((("a.json", 0), ("b.json", 0), ("slow.json", 4))):
        tags = f"commit=c {i}\nbranch=$(touch pwned)\n"
        words = {"baseline": str(kept), "after": after, "save": "true", "tags": tags}
        done = gate(folder, tmp_path / f"out{i}", **words)
        assert done.returncode == code, done.stderr
    assert "there is none to compare with" in (tmp_path / "out0.md").read_text()
    assert outputs(tmp_path / "out0") == {"exit-code": "0"}
    captures = store.captures(kept)
    assert [dict(capture.tags) for capture in captures] == [
        {"commit": f"c {i}", "branch": "$(touch pwned)"} for i in range(2)
    ]
    words = {"baseline": str(kept), "after": "slow.json", "against": "commit=c 0"}
    assert gate(folder, tmp_path / "more", **words).returncode == 4
    assert len(store.captures(kept)) == 2


def test_names_of_captures_are_never_part_of_a_command(folder, tmp_path):
    done = gate(folder, tmp_path / "out", before=HOSTILE, after=HOSTILE)
    assert done.returncode == 0, done.stderr
    words = {"before": HOSTILE, "after": "a.json", "steps": "$(touch pwned)", "fail_above": "`id`"}
    assert gate(folder, tmp_path / "more", **words).returncode == 2
    assert not (folder / "pwned").exists()
    assert gate(folder, tmp_path / "third", before="--help", after="a.json").returncode == 1


@pytest.mark.parametrize(
    "inputs, code, message",
    [
        ({}, 2, "give the capture to judge (after)"),
        ({"after": "a.json"}, 2, "give the capture to compare with (before), or a store"),
        ({"after": "a.json", "before": "b.json", "baseline": "s"}, 2, "before or baseline, not"),
        ({"after": "a.json", "before": "b.json", "save": "true"}, 2, "save needs a store"),
        ({"after": "a.json", "baseline": "none.sqlite"}, 2, "run once with save: true"),
        ({"after": "none.json", "before": "a.json"}, 1, "none.json"),
    ],
)
def test_wrong_inputs_are_one_line(folder, tmp_path, inputs, code, message):
    done = gate(folder, tmp_path / "out", **inputs)
    assert done.returncode == code
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert outputs(tmp_path / "out") == {"exit-code": str(code)}


def test_without_the_files_of_a_ci_the_comparison_is_printed(folder, tmp_path):
    words = {"before": "a.json", "after": "b.json"}
    nothing = {"GITHUB_STEP_SUMMARY": "", "GITHUB_OUTPUT": ""}
    done = processes.ran(
        ["sh", ACTION / "gate.sh"],
        cwd=folder,
        env={**os.environ, **nothing, "GATE_FASTPROF": "./fastprof", "GATE_OUT": str(tmp_path),
             **{f"GATE_{name.upper()}": text for name, text in words.items()}},
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout == (tmp_path / "diff.md").read_text()


def test_the_action_hands_inputs_over_as_variables_only():
    text = (ACTION / "action.yml").read_text()
    commands = re.findall(r"run: (.*)", text)
    assert commands == ['sh "$GITHUB_ACTION_PATH/gate.sh"']
    script = (ACTION / "gate.sh").read_text()
    given = set(re.findall(r"^ +(GATE_\w+): ", text, re.MULTILINE))
    assert given == set(re.findall(r"GATE_[A-Z_]+", script))
    inputs = re.findall(r"^  ([\w-]+):\n    description", text.partition("outputs:")[0], re.M)
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert set(inputs) == used
    assert "eval" not in script
