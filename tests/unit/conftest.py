"""Captures that tests build or generate, and what is in their rows."""

import functools
import os

import pytest
from bench.generate import generate

import fastprof
from fastprof.cli import main


@pytest.fixture
def opened(tmp_path):
    """A function from what a builder of traces has to its profile, with copies."""

    def read(trace, **options):
        path = trace.write(tmp_path / f"trace-{len(os.listdir(tmp_path))}")
        return fastprof.open(path, **{"copies": True, **options})

    return read


@pytest.fixture
def rows(opened):
    """A function from a trace and keys to one tuple per kernel, or a value for a single key."""

    def read(trace, *keys, copies=False):
        profile = opened(trace, copies=copies)
        assert profile.warnings == []
        found = [tuple(row[key] for key in keys) for row in profile.rows()]
        return found if len(keys) > 1 else [value for (value,) in found]

    return read


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """A function from a number of kernels and a seed to a generated capture, made once."""
    folder = tmp_path_factory.mktemp("generated")

    @functools.cache
    def make(n_kernels, seed=1):
        path = folder / f"net-{n_kernels}-{seed}.sqlite"
        generate(path, n_kernels, seed)
        return path

    return make


@pytest.fixture(scope="session")
def trace(generated):
    """A generated capture of 1000 kernels."""
    return generated(1000)


@pytest.fixture(scope="module")
def profile(trace):
    """The profile of `trace`, with copies."""
    return fastprof.open(trace, copies=True)


@pytest.fixture
def usage_error(capfd):
    """A function from the words of a command that are a usage error to its message."""

    def refused(*words):
        with pytest.raises(SystemExit) as caught:
            main([*words])
        assert caught.value.code == 2
        return capfd.readouterr().err

    return refused
