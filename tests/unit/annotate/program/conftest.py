"""Programs of tests that are recorded as by `fastprof run`, in forks of a process with torch.

The fixture `record` runs a source and returns what it left; `record_steps` runs it behind STEPS.
"""

import collections
import functools
import json
import shutil
import textwrap

import pytest

from fastprof.runs.facts import VARIABLE, Settings
from support import torch_server

STEPS = """
import os, signal, sys, threading, time, torch
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
def step():
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


class Recorded:
    """What a program of `fastprof run` has left."""

    def __init__(self, folder, done):
        self.done, self._folder = done, folder
        reports = [json.loads(path.read_text()) for path in folder.glob("status-*.json")]
        self.reports = sorted(reports, key=lambda each: -len(each["recordings"]))
        self.report = self.reports[0]
        self.recordings = self.report["recordings"]
        self.counts = [
            self._counts(recording["path"]) for recording in self.recordings if recording["path"]
        ]
        names = self.counts[0] if self.counts else {}
        self.layers = {
            name.removeprefix("layer:"): n for name, n in names.items() if name.startswith("layer:")
        }
        self.steps = [name for name in names if name.startswith("ProfilerStep#")]

    def remove(self):
        shutil.rmtree(self._folder)

    def _counts(self, path):
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        return collections.Counter(str(event.get("name")) for event in events)


@pytest.fixture
def record(tmp_path, monkeypatch):
    """`begin`: what precedes the begin of watching; `before`: what precedes the source."""

    def run(source, *arguments, code=0, begin="", before="", **settings):
        folder = tmp_path / "run"
        folder.mkdir()
        program = tmp_path / "program.py"
        program.write_text(begin + torch_server.BEGIN + before + textwrap.dedent(source))
        asked = Settings(**{"directory": str(folder), "first": 3, "last": 5, **settings})
        monkeypatch.setenv(VARIABLE, asked.to_environment())
        done = torch_server.run(program, *arguments)
        assert done.returncode == code, done.stderr
        return Recorded(folder, done)

    return run


@pytest.fixture
def record_steps(record):
    """As `record`, of a program that can make steps by `step()`."""
    return functools.partial(record, before=STEPS)
