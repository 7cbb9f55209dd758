"""Names of autograd nodes, and their similarity to operator names.

Generated nodes are named after the operator in CamelCase, plus `Backward` and, since PyTorch 1.10,
a number: `NativeLayerNormBackward0`. The node of a custom Python function `Foo` is `FooBackward`,
that of a C++ function `torch::autograd::CppNode<Foo>`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from fastprof._system.regex import regex
from fastprof.model.markers.meaning import EVALUATE
from fastprof.model.markers.torch_names import node_of

SAME: Final = 1.0  # likeness: the operator's name has all words of the node's name
WEAK: Final = 0.01  # likeness factor for torch's operators that have only some of them

_CPP_NODE = regex(r"torch::autograd::CppNode<(.*)>\Z", re.DOTALL)
_TEMPLATE = regex(r"[<(].*", re.DOTALL)
_END = regex(r"Backwards?\d*\Z")
_GENERATED = regex(r"(?:Backward\d+|CopyBackwards|CopySlices|AccumulateGrad|GraphRoot)\Z")
_WORD = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHORTEST = 3  # letters of a significant word
# Words unrelated to the computation.
_NOISE = frozenset(
    {"autograd", "backward", "cpp", "cuda", "fn", "forward", "func", "function", "functional"}
    | {"gpu", "grad", "impl", "node", "op", "torch"}
)
_ATEN = frozenset({"aten", "prim", "prims"})


def is_custom(name: str) -> bool:
    """Whether a node may belong to a custom function.

    Some generated nodes of PyTorch 1 have no number either; compare the operator's name.
    """
    return _GENERATED.search(name.removeprefix(EVALUATE)) is None


def is_cpp(name: str) -> bool:
    """Whether a node belongs to a custom C++ function."""
    return _CPP_NODE.search(name.removeprefix(EVALUATE)) is not None


def is_foreign(name: str, mod: str) -> bool:
    """Whether an operator's namespace, `mod`, is not torch's."""
    return "::" in name and mod not in _ATEN


@lru_cache(1 << 14)
def likeness(node: str, mod: str, op: str) -> float:
    """Similarity of an operator's and a node's name: the fraction of the node's words in common.

    2 if the names are equal except for case and punctuation. Torch's own operators create no custom
    nodes: 0 for a C++ node, and a small value for nodes that PyTorch 1 may have generated.
    """
    name = _plain(node)
    joined = _joined(name)
    words, of_op = _words(name), _words(op)
    if joined and joined == _joined(op):
        score = 2.0
    else:
        common = {word for word in words & of_op if len(word) >= _SHORTEST}
        score = len(common) / len(words) if words else 0.0
    if mod in _ATEN and score < SAME:
        return 0.0 if is_cpp(node) else score * WEAK
    return score


def _plain(node: str) -> str:
    """The name of a node without prefixes, templates and namespaces."""
    name = node_of(node)
    made_of = _CPP_NODE.match(name)
    plain = _TEMPLATE.sub("", made_of[1] if made_of else name.replace("(anonymous namespace)", ""))
    return plain.rstrip(": ").rsplit("::", 1)[-1]


def _joined(text: str) -> str:
    return re.sub("[^a-z0-9]", "", _END.sub("", text).lower().replace("forward", ""))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text)) - _NOISE
