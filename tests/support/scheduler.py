"""Which worker of pytest-xdist runs what: files, and the tests of real traces by trace."""

from collections.abc import Sequence
from typing import Any

from xdist.scheduler import LoadFileScheduling

from support.real_data import trace_of


class ByFileOrTrace(LoadFileScheduling):
    """A file is run by one worker, and so are all tests of a real trace, which is parsed once.

    xdist's own scheduler searches the list of all tests for each that it sends, and counts all that
    it has sent after each that has ended.
    """

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Ids(collection)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """The tests that have not ended; a worker takes files in the order in which it got them."""
        n_pending = 0
        for tests in reversed(workload.values()):
            pending = list(tests.values()).count(False)
            if not pending:
                break
            n_pending += pending
        return n_pending

    def _split_scope(self, nodeid: str) -> str:
        is_real = nodeid.startswith("tests/real/")
        return (is_real and trace_of(nodeid)) or super()._split_scope(nodeid)


class _Ids(list[str]):
    """A list of different texts that knows their places."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(ids)
        self._places = {text: place for place, text in enumerate(ids)}

    def index(self, text: str, *_: Any) -> int:
        return self._places[text]
