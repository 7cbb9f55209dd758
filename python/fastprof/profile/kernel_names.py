"""A demangled kernel name to the short one that reports show."""

from __future__ import annotations

# Namespaces that say nothing of a kernel. `<unnamed>` is how Nsight Systems spells the anonymous
# one; both spellings must go before the name is cut at its first `<` or `(`.
_LEFT_OUT = (
    "(anonymous namespace)::",
    "<unnamed>::",
    "void ",
    "at::",
    "cuda::",
    "native::",
)


def short_name(name: str) -> str:
    """The name before `<` and `(`, without `void ` and the namespaces that every kernel has.

    Spaces become `_`, so that the name stays one word.
    """
    head = name
    for word in _LEFT_OUT[:2]:
        head = head.replace(word, "")
    head = head.split("<", 1)[0].split("(", 1)[0]
    for word in _LEFT_OUT[2:]:
        head = head.replace(word, "")
    return (head or name).replace(" ", "_")
