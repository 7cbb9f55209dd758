"""The pictures of README and docs show what the pages show today."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fastprof

ROOT = Path(__file__).resolve().parents[3]


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "make_pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pictures"] = module
    spec.loader.exec_module(module)
    return module


PICTURES = _module()


@pytest.mark.parametrize("picture", PICTURES.PICTURES, ids=lambda each: each.name)
def test_a_picture_is_that_of_the_page(picture, tmp_path):
    if picture.trace is not None and not picture.trace.exists():
        pytest.skip("needs the real traces")
    profile = fastprof.open(picture.trace or PICTURES.demo(tmp_path))
    shown = PICTURES.source_of(PICTURES.IMAGES / picture.name)
    assert shown == PICTURES.digest(profile), "stale: run make pictures"


def test_a_picture_keeps_its_digest():
    data = (PICTURES.IMAGES / "report.png").read_bytes()
    again = PICTURES.with_source(data, "abc")
    assert b"abc" in again and again[:8] == data[:8]
    assert [kind for kind, _ in PICTURES._chunks(again)][:2] == [b"IHDR", b"tEXt"]
