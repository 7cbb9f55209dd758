"""No command writes over what it reads; outputs are atomic; devices and pipes are written into."""

import ast
import os
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fastprof._system.output_file import output_file, protected
from fastprof.cli import output as output_module
from fastprof.cli.output import FOLDERS, INPUTS, OUTPUTS
from fastprof.errors import OutputError
from fastprof.exports.registry import FORMATS
from support import every_command, processes
from support.commands import command, state_of
from support.every_command import run_here
from support.exports import Export
from support.sqlite_files import execute, query
from support.waiting import PATIENCE

PACKAGE = Path(output_module.__file__).parents[1]
WRITERS = [(name, option) for name in every_command.commands()
           for option in every_command.outputs(name)]  # fmt: skip


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    export = Export().push_pop(0, 100, "layer:a", tid=1)
    for i in range(3):
        export.launch(10 * i, 10 * i + 2, corr=i, tid=1).kernel(10 * i + 3, 10 * i + 9, corr=i)
    (tmp_path / "in").mkdir()
    return export.write(tmp_path / "in" / "net.sqlite")


def linked(make: Callable[[Path, Path], None], name: str = "out.svg") -> Callable[[Path], str]:
    def target(trace: Path) -> str:
        make(trace, trace.with_name(name))
        return str(trace.with_name(name))

    return target


def twice(trace: Path, link: Path) -> None:
    link.with_name("between").symlink_to(trace.name)
    link.symlink_to("between")


def beside(suffix: str) -> Callable[[Path], str]:
    def target(trace: Path) -> str:
        path = trace.with_name(trace.stem + suffix)
        path.write_bytes(b"what Nsight Systems recorded")
        return str(path)

    return target


def log_of(trace: Path) -> str:
    return f"{trace}-wal"  # does not exist: SQLite would take it for a part of the capture


SPELLINGS = {
    "the same": str,
    "relative": lambda trace: os.path.relpath(trace),
    "with dots": lambda trace: str(trace.parent / ".." / trace.parent.name / trace.name),
    "a link": linked(lambda trace, link: link.symlink_to(trace)),
    "two links": linked(twice),
    "a hard link": linked(lambda trace, link: os.link(trace, link)),
    "the report beside the export": beside(".nsys-rep"),
    "the older report": beside(".qdrep"),
    "the log": log_of,
}


def words_of(name: str, option: str, trace: Path, target: str) -> list[str]:
    return [*every_command.reading(name, trace), option, target]


def test_every_argument_that_names_a_file_is_an_input_or_an_output():
    known = {*OUTPUTS, *INPUTS, *FOLDERS}
    unknown = [
        f"{name} {action.option_strings or action.dest}"
        for name, command in every_command.commands().items()
        if name not in every_command.STARTS_PROGRAMS
        for action in every_command.path_options(command)
        if action.dest not in known
    ]
    assert unknown == []
    assert len(WRITERS) > 20


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_command_writes_over_its_input(spelling, trace):
    target = SPELLINGS[spelling](trace)  # type: ignore[operator]
    before = state_of(trace.parent)
    for name, option in WRITERS:
        if option == "--plot":
            continue  # wants a name that ends in .png or .svg
        done = run_here(*words_of(name, option, trace, target))
        assert (done.code, done.out) == (1, ""), (name, option, done)
        assert ("is an input" in done.err) or ("belongs to the input" in done.err), done.err
        assert done.err.count("\n") == 1
        assert state_of(trace.parent) == before


def test_a_chart_is_not_drawn_over_the_input(trace):
    link = trace.with_name("roof.svg")
    link.symlink_to(trace)
    before = state_of(trace.parent)
    done = run_here("roofline", trace, "--plot", link)
    assert "roof.svg: is an input; choose another name for --plot" in done.err
    assert state_of(trace.parent) == before


@pytest.mark.parametrize("to", FORMATS)
def test_no_export_writes_over_its_input_when_only_the_writer_looks(to, trace, monkeypatch):
    monkeypatch.setattr(output_module, "OUTPUTS", {})
    before = state_of(trace.parent)
    done = run_here("export", trace, "--to", to, "-o", trace)
    if "pstats: no call stacks" not in done.err:
        assert (done.code, "is an input" in done.err) == (1, True), done.err
    assert state_of(trace.parent) == before


def test_files_of_a_directory_and_of_a_run_are_inputs(trace):
    other = trace.with_name("rank1.json")
    other.write_text('{"traceEvents": []}')
    facts = trace.with_name("run.json")
    facts.write_text("{}")
    before = state_of(trace.parent)
    for target in (trace, other, facts):
        for name in ("batch", "report"):
            done = run_here(name, trace.parent, "-o", target)
            assert (done.code, "is an input" in done.err) == (1, True), (name, target, done)
    done = run_here("diff", trace.parent, trace.parent, "-o", other)
    assert "is an input" in done.err
    done = run_here("overview", trace, "-o", facts)
    assert "run.json: is an input" in done.err
    assert state_of(trace.parent) == before


