"""The `fastprof batch` command: stdout, stderr and exit codes."""

import csv
import io
import subprocess

import pytest

import fastprof
from fastprof.api import batch as batch_module
from fastprof.cli import main
from fastprof.ranks.work import work
from support import commands, processes, rank_files

pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    rank_files.run(folder, 4, slow=3, without=(1,))
    return folder


@pytest.fixture
def run(monkeypatch, capfd):
    """Run the command and its readers in this process; returns code, stdout, stderr."""

    def run_here(paths, options, jobs, memory):
        yield from (work(path, options) for path in paths)

    def run(*words):
        code = main(["batch", *map(str, words)])
        out, err = capfd.readouterr()
        return code, out, err

    monkeypatch.setattr(batch_module, "run_local", run_here)
    return run


@pytest.fixture
def usage(run, capfd):
    def usage(*words):
        with pytest.raises(SystemExit) as end:
            run(*words)
        assert end.value.code == 2
        return capfd.readouterr().err

    return usage


def test_a_report_on_stdout_and_a_line_a_file_on_stderr(run, folder):
    code, out, err = run(folder)
    assert code == 0
    lines = err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(f"fastprof: [1/4] {folder}/rank0.sqlite: 12 kernels, 0.00")
    titles = [line for line in out.splitlines() if not line.startswith((" ", "op", "rank", "coll"))]
    assert titles[0].startswith("4 ranks in 4 files; ranks are from the file names.")
    for title in (
        "time by op, layer, class, dir",
        "waiting for other ranks",
        "work that some ranks lack",
    ):
        assert title in titles
    assert "slowest" in out
    assert "head; 3 ranks have it" in out


def test_the_whole_command_works_with_its_processes(folder):
    words = ["batch", folder, "--by", "op", "--csv"]
    one = commands.run(*words, "-j", "1")
    started = commands.command(*words, "-j", "2")  # new interpreters
    two = processes.ran(started, text=False)
    assert (one.returncode, two.returncode) == (0, 0)
    assert one.stdout == two.stdout
    rows = list(csv.DictReader(io.StringIO(one.stdout.decode())))
    assert [row["op"] for row in rows] == ["na", "linear"]
    table = fastprof.batch(folder).table("op")
    assert [int(row["time"]) for row in rows] == table["time"].tolist()


def test_a_bad_file_is_a_line_and_exit_code_1_at_the_end(run, folder, tmp_path):
    (tmp_path / "bad.sqlite").write_bytes(b"nothing")
    code, out, err = run(tmp_path / "bad.sqlite", folder, tmp_path / "missing.sqlite")
    assert code == 1
    assert err.splitlines()[-1] == "fastprof: 2 of 6 files could not be read"
    assert sum("bad.sqlite" in line for line in err.splitlines()) == 1
    assert "4 ranks in 6 files, 2 of them unreadable" in out
    assert "no such file" in out


def test_each_table_can_be_had_alone_and_as_csv(run, folder):
    for table, rows in (("totals", 3), ("collectives", 1), ("lacking", 2), ("ranks", 4)):
        code, out, _ = run(folder, "--table", table)
        assert code == 0
        assert len(out.splitlines()) == rows + 1
        _, out, _ = run(folder, "--table", table, "--csv")
        assert len(list(csv.DictReader(io.StringIO(out)))) == rows


def test_top_rows_are_shown_and_csv_has_all(run, folder):
    _, out, _ = run(folder, "--table", "totals", "--top", "1")
    assert out.splitlines()[-1] == "... 2 more rows"
    assert "more rows" not in run(folder, "--table", "totals", "--top", "0")[1]
    assert len(run(folder, "--csv", "--top", "1")[1].splitlines()) == 4


def test_output_goes_to_a_file(run, folder, tmp_path):
    assert run(folder, "--csv", "-o", tmp_path / "a.csv")[1] == ""
    assert (tmp_path / "a.csv").read_text() == run(folder, "--csv")[1]


def test_no_progress_leaves_only_what_is_wrong(run, folder, tmp_path):
    assert run(folder, "--no-progress")[2] == ""
    _, _, err = run(folder, tmp_path / "missing.sqlite", "--no-progress")
    assert len(err.splitlines()) == 2


def test_a_store_is_used_again(run, folder, tmp_path):
    pytest.importorskip("pyarrow")
    first = run(folder, "--store", tmp_path / "s")
    second = run(folder, "--store", tmp_path / "s")
    assert first[1] == second[1]
    assert second[2].count("unchanged in the store") == 4


def test_a_directory_without_traces_is_one_line(run, tmp_path):
    code, out, err = run(tmp_path)
    assert (code, out, err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "required"),
        (["a", "--by", "nonsense"], "mod, op, layer, dir, class"),
        (["a", "--by", ""], "valid columns"),
        (["a", "--table", "x"], "unknown value 'x'; valid: totals"),
        (["a", "--memory", "lots"], "4G"),
        (["a", "--memory", "5M"], "256 MiB"),
        (["a", "-j", "0"], "1 or more"),
        (["a", "-j", "-1"], "expected"),
        (["a", "--top", "x"], "expected a non-negative integer"),
    ],
)
def test_wrong_words_are_usage_errors(usage, words, said):
    assert said in usage(*words)


def test_sizes_have_units(folder, run):
    for size in ("1G", "300M", "0.5GiB", "400000K", "1073741824"):
        assert run(folder, "--memory", size)[0] == 0


def test_the_bar_is_shown_on_a_terminal_only(folder):
    pty = pytest.importorskip("pty")
    import os

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        commands.forked("batch", folder, "--csv"),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait() == 0
    assert b"4/4" in said
    assert said.count(b"kernels") == 4
