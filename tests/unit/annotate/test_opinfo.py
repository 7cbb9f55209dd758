"""A part of torch's operator samples; `make opinfo` compares all of them."""

import os
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")
pytest.importorskip("expecttest", reason="torch's samples need it: pip install expecttest")

from support import torch_server

TESTS = Path(__file__).resolve().parents[2]


def swept(directory, *arguments, program=""):
    """The output of the sweep and its exit code."""
    imports = "import sys\nfrom unit.annotate import opinfo_sweep\n"
    code = f"{imports}{program}\nsys.exit(opinfo_sweep.main())"
    file = directory / "sweep.py"
    file.write_text(code)
    done = torch_server.run(file, *arguments, env={**os.environ, "PYTHONPATH": str(TESTS)})
    assert done.returncode in (0, 1), done.stderr
    return done.stdout, done.returncode


def test_operators_come_to_the_same_with_annotation_and_after_it(tmp_path):
    told, status = swept(tmp_path, "--ops", "8", "--dtypes", "float32,int64", "--seed", "3")
    assert status == 0, told
    assert int(re.search(r"(\d+) outcomes compared", told)[1]) > 50, told


def test_a_difference_is_found(tmp_path):
    # A faulty annotation that rounds the result of abs.
    program = """
import fastprof, torch
init, op = fastprof.init, opinfo_sweep.infos.op_db[0]
opinfo_sweep.all_ops = lambda: [op]
real = torch.abs
def broken():
    session = init()
    torch.abs = lambda x, **keywords: real(x, **keywords).round()
    return session
fastprof.init = broken
opinfo_sweep.ways = lambda op, sample, dtype: [("function", lambda: torch.abs(sample.input))]
"""
    told, status = swept(tmp_path, "--dtypes", "float32", program=program)
    assert status == 1 and "with annotation: function: " in told
