"""Which NVTX tool ranges go to."""

import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx")

from fastprof.annotate.text import tool_domain

DOMAIN = """
import nvtx
from fastprof.annotate.text import tool_domain
nvtx.get_domain = lambda name=None: nvtx._lib.lib.dummy_domain  # as under nsys 2023.4
for domain in (tool_domain(), tool_domain("mine")):
    domain.push_range(domain.get_event_attributes(message="hidden by nvtx"))
    domain.pop_range()
"""


def test_without_a_tool_there_is_no_domain(monkeypatch):
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    monkeypatch.setattr(sys.modules["nvtx"], "get_domain", lambda name: DummyDomain())
    assert tool_domain() is None


class DummyDomain:
    """What nvtx returns without a tool."""


def test_a_tool_that_reports_its_domains_as_disabled_gets_ranges(record_nvtx):
    recording = record_nvtx(DOMAIN)
    assert recording.texts() == ["hidden by nvtx"] * 2
    assert [range_.domain for range_ in recording.ranges] == [None, "mine"]
