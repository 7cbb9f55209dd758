"""The benchmark of `fastprof batch` and `fastprof ranks` on large files, on small ones."""

from pathlib import Path

import pytest
from bench.ranks import programs, reading
from bench.ranks.program import Collective


@pytest.mark.parametrize(("bucket", "n"), [(1, 6), (4, 2), (6, 1)])
def test_a_bucket_has_the_gradients_of_some_blocks(bucket: int, n: int) -> None:
    program = programs.ddp(2, blocks=6, bucket=bucket)
    sizes = [op.elements for op in program.step if isinstance(op, Collective)]
    every = programs.ddp(2, blocks=6)
    assert len(sizes) == n
    assert sum(sizes) == sum(op.elements for op in every.step if isinstance(op, Collective))


def test_both_commands_are_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reading.main([str(tmp_path), "--kernels", "600", "--rounds", "1", "-j", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines[:2]] == [
        ["-j", "1", "fastprof", "batch"], ["-j", "1", "fastprof", "ranks"],
    ]  # fmt: skip
    assert lines[2].startswith("-j 1  ratio")
    assert len(list(tmp_path.glob("rank*.sqlite"))) == 2
