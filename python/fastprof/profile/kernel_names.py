"""Short names of kernels, from demangled ones."""

from __future__ import annotations

# Prefixes that do not distinguish kernels. `<unnamed>` is Nsight Systems' spelling of the anonymous
# namespace; both spellings must go before the name is cut at its first `<` or `(`.
_LEFT_OUT = (
    "(anonymous namespace)::",
    "<unnamed>::",
    "void ",
    "at::",
    "cuda::",
    "native::",
)


def short_name(name: str) -> str:
    """The name up to `<` or `(`, without `void ` and common namespaces; spaces become `_`."""
    head = name
    for word in _LEFT_OUT[:2]:
        head = head.replace(word, "")
    head = head.split("<", 1)[0].split("(", 1)[0]
    for word in _LEFT_OUT[2:]:
        head = head.replace(word, "")
    return (head.strip() or name).replace(" ", "_")
