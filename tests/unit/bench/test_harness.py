"""The runner's arithmetic and texts on invented figures, and the contenders on a small run."""

import json

import pytest
from bench import instructions, publish, startup
from bench import run as bench_run
from bench import stages as bench_stages
from bench.__main__ import COMMANDS
from bench.__main__ import main as bench_main
from bench.contenders import CONTENDERS, FLOOR, NAIVE, OPEN, PARSE, PYTHON, WALK, Files
from bench.figures import Figures, Run, SizeFigures
from bench.generate import generate
from bench.measure import measure
from bench.report import page
from bench.run import complaints
from bench.targets import targets

MILLION = 10**6
LEAST = {
    FLOOR: 0.7,
    OPEN: 0.4,
    PARSE: 2.0,
    PYTHON["open"]: 14.0,
    PYTHON["parse"]: 22.0,
    NAIVE: 70.0,
}


def size_of(n_kernels, left_out=()):
    figures = {
        name: Figures([seconds * n_kernels / MILLION], [seconds], 2 * n_kernels)
        for name, seconds in LEAST.items()
        if name not in left_out
    }
    return SizeFigures(n_kernels, 0, 0, n_kernels, figures)


@pytest.fixture
def run():
    return Run({"commit": "abc"}, [size_of(MILLION // 10), size_of(MILLION, left_out=[NAIVE])])


def line_of(run, name):
    return next(line for line in page(run).splitlines() if line.startswith(f"{name:<22}"))


def test_a_contender_that_cannot_bear_a_size_is_extrapolated_and_marked(run):
    assert run.seconds(NAIVE, MILLION) == (pytest.approx(70), False)
    assert run.against_naive(PARSE, MILLION) == (pytest.approx(35), False)
    assert run.against_naive(PARSE, MILLION // 10) == (pytest.approx(35), True)
    assert "~35.0" in line_of(run, PARSE)
    assert "~70.000" in line_of(run, NAIVE)


def test_one_that_failed_is_not_extrapolated(run):
    run.sizes[1].contenders[PARSE].error = "no memory"
    assert run.seconds(PARSE, MILLION) == (None, False)
    assert line_of(run, PARSE).endswith("no memory")
    assert "missed: parse: floors not measured (<= 3)" in page(run)


def test_a_reader_may_be_faster_than_the_floor(run):
    assert run.floors(OPEN, MILLION) == pytest.approx(0.4 / 0.7)
    assert "0.57" in line_of(run, OPEN)


def test_the_page_marks_the_targets_that_are_missed(run):
    met = {(target.contender, target.figure): target.is_met for target in targets(run)}
    assert met[OPEN, "floors"]
    assert met[OPEN, "x naive"]
    assert not met[PARSE, "x naive"]
    assert not met[OPEN, "x one core"]
    assert line_of(run, PARSE).endswith("MISSED")
    assert line_of(run, FLOOR).endswith(str(MILLION // MILLION))
    lines = page(run).splitlines()
    assert f"targets met: {sum(met.values())} of {len(met)}" in lines
    assert "  missed: parse: x naive 35 (>= 40)" in lines
    assert "  missed: open: x one core not measured (>= 1.4)" in lines


def test_the_page_is_one_page(run):
    lines = page(run).splitlines()
    assert len(lines) <= 64
    assert max(map(len, lines[1:])) <= 100


def test_growth_is_the_time_a_kernel_against_a_tenth_of_the_kernels(run):
    assert run.growth(OPEN, MILLION) == pytest.approx(1)
    assert run.growth(NAIVE, MILLION) is None
    run.sizes.append(size_of(10 * MILLION))
    growth = {e.contender: e.value for e in targets(run) if e.figure.startswith("ns/kernel")}
    assert growth[OPEN] == pytest.approx(1)


def test_figures_come_back_from_their_file(run, tmp_path):
    run.write(tmp_path / "figures.json")
    assert Run.read(tmp_path / "figures.json") == run


def test_the_kept_figures_make_the_table_that_the_document_shows():
    run = Run.read(publish.ROOT / "bench" / "figures.json")
    page = (publish.ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert publish.table(run) in page
    assert publish.machine_line(run) in page


def test_the_table_goes_between_its_marks_and_only_there(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{publish.BEGIN}\nold\n{publish.END}\nafter\n")
    publish.put_into(readme, "new")
    publish.put_into(readme, "newer")
    assert readme.read_text() == f"before\n{publish.BEGIN}\n\nnewer\n\n{publish.END}\nafter\n"


def test_a_wrong_number_of_kernels_is_a_complaint(run):
    assert complaints(run) == []
    run.sizes[0].contenders[PARSE].rows = 99
    assert complaints(run) == ["100000 kernels: parse found 99"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    generate(folder / "run.sqlite", 500)
    made = Files(folder / "run.sqlite", folder / "dict", folder / "output")
    CONTENDERS[PARSE].run(Files(made.export, made.dict_file, made.dict_file))
    return made


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_finds_every_kernel(name, files, capsys):
    result = measure(CONTENDERS[name], files, counts=True)
    has_kernels = name not in (FLOOR, WALK) and CONTENDERS[name].has_kernels
    assert result["rows"] == (500 if has_kernels else None)
    assert result["seconds"] > 0
    assert result["peak_bytes"] > 0
    files.output.unlink(missing_ok=True)


def test_stages_add_up_and_leave_the_library_as_it_was(files, capsys):
    before = [getattr(*bench_stages._owner(p)) for s in bench_stages.STAGES.values() for p in s]
    stages = bench_stages.stages(PARSE, files, repeat=1)
    assert before == [
        getattr(*bench_stages._owner(p)) for s in bench_stages.STAGES.values() for p in s
    ]
    assert set(stages.seconds) == {*bench_stages.STAGES, bench_stages.REST}
    for stage in ("scan", "join", "path", "link", "cost", "write"):
        assert stages.seconds[stage] + stages.others[stage] > 0, stage
    assert all(stages.others[s] > 0 for s in ("scan", "nest", "path"))
    assert stages.seconds["scan"] < stages.total
    assert "scan" in bench_stages.table({PARSE: stages})


def test_a_stage_that_grew_by_more_than_a_tenth_is_said():
    lines = instructions.compare({"nest": 100, "join": 100, "old": 5}, {"nest": 110, "join": 111})
    assert "GREW" not in lines[0]
    assert "GREW" in lines[1]
    assert "gone" in lines[2]


def test_counts_come_back_from_their_file(tmp_path):
    instructions.write_kept(tmp_path / "kept.tsv", "gcc 12", {"nest": 5})
    assert instructions.read_kept(tmp_path / "kept.tsv") == ("gcc 12", {"nest": 5})
    assert instructions.read_kept(tmp_path / "none.tsv") == ("none", {})


def test_without_valgrind_instructions_are_skipped_with_the_reason(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.argv", ["bench", "instructions"])
    assert bench_main() == 0
    reason = f"{instructions.compiler()} is not on the PATH; install it"
    assert capsys.readouterr().out == f"instructions: skipped: {reason}\n"


def test_one_help_lists_all_commands(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench", "--help"])
    with pytest.raises(SystemExit):
        bench_main()
    shown = capsys.readouterr().out
    assert all(f"\n    {name}" in shown for name in COMMANDS)
    assert "--smoke" in shown


def test_without_a_command_all_contenders_are_measured(run, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(bench_run, "measure_size", lambda n, options: size_of(n))
    arguments = ["--kernels", "1e6", "--kernels", "1e5", "--json", str(tmp_path / "out.json")]
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    assert bench_main() == 0
    kept = Run.read(tmp_path / "out.json")
    assert [size.n_kernels for size in kept.sizes] == [MILLION // 10, MILLION]
    assert page(kept) in capsys.readouterr().out


@pytest.mark.parametrize("text", ["many", "-1", "1.5"])
def test_a_number_of_kernels_that_is_none_is_a_usage_error(text, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["bench", "generate", f"--kernels={text}", "-o", "x.sqlite"])
    with pytest.raises(SystemExit):
        bench_main()
    assert f"expected a number such as 1000 or 1e6, found '{text}'" in capsys.readouterr().err


def test_kept_figures_are_small():
    kept = publish.ROOT / "bench" / "figures.json"
    assert json.loads(kept.read_text())["machine"]["commit"]
    assert kept.stat().st_size < 20_000
    assert (publish.ROOT / "docs" / "bench.png").stat().st_size < 100_000


def test_startup_is_measured_as_ratios(tmp_path, capsys, monkeypatch):
    file = tmp_path / "net.sqlite"
    generate(file, 200)
    monkeypatch.setattr("sys.argv", ["bench", "startup", "--repeat", "1", str(file)])
    assert bench_main() == 0
    printed = capsys.readouterr().out
    assert "net.sqlite" in printed and "targets: 2.2 imports" in printed


def test_a_command_that_fails_has_no_time():
    with pytest.raises(RuntimeError, match="exit code 3"):
        startup.processor_time(("-c", "raise SystemExit(3)"))
