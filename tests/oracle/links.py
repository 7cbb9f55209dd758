"""Directions, and the forward call of backward work."""

from collections import defaultdict

from oracle.capture import Capture, Kernel, Range
from oracle.nodes import CPP_NODE, fits, is_evaluation, is_node, node_of, shared_words

FORWARD, BACKWARD = "fprop", "bprop"


def is_recomputation(each: Range) -> bool:
    """Whether a range encloses forward work that activation checkpointing repeats."""
    if each.kind == "frame":
        return "checkpoint.py(" in each.name and each.name.endswith(": recompute_fn")
    return node_of(each.name).startswith("CheckpointFunctionBackward")


def deciding(chain: list[Range]) -> Range | None:
    """The range that determines the direction of work in a chain: the innermost that has one."""
    for each in chain:
        if is_recomputation(each):
            return each
        if each.kind == "op" and is_node(each.name):
            return each
    return None


def direction(capture: Capture, kernel: Kernel) -> str | None:
    """fprop, bprop, or None outside all operators."""
    chain = kernel.range.chain() if kernel.range else []
    decides = deciding(chain)
    if decides is not None:
        return FORWARD if is_recomputation(decides) else BACKWARD
    if kernel.thread in capture.autograd_threads:
        return BACKWARD
    return FORWARD if any(each.kind in ("op", "marker") for each in chain) else None


class Links:
    """The forward call of each backward node.

    Where the file has an arrow for it, that; else of the operators that carry its number, started
    before and do no backward work, the latest to start whose name is the node's. A node that no
    name fits is a custom function's. PyTorch gives an operator the number of the node that is made
    next, so this node was made after the last operator with its number began and before the first
    with a higher one: its call is the operator of that gap whose words are the node's, and where
    none has any, the outermost that carries the number.
    """

    def __init__(self, capture: Capture) -> None:
        self._operators: dict[object, list[Range]] = defaultdict(list)
        self._carriers: dict[object, list[Range]] = defaultdict(list)
        self._decided: dict[Range | None, Range | None] = {None: None}
        for range_ in sorted(capture.ranges, key=lambda r: r.start):
            if range_.kind != "op":
                continue
            inside = self._deciding(range_)
            if inside is None or is_recomputation(inside):
                self._operators[range_.thread].append(range_)
                if range_.seq is not None and range_.seq >= 0:
                    self._carriers[range_.thread[0], range_.seq].append(range_)

    def _deciding(self, each: Range) -> Range | None:
        """`deciding` of a range and those around it, which it is asked for once each."""
        inner, around = [], each
        while around not in self._decided:
            inner.append(around)
            around = around.parent
        for around in reversed(inner):
            own = deciding([around])
            self._decided[around] = self._decided[around.parent] if own is None else own
        return self._decided[each]

    def node(self, chain: list[Range]) -> Range | None:
        """The node that a backward kernel works for: the outermost below the evaluation."""
        result = None
        for each in chain:
            if is_recomputation(each):
                break
            if each.kind == "op" and is_evaluation(each.name):
                return result or each
            if each.kind == "op" and is_node(each.name):
                result = each
        return result

    def forwards(self, node: Range) -> list[Range]:
        """The candidate calls: one if the name or a flow identifies it, none if not recorded."""
        name = node_of(node.name)
        told = node.told_forward or next(
            (child.told_forward for child in node.children if child.told_forward), None
        )
        carriers = [
            carrier
            for carrier in self._carriers[node.thread[0], node.seq if node.seq is not None else -1]
            if carrier.start < node.start
        ]
        fitting = [carrier for carrier in carriers if fits(name, carrier.name)]
        if told is not None and fits(name, told.name):
            return [told]
        if fitting:
            return [fitting[-1]]
        latest = told or (carriers[-1] if carriers else None)
        if latest is not None:
            return self._custom(name, latest) or [_outermost(latest)]
        return self._uncarried(node, name) if name.startswith(CPP_NODE) else []

    def _custom(self, name: str, latest: Range) -> list[Range]:
        """The operators that can have made a node after an operator with its number, or with the
        last below it, began."""
        if name.endswith("DifferentiableGraphBackward"):  # of any fusion of TorchScript
            return [each for each in latest.chain() if each.kind == "op"]
        operators = self._operators[latest.thread]
        after = operators[operators.index(latest) :]
        end = next((call.start for call in after if (call.seq or -1) > latest.seq), latest.end)
        gap = [*latest.chain(), *(each for each in after if each.start < end)]
        words = {id(each): shared_words(name, each.name) for each in gap}
        most = max(words.values())
        return [each for each in gap if most > 1 and words[id(each)] == most]

    def _uncarried(self, node: Range, name: str) -> list[Range]:
        """The same of a number that no operator carries: all began after another node was made."""
        result = []
        for operators in self._operators.values():
            below = [
                operator
                for operator in operators
                if operator.thread[0] == node.thread[0]
                and operator.start < node.start
                and -1 < (operator.seq or -1) < (node.seq or -1)
            ]
            if below:
                last = max(below, key=lambda each: (each.seq, each.start))
                result += self._custom(name, last)
        return result


def _outermost(carrier: Range) -> Range:
    """The outermost operator around a carrier that began when its number was the next."""
    for call in carrier.chain():
        if call.kind == "op" and call.seq in (None, carrier.seq) and not is_node(call.name):
            carrier = call
    return carrier
