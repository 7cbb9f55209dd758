"""Reports of Nsight Systems, exported by the user's nsys, here a script."""

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

import fastprof
from fastprof.cli import main
from fastprof.readers.nsys import report as nsys_report
from support.exports import Export
from support.waiting import PATIENCE, is_alive, wait_for

HEAD = b"NVIDIA Tegra Profiler Report 2026@4@1@191-264138605071v0.\n\x0bLocal (CLI)"
# Copies the fixture to the path of --output and logs its arguments.
COPIES = """#!/bin/sh
printf '%s\\n' "$@" >> "$FAKE_LOG"
test "$1 $2 $3 $4" = "export --type sqlite --output" || exit 9
cp "$FAKE_EXPORT" "$5"
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with a report, a cache directory and, once installed, an nsys."""
    for name in ("bin", "home", "data"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("FASTPROF_NSYS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FASTPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    export = Export().launch(10, 20, corr=1, tid=1).kernel(30, 42, corr=1)
    monkeypatch.setenv("FAKE_EXPORT", str(export.write(tmp_path / "fixture.sqlite")))
    return Machine(tmp_path)


class Machine:
    def __init__(self, folder):
        self.folder, self.cache, self.data = folder, folder / "cache", folder / "data"
        self.report = self.write("net.nsys-rep")

    def write(self, name, content=HEAD):
        path = self.data / name
        path.write_bytes(content)
        return path

    def install(self, script=COPIES):
        tool = self.folder / "bin" / "nsys"
        # The test's PATH does not have the tools that the script needs.
        shell = f'PATH="{os.path.dirname(shutil.which("cp", path=os.defpath))}:/usr/bin:/bin"\n'
        tool.write_text(script.replace("\n", "\n" + shell, 1))
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)

    @property
    def calls(self):
        log = self.folder / "log"
        return log.read_text().count("export\n") if log.exists() else 0


def test_a_report_is_read_by_way_of_its_export(machine):
    machine.install()
    profile = fastprof.open(machine.report)
    assert [row["sil"] for row in profile.rows()] == [12]
    assert profile.name == str(machine.report)
    (said,) = profile.warnings
    assert str(machine.cache) in said
    assert os.listdir(machine.data) == ["net.nsys-rep"]


def test_nsys_is_called_without_a_shell_with_the_whole_path(machine, monkeypatch):
    machine.install()
    odd = machine.write("$(touch x) 'a' b.nsys-rep")
    monkeypatch.chdir(machine.data)
    fastprof.open(odd.name)
    words = (machine.folder / "log").read_text().splitlines()
    assert words[:4] == ["export", "--type", "sqlite", "--output"]
    assert words[4].startswith(str(machine.cache))
    assert words[5:] == [str(odd)]
    assert not (machine.data / "x").exists()


def test_another_nsys_is_named_by_the_environment(machine, monkeypatch):
    machine.install()
    other = machine.data / "nsys-2025"
    (machine.folder / "bin" / "nsys").rename(other)
    monkeypatch.setenv("FASTPROF_NSYS", str(other))
    assert str(other) in fastprof.open(machine.report).warnings[0]
    assert machine.calls == 1


def test_a_report_is_exported_once_and_again_when_it_has_changed(machine):
    machine.install()
    assert fastprof.open(machine.report).warnings
    assert fastprof.open(machine.report).warnings == []
    assert machine.calls == 1
    machine.write("net.nsys-rep", HEAD + b"more")
    fastprof.open(machine.report)
    assert machine.calls == 2
    assert len(os.listdir(machine.cache)) == 1  # the earlier export is not kept


def test_reports_of_one_name_in_two_folders_are_two(machine):
    machine.install()
    (machine.data / "sub").mkdir()
    other = machine.data / "sub" / "net.nsys-rep"
    shutil.copy2(machine.report, other)
    fastprof.open(machine.report)
    fastprof.open(other)
    assert machine.calls == len(os.listdir(machine.cache)) == 2


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("net.dat", HEAD),
        ("net.qdrep", HEAD),
        ("NET.QDREP", b"\x00\x01"),
        ("a.nsys-rep", b"\x1f\x8b"),
    ],
)
def test_a_report_is_known_by_its_first_line_or_its_suffix(machine, name, head):
    machine.install()
    assert len(fastprof.open(machine.write(name, head))) == 1


def test_an_export_by_the_name_of_a_report_is_read_as_the_export_that_it_is(machine):
    path = machine.data / "export.nsys-rep"
    shutil.copy(machine.folder / "fixture.sqlite", path)
    assert len(fastprof.open(path)) == 1
    lines = machine.write("lines.nsys-rep", b"{'kShortName': 'a', 'kDuration': 7}\n")
    assert len(fastprof.open(lines)) == 1


