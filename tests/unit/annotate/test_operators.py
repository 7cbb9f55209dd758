"""torch's operator database: all operators give unchanged results."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="no torch: pip install torch")
pytest.importorskip("nvtx", reason="no nvtx: pip install nvtx")
from support import torch_server
from support.hypothesis_profiles import IS_FULL

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("annotated_operators.py")
N_SAMPLES = 2 if IS_FULL else 1  # of each operator


@pytest.fixture(scope="module")
def found():
    if importlib.util.find_spec("expecttest") is None:
        pytest.skip("torch's database of operators needs expecttest: pip install expecttest")
    run = torch_server.run(PROGRAM, str(N_SAMPLES), env={**os.environ, "PYTHONPATH": str(TESTS)})
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_operators_return_raise_and_differentiate_as_without_annotation(found):
    assert found["calls"] > 1250 * N_SAMPLES
    assert found["differ"] == []


def test_most_of_the_operators_in_the_database_are_wrapped(found):
    assert found["wrapped"] > 0.8 * found["calls"]


def test_operators_have_as_many_ranges_under_the_profiler_as_under_a_tool(found):
    nobody, profiled, tool = found["ranges"].values()
    assert nobody == 0 and profiled == tool > 2 * found["wrapped"]


def test_ranges_of_operators_nest_and_are_closed(found):
    assert found["nested"] == [True, True, True]