def test_stored_results_and_graph_captures_and_cost_files_are_inputs(trace):
    folder = trace.with_name("store")
    folder.mkdir()
    for name in ("baseline.parquet", "history.sqlite", "costs.py"):
        (folder / name).write_text("mine")
    before = state_of(trace.parent)
    for words in (
        ["batch", trace, "--store", folder, "-o", folder / "baseline.parquet"],
        ["diff", "--baseline", folder, trace, "-o", folder / "history.sqlite"],
        ["diff", "--baseline", folder, trace, "--html", folder / "baseline.parquet"],
        ["summary", trace, "--ops", folder / "costs.py", "-o", folder / "costs.py"],
        ["prof", trace, "--graph-capture", folder / "costs.py", "-o", folder / "costs.py"],
        ["lines", trace, "--source", folder, "-o", folder / "costs.py"],
    ):
        done = run_here(*words)
        assert (done.code, "is an input" in done.err) == (1, True), (words, done)
    assert state_of(trace.parent) == before


def test_two_outputs_are_two_files(trace, tmp_path):
    after = Path(shutil.copy(trace, tmp_path / "after.sqlite"))
    out = tmp_path / "out"
    words = ["diff", str(trace), str(after), "-o", str(out), "--html"]
    done = run_here(*words, f"{tmp_path}/./out")
    assert done.code == 1 and "-o and --html name one file" in done.err
    assert not out.exists()
    assert run_here("diff", *words[1:3], "-o", os.devnull, "--html", os.devnull).code == 0


def test_the_export_beside_a_report_is_kept(trace):
    report = trace.with_suffix(".nsys-rep")
    report.write_bytes(b"NVIDIA Tegra Profiler Report\n")
    before = state_of(trace.parent)
    done = run_here("export", report, "--to", "sqlite", "-o", trace)
    assert f"belongs to the input {report}" in done.err
    assert state_of(trace.parent) == before


def test_a_stream_is_not_sent_to_the_input(trace, tmp_path):
    before = trace.read_bytes()
    with trace.open("ab") as file:
        done = subprocess.run(
            command("prof", trace), stdout=file, stderr=subprocess.PIPE, timeout=PATIENCE
        )
    assert (done.returncode, b"is an input" in done.stderr) == (1, True)
    assert trace.read_bytes() == before
    lines = tmp_path / "net.dict"
    assert run_here("parse", trace, "-o", lines).code == 0
    before = lines.read_bytes()
    with lines.open("rb") as file:
        done = processes.ran(command("prof", "-o", lines), stdin=file, text=False)
    assert (done.returncode, b"is an input" in done.stderr) == (1, True)
    assert lines.read_bytes() == before


def test_the_library_does_not_export_over_the_capture(trace):
    import fastprof

    before = trace.read_bytes()
    profile = fastprof.open(trace)
    with pytest.raises(OutputError, match="is an input"):
        profile.export(trace, to="sqlite")
    assert trace.read_bytes() == before


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_reading_changes_nothing_beside_the_capture(journal, trace, tmp_path):
    execute(trace, f"PRAGMA journal_mode = {journal}")
    for path in trace.parent.glob("net.sqlite-*"):
        path.unlink()
    os.utime(trace, ns=(10**18, 10**18))
    before = state_of(trace.parent), os.stat(trace).st_mtime_ns
    for name in every_command.commands():
        for words in [*every_command.invocations(name, trace, tmp_path)][:1]:
            done = run_here(*words)
            assert done.code in (0, 1, 2), done
            assert (state_of(trace.parent), os.stat(trace).st_mtime_ns) == before, words


# Where outputs go.


@pytest.mark.parametrize("to", [format_ for format_ in FORMATS if format_ != "pstats"])
def test_a_pipe_is_written_into(to, trace, tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    done = run_here("export", trace, "--to", to, "-o", pipe)
    reader.join(PATIENCE)
    assert done.code == 0, done.err
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    plain = tmp_path / "plain"
    assert run_here("export", trace, "--to", to, "-o", plain).code == 0
    assert len(got[0]) == plain.stat().st_size


def test_a_database_is_compressed_and_sent_to_a_pipe(trace, tmp_path):
    done = processes.ran(command("export", trace, "--to", "sqlite"), text=False)
    (tmp_path / "x.sqlite").write_bytes(done.stdout)
    assert query(tmp_path / "x.sqlite", "SELECT count(*) FROM kernels") == [(3,)]
    assert run_here("export", trace, "--to", "sqlite", "-o", tmp_path / "x.gz").code == 0
    assert (tmp_path / "x.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_a_descriptor_is_written_into_where_it_stands(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    inode = log.stat().st_ino
    with log.open("ab") as file, output_file(f"/dev/fd/{file.fileno()}") as out:
        out.write(b"after\n")
    assert log.read_bytes() == b"before\nafter\n"
    assert (log.stat().st_ino, len(os.listdir(tmp_path))) == (inode, 1)
    with output_file("/dev/null") as out:
        out.write(b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_links_are_followed_and_rings_and_directories_refused(trace, tmp_path):
    link, target = tmp_path / "link", tmp_path / "far"
    link.symlink_to(target)  # to nothing, yet
    assert run_here("prof", trace, "-o", link).code == 0
    assert link.is_symlink()
    assert target.stat().st_size
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for place, why in (("a", "symbolic links"), ("in", "Is a directory"), ("far/x", "Not a dir")):
        done = run_here("prof", trace, "-o", tmp_path / place)
        assert (done.code, done.err.count("\n"), why in done.err) == (1, 2, True), done.err
    assert (tmp_path / "a").is_symlink()


def test_permissions_are_those_of_the_replaced_file_or_of_a_new_one(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"x")
    old.chmod(0o600)
    before = os.umask(0o027)
    try:
        for path in (old, new):
            with output_file(path) as file:
                file.write(b"y")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (old, new)] == [0o600, 0o640]


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    path.write_bytes(b"x")
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda file, mode: False)  # an administrator may write all
    with pytest.raises(PermissionError), output_file(path) as file:
        file.write(b"y")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"x", ["kept"])


