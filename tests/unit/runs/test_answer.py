"""After the program of `fastprof run`: the answer, the page, and commands that take runs.

The program here copies traces into the directory of the run.
"""

import json
import sys

import pytest

from fastprof.cli import main
from fastprof.runs import collect as page
from support.exports import Export
from support.kineto_files import KinetoFile

STEPS, KERNELS, STEP = 3, 2, 1000  # STEP: ns
COPIES = """
import json, os, pathlib, shutil, sys
directory = json.loads(os.environ["FASTPROF_RUN"])["directory"]
for path in sys.argv[1:]:
    shutil.copy(path, directory)
sys.exit(6)
"""

pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.fixture
def traces(tmp_path):
    """Traces of two ranks."""
    (tmp_path / "made").mkdir()
    made = []
    for rank in range(2):
        file = KinetoFile(distributedInfo={"rank": rank, "world_size": 2})
        for step in range(STEPS):
            at = STEP * step
            file.annotation(at, at + STEP, f"ProfilerStep#{step}")
            for number in range(KERNELS):
                start, corr = at + 100 + 200 * number, KERNELS * step + number + 1
                file.op(start, start + 90, "aten::mm").launch(start + 10, start + 20, corr)
                file.kernel(start + 100, start + 200, corr)
        made.append(file.write(tmp_path / "made" / f"trace.rank{rank}.json"))
    return made


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run the command; returns the directory of the run and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(COPIES)
    seen = set()

    def run(*paths, backend="torch"):
        code = main(["run", "--backend", backend, "program.py", *map(str, paths)])
        assert code == 6
        (folder,) = set(tmp_path.glob("fastprof-runs/*")) - seen
        seen.add(folder)
        return folder, capfd.readouterr().err

    return run


def test_a_page_and_the_step_are_kept(run, traces, capfd):
    folder, err = run(traces[0])
    assert err.endswith(f"kept in fastprof-runs/{folder.name}/report.html\n")
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    facts = json.loads((folder / "run.json").read_text())
    assert (facts["step_ns"], facts["kernels"]) == (STEP, KERNELS)
    assert main(["run", "--list"]) == 0
    heading, row = (line.split() for line in capfd.readouterr().out.splitlines())
    at = heading.index("step(us)") + 1  # a date and a time share a heading
    assert row[0] == folder.name and row[at : at + 2] == ["1.000", str(KERNELS)]


def test_ranks_are_compared_on_the_page(run, traces):
    folder, err = run(*traces)
    assert "2 ranks: fastprof ranks" in err
    assert "<title>2 ranks" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("error", "words"),
    [(OSError("disk full"), "the page failed: disk full"), (KeyError("x"), "a bug in fastprof")],
)
def test_without_a_page_there_is_an_answer(run, traces, monkeypatch, error, words):
    def fails(_):
        raise error

    monkeypatch.setattr(page, "page_of", fails)
    folder, err = run(traces[0])
    assert words in err and "3 steps" in err
    assert err.endswith(f"kept in fastprof-runs/{folder.name}\n")


def test_other_commands_take_the_name_of_a_run(run, traces, tmp_path, capfd):
    one, two = run(traces[0])[0].name, run(traces[1])[0].name
    assert main(["summary", one]) == 0 and "mm" in capfd.readouterr().out
    assert main(["diff", one, two]) == 0 and "total" in capfd.readouterr().out
    assert main(["report", one]) == 0
    assert (tmp_path / f"{one}.html").read_text().startswith("<!doctype html>")


def test_other_commands_take_a_run_of_ranks(run, traces, tmp_path, capfd):
    name = run(*traces)[0].name
    assert main(["summary", name]) == 0
    result = capfd.readouterr()
    assert "mm" in result.out and f"reads fastprof-runs/{name}/trace.rank0.json" in result.err
    assert main(["diff", name, name]) == 0 and "total" in capfd.readouterr().out
    assert main(["report", name]) == 0
    assert "<title>2 ranks" in (tmp_path / f"{name}.html").read_text()


