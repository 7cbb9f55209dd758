"""Names of autograd nodes, and their possible forward operators.

PyTorch's code generator names a node after its operator, in camel case: `_log_softmax` has
`LogSoftmaxBackward0` (tools/autograd/gen_autograd_functions.py). A custom function's node is named
after the class: `LookupFunctionBackward`; in C++ `torch::autograd::CppNode<LookupFunction>`.
"""

import re
from functools import cache

ENGINE = "autograd::engine::evaluate_function: "
CPP_NODE = "torch::autograd::CppNode<"
_NODE = re.compile(
    r"[A-Z]\w*Backward[0-9]*\Z|CopySlices\Z|CopyBackwards\Z|torch::autograd::(?!.*>::)|"
    r"torch::jit::.*DifferentiableGraphBackward\Z|(?:\w+::)*\w+Backward[0-9]*\Z"
)


def is_evaluation(name: str) -> bool:
    return name.startswith(ENGINE)


@cache
def is_node(name: str) -> bool:
    """Whether a range's name is that of an autograd node, or of its evaluation."""
    return is_evaluation(name) or _NODE.match(name) is not None


def node_of(name: str) -> str:
    return name.removeprefix(ENGINE)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


@cache
def operator_of(node: str) -> str | None:
    """The plain name of a node's operator; None if the name does not identify it."""
    match = re.match(r"([A-Za-z]\w*?)Backwards?[0-9]*\Z", node)
    return _plain(match[1]) if match else None


@cache
def plain_operator(name: str) -> str:
    """The lower-case name of the nodes of `aten::_log_softmax`, `aten::relu_`, ..."""
    bare = name.rpartition("::")[2]
    return _plain(re.sub(r"_forward\Z", "", bare))


def fits(node: str, operator: str) -> bool:
    """Whether the node can be the derivative of an operator of that name."""
    return operator_of(node) == plain_operator(operator)


@cache
def _words(name: str) -> frozenset[str]:
    """The significant words: `SplitLookupFunction_rowwise_Op` -> split, lookup, rowwise."""
    result = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", name)
    plain = frozenset(each.lower() for each in result)
    return plain - {"function", "op", "aten", "torch", "autograd", "cpp"}


def shared_words(node: str, operator: str) -> int:
    """The number of words of a custom function's node in an operator's name."""
    return len(_words(node) & _words(operator.rpartition("::")[2]))
