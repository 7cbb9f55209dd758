"""Write the list of all messages in docs/messages.md from the code: `python docs/make_messages.py`.

The tables above the list, with causes and what to do, are written by hand; a test finds quotations
there that the code does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "fastprof"
PAGE = ROOT / "docs" / "messages.md"
MARK = "## All messages\n"
# Folders of the code, and what they are to a reader. Reasons of unknown costs are in columns.md.
TOPICS = {
    "readers": "Input files",
    "profile": "Input files",
    "api": "Python",
    "cli": "Command line",
    "mcp": "fastprof mcp",
    "analysis": "Reports and comparisons",
    "model": "Columns, GPUs, tables",
    "page": "Pages",
    "exports": "Exports and dict lines",
    "writers": "Exports and dict lines",
    "ranks": "Many ranks",
    "annotate": "Annotation and recording",
    "runs": "fastprof run",
    "ops": "Operators of yours",
    "_system": "Files and packages",
}
_OWN = ("log", "error", "warn")  # functions that print one message
_INNER = frozenset(
    {"CannotModel", "ValueError", "TypeError", "AttributeError", "KeyError", "FrozenInstanceError"}
)


def text_of(node: ast.expr) -> str:
    """The text of an expression, with … for what is only known when it runs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return "…"


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls whose first argument is a message."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = _name(node.exc)
            if name.endswith("Error") and name not in _INNER:
                yield node.exc
        elif isinstance(node, ast.Call) and _name(node) in _OWN:
            yield node


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@cache
def messages() -> dict[str, list[str]]:
    """The messages of each topic, in alphabetical order; those without a word are left out."""
    found: dict[str, set[str]] = {topic: set() for topic in TOPICS.values()}
    for path in PACKAGE.rglob("*.py"):
        topic = TOPICS.get(path.relative_to(PACKAGE).parts[0])
        for call in _calls(ast.parse(path.read_text("utf-8"))) if topic else ():
            text = " ".join(text_of(call.args[0]).split()) if call.args else ""
            while "……" in text:
                text = text.replace("……", "…")
            if topic and len([word for word in text.split() if word.strip("…:;,.'")]) > 1:
                found[topic].add(text)
    return {topic: sorted(texts, key=str.lower) for topic, texts in found.items() if texts}


def page() -> str:
    """docs/messages.md with the list of today."""
    above = PAGE.read_text("utf-8").partition(MARK)[0].rstrip("\n")
    lines = [above, "", MARK.rstrip("\n"), ""]
    lines += ["<!-- Made by docs/make_messages.py from the code. -->", ""]
    lines += ["Each with the name of the file, option or value where `…` stands."]
    for topic, texts in messages().items():
        lines += ["", f"### {topic}: messages", "", "```text", *texts, "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