NSYS = f"""#!{sys.executable}
import os, shutil, subprocess, sys
words = sys.argv[1:]
if words[1:] == ["--help"]:
    sys.exit("--pytorch=")
print("Collecting data...")
while words[1].startswith("-"):
    name, _, value = words.pop(1).partition("=")
    if name == "--output":
        output = value
mode = os.environ["FAKE_EXPORT"]
if mode == "no start":
    sys.exit("unrecognised option")
code = subprocess.run(words[1:], close_fds=False).returncode
if mode == "no importer":
    open(output + ".qdstrm", "w").close()
    print("Importer error status: The importer binary was not found.")
    print("Unable to retrieve the importer version.")
    print("Generated:", output + ".qdstrm", sep="\\n\\t")
else:
    shutil.copy(mode, output + ".sqlite")
sys.exit(code)
"""


@pytest.fixture
def nsys(tmp_path, monkeypatch):
    """A stand-in for nsys: `nsys(mode)` runs programs and copies the file `mode`, or fails."""
    path = tmp_path / "nsys"
    path.write_text(NSYS)
    path.chmod(0o755)
    monkeypatch.setenv("FASTPROF_NSYS", str(path))
    return lambda mode: monkeypatch.setenv("FAKE_EXPORT", str(mode))


def test_a_run_under_nsys_has_the_same_answer(run, nsys, traces, tmp_path, capfd):
    export = Export()
    for step in range(STEPS):
        at = STEP * step
        export.push_pop(at, at + STEP, f"ProfilerStep#{step}", tid=1)
        for number in range(KERNELS):
            start, corr = at + 100 + 200 * number, KERNELS * step + number + 1
            export.push_pop(start, start + 90, "aten::mm, seq = 0, op_id = 1", tid=1)
            export.launch(start + 10, start + 20, corr=corr, tid=1)
            export.kernel(start + 100, start + 200, corr=corr)
    export.write(tmp_path / "export.sqlite")
    nsys(tmp_path / "export.sqlite")
    name, err = run(backend="nsys")
    assert err.endswith(f"kept in fastprof-runs/{name.name}/report.html\n")
    by_torch = run(traces[0])[0]
    result = []
    for each in (name, by_torch):
        facts = json.loads((each / "run.json").read_text())
        assert main(["summary", "--by", "op", "--csv", each.name]) == 0
        result.append((facts["step_ns"], facts["kernels"], capfd.readouterr().out))
    assert result[0] == result[1]


REPORTS = """
import json, os, pathlib
directory = pathlib.Path(json.loads(os.environ["FASTPROF_RUN"])["directory"])
recording = {"path": None, "first": 10, "n_steps": 3}
report = {"pid": 1, "rank": 0, "world": 1, "steps": 13, "by": "optimizer", "problem": None}
report["recordings"] = [recording]
(directory / "status-1.json").write_text(json.dumps(report))
print("program")
"""


def test_nsys_that_leaves_no_export_is_reported(nsys, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(REPORTS)
    nsys("no importer")
    assert main(["run", "--backend", "nsys", "program.py"]) == 0
    out, err = capfd.readouterr()
    assert out == "program\n"
    assert (
        "nsys wrote trace.qdstrm, but did not import it: The importer binary was not found;" in err
    )
    assert "QdstrmImporter -i trace.qdstrm -o trace.nsys-rep" in err and "nsys.log" in err


def test_nsys_that_does_not_start_the_program_is_an_error(nsys, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    nsys("no start")
    assert main(["run", "--backend", "nsys", "program.py"]) == 1
    assert "nsys did not start the program: unrecognised option; see" in capfd.readouterr().err
    assert main(["run", "--backend", "nsys", "./no-such-program"]) == 1
    assert "./no-such-program: cannot be started: No such file" in capfd.readouterr().err


def test_a_run_without_a_trace_is_an_error(run, capfd):
    name = run()[0].name
    assert main(["summary", name]) == 1
    assert "is a directory" in capfd.readouterr().err
