"""Outputs shown in the documents equal those of the commands."""

import re
import shlex
from pathlib import Path

import pytest

from fastprof.cli import main
from support import commands
from support.documents import ROOT, blocks, write_files
from support.real_data import data_dir, real


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    write_files(folder)
    return folder


def printed(document: str, start: str) -> list[str]:
    """The lines of the one block of a document that starts like this."""
    (block,) = (block for block in blocks(document) if block.text.startswith(start))
    return block.text.splitlines()


def run(folder: Path, *words: str) -> tuple[list[str], str]:
    """The lines of a command's stdout, and its stderr."""
    done = commands.run(*words, cwd=folder)
    stdout, stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 0, stderr
    return [line.rstrip() for line in stdout.splitlines()], stderr


def missing(shown: list[str], lines: list[str]) -> list[str]:
    """The shown lines that are missing or out of order."""
    rest = iter(lines)
    return [line for line in shown if line.rstrip() not in rest]


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_guide_has_rows_of_the_demo(folder: Path) -> None:
    columns = "layer,trace,dir,op,kernel,params,sil,tc,flops"
    lines, stderr = run(folder, "prof", "-w", "141", "-c", columns, ".demo/net.sqlite")
    assert missing(printed("docs/guide.md", "Layer "), lines) == []
    assert on_one_line("\n".join(printed("docs/guide.md", "Found 1000"))) in on_one_line(stderr)
    assert len(lines) == 1001  # "Some of the 1000 rows"


@pytest.mark.parametrize(
    ("page", "command"),
    [("README.md", ".demo"), ("docs/guide.md", "layers"), ("docs/guide.md", "roofline")],
)
def test_documents_have_reports_of_the_demo(page: str, command: str, folder: Path) -> None:
    typed, *shown = printed(page, f"$ fastprof {command}")
    lines, _ = run(folder, *typed.split()[2:])
    assert missing(shown, lines) == []


def test_the_report_of_an_engine_is_that_of_the_command(folder: Path) -> None:
    text = (ROOT / "docs" / "reports.md").read_text()
    command, *shown = text[text.index("$ fastprof serving engine") :].split("\n```")[0].splitlines()
    lines, _ = run(folder, *command.split()[2:])
    assert [line.rstrip() for line in shown] == lines


def test_the_columns_have_the_coverage_of_the_demo(folder: Path) -> None:
    _, stderr = run(folder, "prof", "demo.sqlite")
    assert on_one_line("\n".join(printed("docs/columns.md", "Found 1000"))) in on_one_line(stderr)


def test_the_guide_has_what_info_says_of_the_demo(folder: Path) -> None:
    command, *shown = printed("docs/guide.md", "$ fastprof info")
    lines, _ = run(folder, *command.split()[2:])
    assert shown.pop().strip() == "..."
    assert shown == lines[: len(shown)]


def test_the_guide_has_rows_of_a_real_graph(capsys: pytest.CaptureFixture[str]) -> None:
    trace, capture = (str(real(f"kineto/sglang_graph_{name}.json.gz"))
                      for name in ("decode", "capture"))  # fmt: skip
    columns = ["-w", "90", "-c", "idx,dir,op,params,sil"]
    assert main(["prof", trace, "--graph-capture", capture, *columns]) == 0
    out, err = capsys.readouterr()
    *shown, dots, said = printed("docs/guide.md", "Idx     Direc")
    assert dots == "..."
    assert missing(shown, [line.rstrip() for line in out.splitlines()]) == []
    assert said in err.replace(str(Path(capture).parent) + "/", "").splitlines()


@pytest.mark.parametrize("command", ["before", "idle", "whatif", "diff"])
def test_the_first_trace_has_the_output_of_its_commands(command: str, tmp_path: Path) -> None:
    directory = data_dir()
    if directory is None:
        pytest.skip("no real traces: set FASTPROF_DATA to their directory")
    for name, other in (("before", "stack_memory"), ("after", "4workers")):
        trace = directory / "kineto" / f"resnet50_2021_{other}.json.gz"
        (tmp_path / f"{name}.json.gz").symlink_to(trace)
    typed, *shown = printed("docs/first_trace.md", f"$ fastprof {command}")
    lines, _ = run(tmp_path, *shlex.split(typed)[2:])
    assert [line.rstrip() for line in shown] == lines


def test_the_guide_has_the_tables_of_four_real_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    directory = data_dir()
    if directory is None:
        pytest.skip("no real traces: set FASTPROF_DATA to their directory")
    paths = sorted(str(path) for path in (directory / "kineto").glob("dlrm_rank*.json.gz"))
    assert len(paths) == 4
    assert main(["batch", "--by", "op,class", "--top", "0", "--no-progress", *paths]) == 0
    lines = capsys.readouterr().out.replace(f"{directory}/", "").splitlines()
    for line in printed("docs/guide.md", "4 ranks in 4 files"):
        if not line.startswith("..."):
            assert any(has_words(each, line) for each in lines), line


def has_words(line: str, shown: str) -> bool:
    """Whether a line matches the shown one; `...` matches anything, and cells may be padded."""
    words = [re.escape(word) if word != "..." else ".*" for word in shown.split()]
    return re.match(r"\s*" + r"\s+(?:\S+\s+)*?".join(words), line) is not None


def test_words_are_found_in_their_order() -> None:
    assert has_words("op   ranks  time(ms)  share", "op  ranks  ...  share")
    assert has_words("op   ranks  time(ms)  share", "op  time(ms)")
    assert not has_words("op   ranks  time(ms)  share", "op  share  ranks")
