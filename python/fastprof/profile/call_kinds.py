"""CallKind: what a group of kernels works for."""

from __future__ import annotations

from collections.abc import Callable

from fastprof._system.classes import NamedTuple


class CallKind(NamedTuple):
    """What kernels work for: a call, and the calls that determine its cost; -1 for none.

    Parameters
    ----------
    call : the call, an index into the distinct calls
    backward : whether the kernels belong to the backward pass of the call
    work : the call that determines the cost, which is the call or one inside of it
    gradient : whether the kernels belong to the backward pass of `work`
    helper : the operator that the kernels run in addition to the products of `work`, a cast for
        example
    """

    call: int
    backward: bool
    work: int
    gradient: bool
    helper: int

    @property
    def calls(self) -> tuple[int, int, int]:
        """The numbers of the calls, -1 for none."""
        return self.call, self.work, self.helper

    @property
    def is_inside(self) -> bool:
        """Whether a call inside of the call determines the cost."""
        return self.work >= 0 and self.work != self.call and self.helper < 0

    def changed(self, number: Callable[[int], int]) -> CallKind:
        """The kind with other numbers of calls."""
        call, work, helper = (-1 if each < 0 else number(each) for each in self.calls)
        return self._replace(call=call, work=work, helper=helper)
