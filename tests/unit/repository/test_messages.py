"""The list of messages in docs/messages.md, and their style."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
# What a message may begin with in capitals: names.
NAMES = ("FASTPROF_", "SQLite", "PyTorch", "FastprofProfiler")


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("messages", ROOT / "docs" / "make_messages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MESSAGES = _module()
TEXTS = [text for texts in MESSAGES.messages().values() for text in texts]


def test_the_list_is_that_of_the_code():
    assert MESSAGES.PAGE.read_text("utf-8") == MESSAGES.page(), "run: python docs/make_messages.py"
    assert len(TEXTS) > 180


@pytest.mark.parametrize("text", TEXTS)
def test_a_message_is_one_plain_line(text):
    assert not text.endswith((".", "!")) and "!" not in text
    assert not text[0].isupper() or text.startswith(NAMES)
    words = re.findall(r"[a-z]+", text.lower())
    assert not {"please", "sorry", "oops", "invalid argument", "illegal"} & set(words)
    # Wrong values are quoted after what was expected.
    assert "but got" not in text and "got " not in text.replace("forgot ", "")
