"""What tests of the rows of a profile have in common."""

import pytest

import fastprof


@pytest.fixture
def told(tmp_path):
    """A function from a Program and keys to their values in the rows of its trace."""

    def read(program, *keys):
        profile = fastprof.open(program.trace.write(tmp_path / "trace.json"))
        return [tuple(row[key] for key in keys) for row in profile.rows()]

    return read