@pytest.mark.parametrize("name", ["net.nsys-rep", "a b.qdrep"])
def test_without_nsys_the_error_says_what_to_run_where(machine, name):
    path = machine.write(name)
    with pytest.raises(fastprof.BadInputError) as error:
        fastprof.open(path)
    shown = f"'{path}'" if " " in name else str(path)
    assert str(error.value) == (
        f"{path}: is a report of Nsight Systems 2026.4.1.191, and no nsys is on the PATH to "
        f"export it; run this where nsys is installed: nsys export --type sqlite {shown}"
    )
    assert not machine.cache.exists()


FAILURES = {
    "exit code 3, cannot read it": "echo first\necho 'cannot read it' >&2\necho\nexit 3",
    "exit code 4": "exit 4",
    "it wrote no file": "exit 0",
    "exit code -9": "echo half > $5; kill -9 $$",
}


@pytest.mark.parametrize("problem", FAILURES)
def test_an_export_that_fails_is_told_in_one_line_and_leaves_nothing(machine, problem):
    machine.install(f"#!/bin/sh\n{FAILURES[problem]}\n")
    with pytest.raises(fastprof.BadInputError) as error:
        fastprof.open(machine.report)
    message = str(error.value)
    assert f"nsys export failed: {problem} (the report is of nsys 2026.4.1.191" in message
    assert "\n" not in message
    assert os.listdir(machine.cache) == []


def test_an_nsys_that_cannot_be_run_is_told(machine):
    machine.install("#!/no/such/shell\n")
    with pytest.raises(fastprof.BadInputError, match="nsys cannot be run: "):
        fastprof.open(machine.report)


def test_an_nsys_that_writes_another_report_is_not_run_again_and_again(machine):
    machine.install()
    shutil.copy(machine.report, machine.folder / "fixture.sqlite")
    with pytest.raises(fastprof.BadInputError, match="expected an Nsight Systems SQLite export"):
        fastprof.open(machine.report)
    assert machine.calls == 1


def test_a_cache_directory_that_cannot_be_made_is_told(machine, monkeypatch):
    machine.install()
    monkeypatch.setenv("FASTPROF_CACHE", str(machine.report / "cache"))
    with pytest.raises(fastprof.BadInputError, match="set FASTPROF_CACHE to another directory"):
        fastprof.open(machine.report)


def test_the_cache_directory_is_the_users_own(machine, monkeypatch):
    assert nsys_report.cache_directory() == machine.cache
    monkeypatch.delenv("FASTPROF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.folder / "xdg"))
    assert nsys_report.cache_directory() == machine.folder / "xdg" / "fastprof"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert nsys_report.cache_directory() == machine.folder / "home" / ".cache" / "fastprof"
    machine.install()
    fastprof.open(machine.report)
    made = machine.folder / "home" / ".cache" / "fastprof"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_the_caller_is_told_that_nsys_is_at_work(machine):
    machine.install()
    told = []
    fastprof.open(machine.report, lambda what, rows, total: told.append(what))
    assert told[0] == f"nsys export {machine.report}"


def test_all_commands_take_a_report(machine, capfd):
    machine.install()
    for command in ("parse", "prof", "info"):
        assert main([command, str(machine.report)]) == 0
    out = capfd.readouterr()
    assert out.out.count("sgemm") == 2 + out.out.count("kLongName")
    assert out.err.count("the export is kept as") == 1


def test_an_interrupted_export_ends_nsys_and_leaves_nothing(machine):
    machine.install('#!/bin/sh\necho $$ > "$FAKE_LOG"\necho half > "$5"\nexec sleep 3600\n')
    words = [sys.executable, "-m", "fastprof", "parse", str(machine.report)]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    log = machine.folder / "log"
    wait_for(lambda: log.exists() and log.read_text().endswith("\n"))
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=PATIENCE)
    assert (running.returncode, errors) == (130, b"fastprof: interrupted\n")
    assert os.listdir(machine.cache) == []
    wait_for(lambda: not is_alive(int(log.read_text())))


def test_what_a_killed_export_left_is_removed_by_the_next_and_what_runs_is_not(machine):
    machine.install()
    left, running, begun = (machine.cache / f"export-{name}" for name in ("left", "running", "new"))
    for folder in (left, running, begun):
        folder.mkdir(parents=True)
        (folder / "export.sqlite").write_bytes(b"half")
    for folder in (left, running):
        os.utime(folder, (time.time() - 3600,) * 2)
    descriptor = os.open(running, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    fastprof.open(machine.report)
    os.close(descriptor)
    assert (left.exists(), running.exists(), begun.exists()) == (False, True, True)


def test_a_report_is_counted_again_by_way_of_its_export(machine):
    machine.install()
    assert fastprof.open(machine.report).check().startswith("1 kernel rows, 0.000 ms agree with")
    assert machine.calls == 1
