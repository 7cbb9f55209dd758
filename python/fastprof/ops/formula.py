"""A formula: a cost function and the requirements of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import field
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops.cost import CannotModel, Cost, Part, Work
from fastprof.ops.dtypes import Dtype
from fastprof.ops.out_forms import without_results
from fastprof.ops.parameters import checked, convert, members, shown, tensors_text
from fastprof.ops.signature import Signature


def misfit(signatures: Iterable[Signature], args: Iterable[Arg]) -> str:
    """Name the first list of tensors that is not recorded, else expected and found arguments."""
    expected = list(signatures)
    values = [arg.value for arg in args if not arg.name]
    for signature in expected:
        for slot, value in zip(signature.slots, values, strict=False):
            if slot.is_list and value is UNKNOWN:
                return f"the tensors of its list {slot.keyword!r} are not in the capture"
    wanted = " or ".join(dict.fromkeys(map(_written, expected)))
    text = ", ".join(map(shown, values))
    return f"expected {wanted}, found {len(values)} arguments: {text}"


def _written(signature: Signature) -> str:
    return f"{signature.name}({', '.join(slot.keyword for slot in signature.slots)})"


AROUND: Final = frozenset({"direction", "result", "call"})  # special parameters
READ: Final = "read"  # that of fastprof's own formulas which takes tensors for their bytes
_DTYPE: Final = members(Dtype)
_TENSOR: Final = members(Tensor | None)
_ANYTHING: Final = members(Any)


def is_ignored(name: str) -> bool:
    """Whether an argument of this name has no effect on the cost: `_table`, a tensor, or `other`.

    An argument named `_` has none either, but a tensor there does not match the signature.
    """
    return name == "other" or name.startswith("_")


@dataclass(frozen=True, eq=False)
class Formula:
    """A cost function of one or more operators.

    Parameters
    ----------
    function : callable
        Returns a `Work`, a `Cost`, or a `Cost` and its printed params.
    allowed : dict
        The accepted types of each parameter.
    needed : frozenset of str
        Parameters without a default.
    asked : frozenset of str
        The special parameters that it has: `direction` ("fprop" or "bprop"; without it, the formula
        applies to the forward pass only), `result` (`Call.result` or `UNKNOWN`), `call` (the
        `Call`), `read` (the tensors of a call that are no other parameter: only their bytes count).
    groups : dict
        Named tuples whose fields are parameters, by the name of the function's parameter.
    """

    function: Callable[..., Any]
    allowed: dict[str, frozenset[Any]]
    needed: frozenset[str]
    asked: frozenset[str]
    groups: dict[str, Any] = field(default_factory=dict)

    def work(self, signatures: Iterable[Signature], call: Call, direction: str) -> Work:
        """Work of a call, bound by the first matching signature.

        Raises
        ------
        CannotModel
            No signature matches, or the formula cannot determine the cost.
        """
        if direction == "bprop" and "direction" not in self.asked:
            raise CannotModel("no formula for the backward pass")
        # The call as recorded; if that fails, with trailing arguments as out= tensors.
        try:
            return self._work(signatures, call, direction)
        except CannotModel as error:
            for inputs, given in without_results(call):
                with suppress(CannotModel):
                    return self._work(signatures, inputs, direction, given)
            raise error

    def _work(
        self,
        signatures: Iterable[Signature],
        call: Call,
        direction: str,
        given: Tensor | None = None,
    ) -> Work:
        arguments = self.arguments(signatures, call)
        if given is not None and given.dtype and self.allowed.get("dtype") == _DTYPE:
            arguments["dtype"] = given.dtype  # the out= tensor has the type that dtype= requests
        around = {
            "direction": direction,
            "result": UNKNOWN if call.result is None else checked(call.result),
            "call": call,
        }
        arguments |= {key: value for key, value in around.items() if key in self.asked}
        for key, kind in self.groups.items():
            given_of_kind = [name for name in kind._fields if name in arguments]
            arguments[key] = kind(**{name: arguments.pop(name) for name in given_of_kind})
        return _as_work(self.function(**arguments), call)

    def arguments(self, signatures: Iterable[Signature], call: Call) -> dict[str, Any]:
        """The arguments of a call by parameter, bound by the first matching signature.

        Raises
        ------
        CannotModel
            No signature matches.
        """
        problem: CannotModel | None = None
        try:
            for signature in signatures:
                for bound in signature.bind(call.args):
                    try:
                        return self._converted(bound)
                    except CannotModel as error:
                        problem = error
            raise problem or CannotModel(misfit(signatures, call.args))
        finally:
            problem = None  # its traceback references this frame: break the cycle

    def _converted(self, bound: dict[str, Any]) -> dict[str, Any]:
        missing = sorted(self.needed - bound.keys())
        if missing:
            raise CannotModel(f"argument {missing[0]} is missing")
        converted: dict[str, Any] = {}
        read = []
        for name, value in bound.items():
            otherwise = _ANYTHING if name == "other" else _TENSOR
            try:
                result = convert(value, self.allowed.get(name, otherwise))
            except CannotModel as error:
                raise CannotModel(f"{name}: {error}") from None
            if name in self.allowed:
                converted[name] = result
            elif result is not None and not is_ignored(name):
                read.append(result)
        return {**converted, READ: tuple(read)} if READ in self.asked else converted


def _as_work(answer: Any, call: Call) -> Work:
    if isinstance(answer, Work):
        return answer
    cost, params = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if not isinstance(cost, Cost) or not isinstance(params, str | None):
        raise TypeError(f"expected a Cost, or a Cost and a text, found {answer!r}")
    return Work((Part("main", cost, tensors_text(call) if params is None else params),))
