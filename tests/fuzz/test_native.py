"""The C readers under the coverage-guided fuzzer, a few seconds each; `make fuzz` takes longer."""

import pytest

from fuzz import native
from support.hypothesis_profiles import IS_FULL
from support.waiting import PATIENCE

SECONDS = 2 if IS_FULL else 1  # of each reader


@pytest.fixture(autouse=True)
def needs_a_compiler():
    if native.why_not():
        pytest.skip(native.why_not())


@pytest.mark.parametrize("target", native.TARGETS)
def test_no_input_breaks_a_reader(target, tmp_path):
    program = native.build(target, tmp_path)
    done = native.run(program, native.inputs_of(target), SECONDS)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_what_is_planted_is_found(tmp_path):
    """Four bytes, one after the other: by chance alone it would take 4 000 000 000 runs."""
    done = native.run(native.build("planted", tmp_path), [], PATIENCE)
    assert done.returncode != 0
    assert "planted.c" in done.stderr
    (crash,) = tmp_path.glob("crash-*")
    assert crash.read_bytes().startswith(b"secr")
