"""The call-path tree: a node for each distinct chain of labels, with its meaning."""

from __future__ import annotations

from functools import cached_property

from bench.baseline.meanings import (
    ARGUMENT,
    BACKWARD_WORD,
    ENGINE,
    LAYER,
    MODULE,
    NODE,
    TORCH,
    TRACE,
    USER,
    Meaning,
)

ENDS_BACKWARD = ("Backward", "_backward")


class Node(dict[Meaning, "Node"]):
    """A chain of labels; its items are the chains longer by one, created on access."""

    def __init__(self, parent: Node | None = None, meaning: Meaning | None = None) -> None:
        self.parent, self.meaning = parent, meaning
        # The chain without the user's own ranges, which can differ in each step.
        self.bare: Node = self
        if parent is not None and meaning is not None:
            if meaning.kind == USER:
                self.bare = parent.bare
            elif parent.bare is not parent:
                self.bare = parent.bare[meaning]

    def __missing__(self, meaning: Meaning) -> Node:
        self[meaning] = result = Node(self, meaning)
        return result

    __hash__ = object.__hash__

    @cached_property
    def chain(self) -> tuple[Meaning, ...]:
        """The labels, outermost first."""
        if self.parent is None or self.meaning is None:
            return ()
        return (*self.parent.chain, self.meaning)

    @cached_property
    def dict_text(self) -> tuple[str, str]:
        """The text of a dict line before the seqMarker, and after dir."""
        mods, ops = self.operators
        around = (
            f"'layer': {list(self.layer)}, 'trace': {list(self.trace)}, "
            f"'reprMarkers': {self.modules}, 'marker': {self.arguments}, 'seqMarker': "
        )
        return around, f"'mod': {list(mods)}, 'op': {list(ops)}, "

    def of_kind(self, *kinds: str) -> list[Meaning]:
        return [meaning for meaning in self.chain if meaning.kind in kinds]

    @cached_property
    def _turn(self) -> Meaning | None:
        """The innermost label that sets the direction."""
        return next(
            (m for m in reversed(self.chain) if m.backward or m.recompute or m.engine), None
        )

    @cached_property
    def is_backward(self) -> bool:
        """Inside a backward range without a recomputation between, or run by the engine."""
        return self._turn is not None and not self._turn.recompute

    @cached_property
    def in_backward_range(self) -> bool:
        return self.is_backward and not (self._turn and self._turn.engine)

    @property
    def is_engine(self) -> bool:
        """Work of the engine for a node: the node, hooks, sums of gradients."""
        return self.meaning is not None and self.meaning.name.startswith(ENGINE)

    @property
    def is_node(self) -> bool:
        return self.meaning is not None and self.meaning.node

    @cached_property
    def direction(self) -> str | None:
        if self.is_backward:
            return "bprop"
        return "fprop" if any(m.kind != USER for m in self.chain) else None

    @cached_property
    def recomputes(self) -> bool:
        return any(m.recompute for m in self.chain)

    @cached_property
    def asks(self) -> bool:
        """Whether a number here is that of a backward call, which looks for its forward call.

        An operator inside an autograd node has no number that links.
        """
        meaning = self.meaning
        if meaning is None or meaning.kind != TORCH or not meaning.backward:
            return False
        return meaning.node or self.parent is None or not self.parent.is_backward

    @cached_property
    def carries(self) -> bool:
        """Whether a number here is that of a forward call."""
        meaning = self.meaning
        if meaning is None or meaning.kind != TORCH:
            return False
        return not (meaning.backward or meaning.recompute or self.is_backward)

    @cached_property
    def layer(self) -> tuple[str, ...]:
        return tuple(m.name for m in self.of_kind(LAYER))

    @cached_property
    def trace(self) -> tuple[str, ...]:
        return next((m.frames for m in reversed(self.chain) if m.kind == TRACE), ())

    @cached_property
    def modules(self) -> list[str]:
        return [m.label for m in self.of_kind(MODULE)]

    @cached_property
    def arguments(self) -> list[str]:
        return [m.label for m in self.of_kind(ARGUMENT)]

    @cached_property
    def ranges(self) -> tuple[str, ...]:
        """The user's own ranges."""
        return tuple(m.label for m in self.of_kind(USER))

    @cached_property
    def operators(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """mod and op of a dict line: of all argument markers, or else of torch's ranges."""
        calls = [m.call for m in self.of_kind(ARGUMENT) if m.call]
        if calls:
            return tuple(call.mod for call in calls), tuple(call.op for call in calls)
        torch = self.of_kind(TORCH)
        names = [m.name for m in torch]
        if any(m.backward for m in torch):
            names.sort(key=lambda name: (NODE.search(name) is not None, name))
        ops = [BACKWARD_WORD.split(name)[0] for name in names if name.endswith(ENDS_BACKWARD)]
        ops = ops or [name.removeprefix("aten::") for name in names]
        return ("na",) * len(ops), tuple(ops)
