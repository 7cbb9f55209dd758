"""The list of messages in docs/messages.md, and their style."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

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
# Words that are no explanation, or an apology; "got": wrong values are quoted after the expected.
AVOIDED = re.compile(r"!|\b(please|sorry|oops|illegal|invalid argument|got)\b", re.IGNORECASE)


def style_problem(text: str) -> str:
    """What is wrong with the style of a message; "" if nothing."""
    if text.endswith("."):
        return "a full stop"
    if text[0].isupper() and not text.startswith(NAMES):
        return "a capital"
    avoided = AVOIDED.search(text)
    return avoided[0] if avoided else ""


def test_the_list_is_that_of_the_code():
    assert MESSAGES.PAGE.read_text("utf-8") == MESSAGES.page(), "run: python docs/make_messages.py"


def test_a_message_is_one_plain_line():
    texts = [text for texts in MESSAGES.messages().values() for text in texts]
    assert len(texts) > 180
    assert {text: problem for text in texts if (problem := style_problem(text))} == {}
    for wrong in ("no such file.", "No such file", "stop!", "please wait", "expected 1, got 2"):
        assert style_problem(wrong)