def test_directories_with_the_name_of_a_temporary_file_are_kept(tmp_path):
    folder = tmp_path / ".out.csv.1-01234567.part"
    folder.mkdir()
    (folder / "thesis").write_text("data")
    os.utime(folder, (0, 0))
    with output_file(tmp_path / "out.csv") as file:
        file.write(b"x")
    assert (folder / "thesis").exists()


def test_long_names_are_possible(tmp_path):
    with output_file(tmp_path / ("x" * 250)) as file:
        file.write(b"x")
    assert [len(name) for name in os.listdir(tmp_path)] == [250]


def test_a_planted_link_in_a_kept_directory_is_replaced(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "stored"
    victim.write_bytes(b"keep")
    link.symlink_to(victim)
    with output_file(link, is_own=True, sync=True) as file:
        file.write(b"new")
    assert (victim.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"keep", b"new", False)


def test_protection_ends_with_its_block(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"x")
    with protected(lambda: [path]), pytest.raises(OutputError), output_file(path):
        pass
    with output_file(path) as file:
        file.write(b"y")
    assert path.read_bytes() == b"y"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_export_leaves_nothing(number, trace, tmp_path):
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    execute(trace, *[f"INSERT INTO {table} SELECT * FROM {table}"] * 15)
    (tmp_path / "to").mkdir()
    out = tmp_path / "to" / "net.sqlite"
    running = subprocess.Popen(
        command("export", trace, "--to", "sqlite", "-o", out), stderr=subprocess.PIPE
    )
    end = time.monotonic() + PATIENCE
    while not os.listdir(tmp_path / "to") and time.monotonic() < end:
        time.sleep(0.01)
    running.send_signal(number)
    _, message = running.communicate(timeout=PATIENCE)
    assert (running.returncode, b"interrupted" in message) == (130, True), message
    assert os.listdir(tmp_path / "to") == []


# Who else writes files: what torch or nsys writes by name, and what is no output of a user.
OTHERS = {
    "_system/atomic_file.py": "the writer",
    "_system/output_file.py": "the writer",
    "annotate/program/status.py": "a report that still fits on a full disk, into its own blocks",
    "annotate/recorders.py": "torch writes the trace by its name",
    "readers/nsys/report.py": "nsys or SQLite writes the export by its name, into the cache",
    "exports/sqlite.py": "SQLite writes the database by its name",
    "analysis/diff/database.py": "SQLite adds rows to the store of captures, a transaction each",
    "runs/collect.py": "the name of a trace that could not be compressed, in the run's directory",
    "runs/exec_program.py": "the number of a process",
    "runs/launch.py": "a request, in a signal handler",
    "runs/nsys.py": "the log of nsys",
    "runs/rocprof.py": "the name of what rocprofv3 wrote, in the run's directory",
}
MOVES = {"os.replace", "os.rename", "shutil.copy", "shutil.move", "tempfile.NamedTemporaryFile",
         "apsw.Connection"}  # fmt: skip


def writes(tree: ast.AST) -> bool:
    """Whether a module opens a file for writing, or puts one in place."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ("open", "io.open", "gzip.open", "os.fdopen"):
            words = [*node.args, *(keyword.value for keyword in node.keywords)]
            modes = {f"{a}{b}" for a in "wxa" for b in ("", "b", "t", "+")}
            if any(ast.unparse(word).strip("'\"") in modes for word in words[1:2]):
                return True
        if called in MOVES or called.endswith((".write_text", ".write_bytes")):
            return True
    return False


def test_no_other_module_opens_files_for_writing():
    result = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if writes(ast.parse(path.read_text()))
    }
    read_only = {"readers/sqlite/database.py", "ranks/work.py"}  # mode=ro; a pipe
    assert result - read_only == set(OTHERS)
