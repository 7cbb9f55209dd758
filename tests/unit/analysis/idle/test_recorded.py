"""`idle` on loops that torch.profiler recorded on the CPU, with a simulated GPU."""

from pathlib import Path

import pytest

import fastprof
from support import torch_server
from unit.analysis.simulated_gpu import with_gpu

PROGRAM = Path(__file__).with_name("idle_loops.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loops")
    torch_server.run(PROGRAM, folder, check=True)
    return folder


@pytest.mark.parametrize(
    ("loop", "cause", "place", "value"),
    [
        ("with_item", "host-bound", "line", "with_item"),  # it sleeps after the copy
        ("with_slow_loader", "data loading", "range", "DataLoader"),
        ("with_slow_python", "host-bound", "line", "with_slow_python"),
    ],
)
def test_a_loop_with_one_cause(folder: Path, loop: str, cause: str, place: str, value: str) -> None:
    path = with_gpu(folder / f"{loop}.json", folder / f"{loop}.gpu.json", kernel_us=50.0)
    table = fastprof.open(path, copies=True, mine=PROGRAM.name).idle()
    row = next(table.rows())
    assert row["cause"] == cause
    assert row["ns"] > 0.8 * table.total["ns"]
    assert value in row[place]
    assert row["line"].endswith(loop)


def test_item_takes_the_time_until_the_host_is_back(folder: Path) -> None:
    path = with_gpu(folder / "with_item.json", folder / "with_item.gpu.json", kernel_us=50.0)
    profile = fastprof.open(path, copies=True, mine=PROGRAM.name)
    ns = {row["cause"]: row["ns"] for row in profile.idle().rows()}
    gaps = sum(row["ns"] > 50_000_000 for row in profile.idle(gaps=1000).rows())
    assert 0 < ns["blocking copy"] <= 60_000 * (gaps + 1)
