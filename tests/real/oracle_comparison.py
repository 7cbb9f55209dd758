"""Differences between the oracle and fastprof, by kernel and by call."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from oracle.capture import Capture, Kernel, Range
from oracle.flops import PRODUCTS, bare
from oracle.links import BACKWARD, Links, direction
from oracle.nodes import fits, node_of, operator_of, plain_operator
from oracle.work import Work, call_of, innermost
from real.profiled import Place, Row

# The op of separate kernels that add a bias or sum its gradient.
BIAS = "bias"


@dataclass(frozen=True)
class Difference:
    """A difference, without the numbers of its row, so equal ones can be counted."""

    check: str
    what: str


class Comparison:
    """The oracle's capture and fastprof's rows of the same file."""

    def __init__(self, capture: Capture, rows: list[Row]) -> None:
        self.capture = capture
        self.links = Links(self.capture)
        self.work = Work(self.capture.ranges, self.capture.kernels, self.links)
        self.pairs = list(pairs(self.capture.kernels, rows))

    def differences(self) -> Counter[Difference]:
        """The number of occurrences of each difference."""
        result: Counter[Difference] = Counter()
        for kernel, row in self.pairs:
            result.update(self._of_row(kernel, row))
        result.update(self._of_calls())
        return result

    def _of_row(self, kernel: Kernel, row: Row) -> Iterator[Difference]:
        chain = kernel.range.chain() if kernel.range else []
        if row.launched != kernel.launched:
            yield Difference("launch", f"{row.name[:60]}: another launch")
        expected = [each.name for each in chain if each.kind == "op" and has_namespace(each.name)]
        result = [name for _, name in row.operators if has_namespace(name)]
        if result != expected:
            yield Difference("chain", f"{expected[:2]} around the launch, not {result[:2]}")
        towards = direction(self.capture, kernel)
        if row.direction != towards:
            yield Difference("direction", f"{row.op}: {towards}, not {row.direction}")
        node = self.links.node(chain) if towards == BACKWARD else None
        forwards = self.links.forwards(node) if node else []
        if node and row.direction == BACKWARD and not linked(row, node, forwards, chain):
            names = sorted({forward.name for forward in forwards}) or "not recorded"
            reported = row.meaning and row.meaning[1]
            yield Difference("forward call", f"{node_of(node.name)}: {names}, not {reported}")
        if row.op is None and any(each.kind in ("op", "marker") for each in chain):
            yield Difference("op", f"{chain[0].name}: none")
        if row.op not in (None, BIAS) and not is_named(str(row.op), node, [*chain, *forwards]):
            of = node_of(node.name) if node else chain[0].name if chain else "no range"
            yield Difference("op", f"{of}: not {row.op}")
        yield from self._of_product(kernel, row)

    def _of_product(self, kernel: Kernel, row: Row) -> Iterator[Difference]:
        """M, N, K are those of the innermost product, in the order of cuBLAS: columns first."""
        product = innermost(kernel.range)
        if product is None or bare(product.name) not in PRODUCTS or not product.dims:
            return
        place = PRODUCTS[bare(product.name)]
        left, right = product.dims[place : place + 2]
        reported = {key: int(value) for key, value in re.findall(r"\b([MNK])=(\d+)", row.params)}
        if row.flops <= 0 or row.op == BIAS or len(left) < 2 or len(right) < 2:
            return
        rows = prod(left[:-1]) if len(right) == 2 else left[-2]
        own = {"M": right[-1], "N": rows, "K": left[-1]}
        if reported != own:
            swapped = reported == {"M": own["N"], "N": own["M"], "K": own["K"]}
            wrong = "M and N are swapped" if swapped else "not its own sizes"
            yield Difference("M, N, K", f"{product.name} in {row.op}, {row.direction}: {wrong}")

    def _of_calls(self) -> Iterator[Difference]:
        """FLOPs of a call: the sum over its kernels."""
        kernels: dict[Range, list[Row]] = defaultdict(list)
        for kernel, row in self.pairs:
            call = call_of(kernel.range)
            if call is not None:
                kernels[call].append(row)
        for call, rows in kernels.items():
            expected = self.work.flops(call)
            parts = [row.flops for row in rows if row.op != BIAS]
            result = None if -1 in parts else sum(parts)
            if result != expected:
                ops = "+".join(sorted({str(row.op) for row in rows}))
                wrong = "unknown" if result is None else "known" if expected is None else "other"
                yield Difference("FLOPs", f"{call.name} in {ops}, {rows[0].direction}: {wrong}")


def pairs(kernels: list[Kernel], rows: list[Row]) -> Iterator[tuple[Kernel, Row]]:
    """Each kernel with its row, in order: start, correlation id and duration are equal."""
    left: dict[object, list[Row]] = defaultdict(list)
    for row in reversed(rows):
        left[(*row.key, row.duration)].append(row)
    for kernel in kernels:
        yield kernel, left[kernel.start, kernel.correlation, kernel.duration].pop()


def has_namespace(name: str) -> bool:
    """Whether a range is certainly an operator or a node."""
    return re.match(r"\w+::", name) is not None


def place(each: Range) -> Place:
    return each.start, each.name


def linked(row: Row, node: Range, forwards: list[Range], chain: list[Range]) -> bool:
    """Whether a backward row refers to its forward call.

    It refers to itself if the forward call is not recorded. In a custom function, of which only the
    name is known, its own operator is correct too.
    """
    own = {place(each) for each in chain}
    if row.meaning in {place(forward) for forward in forwards}:
        return True
    name = node_of(node.name)
    known = any(
        forward.name.startswith("aten::") and fits(name, forward.name) for forward in forwards
    )
    return not known and row.meaning in own


def is_named(op: str, node: Range | None, chain: list[Range]) -> bool:
    """Whether a row's op is an operator around it or around its forward call, or the function of
    its node: whether the row can be the derivative of that op."""
    around, seen = set(), set()
    for each in chain:  # most of the ranges around each are around the first
        while each is not None and each not in seen:
            seen.add(each)
            around.add(each.name)
            each = each.parent
    functions = {node_of(name) for name in around}
    names = around | functions | {name.rpartition("::")[2] for name in functions}
    plain = {plain_operator(name) for name in around}
    plain |= {name.removesuffix("backward") for name in plain}
    nodes = {operator_of(name) for name in functions}
    return op in names or plain_operator(op) in plain | nodes
