"""The critical path of a run across ranks."""

from pathlib import Path

import pytest
from bench.ranks import faults, programs, truth

from fastprof.api.ranks import Ranks
from support.simulated_ranks import read


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """Four ranks; one loads data for 5 ms more, another computes 1.3 times as long."""
    folder: Path = tmp_path_factory.mktemp("run")
    late = [faults.Data(rank=3, ns=5_000_000), faults.Gpu(rank=1, factor=1.3)]
    truth.write(folder, programs.ddp(4), steps=5, seed=2, faults=late)
    return read(folder)


def test_the_path_is_as_long_as_the_steps(run: Ranks) -> None:
    path, table = run.critical_path(), run.path()
    assert path.total == pytest.approx(run.step_ns, rel=0.01)
    assert sum(table["path_ns"].tolist()) == pytest.approx(path.total)
    assert sum(table["path_share"].tolist()) == pytest.approx(1.0)


def test_the_path_is_that_of_the_late_rank(run: Ranks) -> None:
    path = run.critical_path()
    rank, share = path.by_rank()[0]
    assert run.numbers[rank] == 3 and share > 0.5
    assert path.ns[rank, "data loading"] == pytest.approx(5.3e6, rel=0.05)  # 0.3 ms without it
    assert "critical path: " in "\n".join(run.lines())


def test_with_a_change_the_path_is_another(run: Ranks) -> None:
    path = run.critical_path("no-data-loading:3")
    rank, share = path.by_rank()[0]
    assert run.numbers[rank] == 1 and share > 0.5
    step = run.what_if("no-data-loading:3")["step_ns"][1]
    assert path.total == pytest.approx(step, rel=0.02)


def test_an_unknown_change_is_an_error(run: Ranks) -> None:
    with pytest.raises(ValueError, match="unknown change 'faster'"):
        run.path("faster")
