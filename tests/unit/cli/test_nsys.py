"""fastprof nsys: records a program and prints the report.

`nsys` is a script here that checks its options, runs the program, and copies an export of
tests/support/exports.py to the path of --output.
"""

import os
import shlex
import signal
import stat
import subprocess
import sys

import pytest

from fastprof.cli import main
from fastprof.cli import nsys as module
from support import processes
from support.exports import Export
from support.waiting import PATIENCE, is_alive, wait_for

# The options in `nsys profile --help` of 2021.2 and later.
NSYS = f"""#!{sys.executable}
import os, shutil, subprocess, sys
known = {{
    "--trace": "cuda,nvtx", "--sample": "none", "--cpuctxsw": "none", "--cuda-graph-trace": "node",
    "--force-overwrite": "true", "--export": "sqlite", "--capture-range": "cudaProfilerApi",
    "--capture-range-end": "stop", "--output": None,
}}
command, *words = sys.argv[1:]
options = {{}}
while words and words[0].startswith("-"):
    name, equals, value = words.pop(0).partition("=")
    if name not in known or known[name] not in (None, value):
        sys.exit(f"unrecognised option {{name}}={{value}}")
    options[name] = value
if command != "profile" or not words or len(options) not in (7, 9):
    sys.exit(f"expected profile, options, a program, found {{sys.argv}}")
with open(os.environ["FAKE_LOG"], "a") as log:
    print(*options, file=log)
code = subprocess.run(words).returncode
print("Generated:", options["--output"] + ".nsys-rep", flush=True)
made = os.environ.get("FAKE_MAKES", ".sqlite .nsys-rep").split()
for suffix in made:
    source = os.environ["FAKE_EXPORT"] if suffix == ".sqlite" else os.environ["FAKE_REPORT"]
    shutil.copyfile(source, options["--output"] + suffix)
sys.exit(code)
"""
PROGRAM = [sys.executable, "-c", "import sys; print('trained', *sys.argv[1:])"]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A working folder, and a stand-in for nsys on the PATH."""
    for name in ("bin", "work"):
        (tmp_path / name).mkdir()
    export = Export().push_pop(0, 90, "layer:net", tid=1).launch(10, 20, corr=1, tid=1)
    export.kernel(30, 42, corr=1).write(tmp_path / "fixture.sqlite")
    report = b"NVIDIA Tegra Profiler Report 2026@4@1@191-264138605071v0.\n"
    (tmp_path / "fixture.nsys-rep").write_bytes(report)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_EXPORT", str(tmp_path / "fixture.sqlite"))
    monkeypatch.setenv("FAKE_REPORT", str(tmp_path / "fixture.nsys-rep"))
    monkeypatch.delenv("FASTPROF_NSYS", raising=False)
    monkeypatch.chdir(tmp_path / "work")
    return Machine(tmp_path)


class Machine:
    def __init__(self, folder):
        self.folder = folder
        self.install()

    def install(self, script=NSYS, name="nsys"):
        tool = self.folder / "bin" / name
        tool.write_text(script)
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        return tool

    def remove(self):
        (self.folder / "bin" / "nsys").unlink()

    @property
    def log(self):
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []


# Recording and report.


def test_a_program_is_recorded_and_its_report_follows_its_output(machine, capfd):
    assert main(["nsys", "-c", "idx,layer,sil", "--", *PROGRAM, "-w", "3"]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        "trained -w 3",
        "Generated: fastprof.nsys-rep",
        "Idx Layer Sil(ns)",
        "1 net 12",
    ]
    assert err.startswith("Found 1 kernels")
    assert sorted(os.listdir()) == ["fastprof.nsys-rep", "fastprof.sqlite"]


def test_nsys_gets_the_options_that_fastprof_needs(machine, capfd):
    assert main(["nsys", "--", *PROGRAM]) == 0
    assert main(["nsys", "--captured", *PROGRAM]) == 0
    plain = "--trace --sample --cpuctxsw --cuda-graph-trace --force-overwrite --export"
    ranges = "--capture-range --capture-range-end"
    assert machine.log == [f"{plain} --output", f"{plain} {ranges} --output"]


@pytest.mark.parametrize("name", ["net", "net.nsys-rep", "net.sqlite", "sub/a b$(x)"])
def test_the_recording_has_the_name_that_was_asked_for(machine, capfd, name):
    os.mkdir("sub")
    assert main(["nsys", "-o", name, "--csv", "--report", "out.csv", *PROGRAM]) == 0
    stem = name.removesuffix(".nsys-rep").removesuffix(".sqlite")
    assert os.path.exists(stem + ".sqlite")
    with open("out.csv") as file:
        assert file.readline().startswith('"Idx","Direction"')
    assert capfd.readouterr().out.splitlines()[0] == "trained"


@pytest.mark.parametrize(
    ("words", "first"),
    [(["--csv"], '"Idx",'), (["--json"], '{"idx":'), (["-w", "120"], "Idx     Direc")],
)
def test_the_report_looks_as_prof_makes_it(machine, capfd, words, first):
    assert main(["nsys", *words, "--", *PROGRAM]) == 0
    lines = capfd.readouterr().out.splitlines()[2:]
    assert lines[0].startswith(first)
    assert main(["prof", *words, "fastprof.sqlite"]) == 0
    assert capfd.readouterr().out.splitlines() == lines


def test_a_second_recording_replaces_the_first(machine, capfd):
    for _ in range(2):
        assert main(["nsys", *PROGRAM]) == 0


def test_standard_input_reaches_the_program(machine):
    words = ["nsys", "--", sys.executable, "-c", "print('read', input())"]
    done = processes.python("-m", "fastprof", *words, input=b"hello\n", text=False)
    assert (done.returncode, done.stdout.split(b"\n")[0]) == (0, b"read hello")


# Programs and tools that fail.


def test_the_exit_code_of_a_failing_program_is_passed_on_behind_its_report(machine, capfd):
    program = [sys.executable, "-c", "import sys; sys.exit(7)"]
    assert main(["nsys", "-c", "sil", "--", *program]) == 7
    out, err = capfd.readouterr()
    assert out.splitlines()[1:] == ["Sil(ns)", "12"]
    assert err.splitlines()[0] == f"fastprof: {shlex.join(program)}: exit code 7"


def test_a_failing_program_without_a_recording_is_told(machine, capfd, monkeypatch):
    monkeypatch.setenv("FAKE_MAKES", "")
    assert main(["nsys", "--", sys.executable, "-c", "import sys; sys.exit(7)"]) == 7
    assert capfd.readouterr().err.splitlines()[1:] == [
        "fastprof: fastprof.sqlite: nsys recorded nothing and ended with exit code 7; see "
        "its output above"
    ]


def test_a_tool_that_records_nothing_is_told_and_an_older_export_is_not_reported(
    machine, capfd, monkeypatch
):
    assert main(["nsys", *PROGRAM]) == 0
    capfd.readouterr()
    monkeypatch.setenv("FAKE_MAKES", "")
    assert main(["nsys", "--captured", *PROGRAM]) == 1
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 2
    assert err == (
        "fastprof: fastprof.sqlite: nsys recorded nothing (the existing file is from an earlier "
        "run); --captured starts at cudaProfilerStart: check that the loop reaches the iterations "
        "that fastprof.capture selects\n"
    )


def test_a_report_without_an_export_is_read_as_a_report(machine, capfd, monkeypatch):
    monkeypatch.setenv("FAKE_MAKES", ".nsys-rep")
    monkeypatch.setenv("FASTPROF_CACHE", str(machine.folder / "cache"))
    assert main(["nsys", *PROGRAM]) == 1  # the stand-in exports none
    assert "fastprof.nsys-rep: nsys export failed" in capfd.readouterr().err


def test_an_export_that_is_none_is_told(machine, capfd, monkeypatch):
    monkeypatch.setenv("FAKE_EXPORT", __file__)
    assert main(["nsys", *PROGRAM]) == 1
    assert "fastprof.sqlite: expected an Nsight Systems SQLite" in capfd.readouterr().err


def test_a_tool_that_cannot_be_run_is_told(machine, capfd):
    machine.install("#!/no/such/shell\n")
    assert main(["nsys", *PROGRAM]) == 1
    assert "nsys cannot be run: " in capfd.readouterr().err


def test_a_tool_that_was_killed_has_the_exit_code_of_the_shell(machine, capfd):
    machine.install("#!/bin/sh\nkill -9 $$\n")
    assert main(["nsys", *PROGRAM]) == 137


def test_an_interruption_ends_nsys(machine):
    machine.install('#!/bin/sh\necho $$ > "$FAKE_LOG"\nexec /bin/sleep 3600\n')
    words = [sys.executable, "-m", "fastprof", "nsys", "--", *PROGRAM]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    (pid,) = wait_for(lambda: machine.log)
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=PATIENCE)
    assert (running.returncode, errors) == (130, b"fastprof: interrupted\n")
    wait_for(lambda: not is_alive(int(pid)))


# Without nsys, and with --print.


def test_without_nsys_the_commands_are_printed_to_be_run_elsewhere(machine, capfd):
    machine.remove()
    assert main(["nsys", "--csv", "-c", "sil", "--", "python", "my train.py", "-w", "3"]) == 1
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace=node "
        "--force-overwrite=true --export=sqlite --output=fastprof python 'my train.py' -w 3",
        "fastprof prof -c sil --csv fastprof.sqlite",
    ]
    assert err == (
        "fastprof: nsys not found; run the commands above where it is, or install it from "
        "https://developer.nvidia.com/nsight-systems\n"
    )


@pytest.mark.parametrize("option", ["-n", "--print"])
def test_printing_runs_nothing(machine, capfd, option):
    words = [option, "--captured", "-o", "a b", "-w", "120", "--report", "out", *PROGRAM]
    assert main(["nsys", *words]) == 0
    first, second = map(shlex.split, capfd.readouterr().out.splitlines())
    assert first[:2] == [str(machine.folder / "bin" / "nsys"), "profile"]
    assert first[-len(PROGRAM) :] == PROGRAM
    assert {*module._OPTIONS, *module._CAPTURED, "--output=a b"} < set(first)
    assert second == ["fastprof", "prof", "-w", "120", "-o", "out", "a b.sqlite"]
    assert (machine.log, os.listdir()) == ([], [])


def test_what_is_printed_can_be_run(machine, capfd):
    assert main(["nsys", "-n", "--", *PROGRAM]) == 0
    command = capfd.readouterr().out.splitlines()[0]
    done = processes.ran(["/bin/sh", "-c", command], text=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert main(["prof", "fastprof.sqlite"]) == 0


def test_another_nsys_is_named_by_the_environment(machine, capfd, monkeypatch):
    machine.remove()
    other = machine.install(name="nsys-2025")
    for named in ("nsys-2025", str(other)):
        monkeypatch.setenv("FASTPROF_NSYS", named)
        assert main(["nsys", *PROGRAM]) == 0
    capfd.readouterr()
    monkeypatch.setenv("FASTPROF_NSYS", "/none/nsys")
    assert main(["nsys", *PROGRAM]) == 1
    assert "/none/nsys ($FASTPROF_NSYS) not found" in capfd.readouterr().err


# Usage errors.


@pytest.mark.parametrize("words", [[], ["--"], ["-w", "150"], ["--", "--bad"]])
def test_no_program_is_a_usage_error(machine, usage_error, words):
    message = usage_error("nsys", *words)
    assert message.endswith("; see fastprof nsys --help\n")
    assert "no PROGRAM given; example: fastprof nsys -w 150 -- python train.py" in message


@pytest.mark.parametrize("name", ["net%p", "", "sub/", ".sqlite"])
def test_a_name_that_nsys_would_change_is_a_usage_error(machine, usage_error, name):
    assert "expected a file name without %" in usage_error("nsys", "-o", name, *PROGRAM)


def test_options_of_the_report_are_looked_at_before_the_program_runs(machine, usage_error):
    assert "nonsense" in usage_error("nsys", "-c", "nonsense", *PROGRAM)
    assert "too small" in usage_error("nsys", "-w", "5", *PROGRAM)
    assert "not allowed with" in usage_error("nsys", "-w", "150", "--csv", *PROGRAM)
    assert machine.log == []
