"""Results of calls whose arguments do not determine them, inferred from the context.

The output size of a convolution depends on stride and padding, which captures of 2021 and ranges of
emit_nvtx do not record. The output size of an index depends on its values, which no capture
records. Sources, in order of preference:

1. the gradient of the output, an argument of the call's backward operator;
2. for an index, the grid of its kernel, which is rounded up: an estimate;
3. the input of the next call on the same thread that launched work: an estimate.

Sequence lengths of a batch, from the range name of a serving stack to the attention call.

vLLM, SGLang and ATOM write the sequence lengths of a batch into the name of the range around it
(`fastprof.ops.libraries.serving.lengths`). The arguments of attention operators lack them.

CallKinds: what groups of kernels work for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _path
from fastprof._core._pools import pairs
from fastprof._core._take import distinct, take, where
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.call import Arg, Call, Tensor
from fastprof.model.markers import Meaning
from fastprof.model.trace import Trace
from fastprof.ops.libraries.serving.lengths import is_batch, is_detailed
from fastprof.ops.registry import arguments
from fastprof.profile.callpath.attribution import Attribution

# ATen's kernel of an index: `threads` per block, `each` elements per thread: <128, 4, ...>.
_ELEMENTS_OF_BLOCK: Final = regex(r"index_elementwise_kernel<(?P<threads>\d+), (?P<each>\d+),")


@dataclass(frozen=True)
class InferredResults:
    """Labels of frames, with new labels for calls whose result was inferred.

    Parameters
    ----------
    meanings : [labels] those of the trace, then the new ones, whose calls have a result
    label_of_frame : int32 [frames]
    estimated : labels whose result is an estimate
    """

    meanings: list[Meaning]
    label_of_frame: Int32
    estimated: frozenset[int] = frozenset()


def infer_results(trace: Trace, attribution: Attribution) -> InferredResults:
    """Infer the missing results of calls.

    Python code runs once per distinct call without a result and once per distinct pair of such a
    call and a result.
    """
    meanings, label_of_frame = (
        attribution.meanings,
        take(attribution.ranges.label, attribution.frame_range),
    )
    around_work = np.flatnonzero(attribution.around_work).tolist()
    lacking = np.zeros(len(meanings), bool)
    for label in around_work:
        meaning = meanings[label]
        lacking[label] = meaning.has_arguments and lacks_only_result(meaning.call)
    if not lacking.any():
        return InferredResults(meanings, label_of_frame)
    ranks = np.full(len(meanings), _path.NO_RANK, np.uint8)
    for label in around_work:
        ranks[label] = _rank(meanings[label], bool(lacking[label]))
    call_of_frame, calls = _path.best_of_rank(
        attribution.frame_parent, label_of_frame, ranks, _LACKS_RESULT
    )
    results = _Results(label_of_frame[calls])
    _by_gradient(results, attribution, label_of_frame, call_of_frame)
    kernels = _Launched(trace, attribution, call_of_frame, results)
    _by_grid(results, kernels, trace, attribution)
    _by_next_input(results, kernels, attribution, label_of_frame)
    rows = where(ranks == _LACKS_RESULT, label_of_frame)
    result = take(results.of_call, call_of_frame[rows])
    return _labelled(meanings, label_of_frame, results, rows[result >= 0], result[result >= 0])


# Calls inside a call of known cost need no result.
_KNOWN: Final = 0
_LACKS_RESULT: Final = 1


def _rank(meaning: Meaning, lacks_result: bool) -> int:
    if lacks_result:
        return _LACKS_RESULT
    known = meaning.has_arguments and meaning.call is not None and ops.has_model(meaning.call)
    return _KNOWN if known else _path.NO_RANK


def lacks_only_result(call: Call | None) -> bool:
    """Whether only the result is missing to compute the cost of a call."""
    formula = ops.find(call) if call is not None else None
    if call is None or formula is None or "result" not in formula.asked:
        return False
    work = ops.work(call, "fprop")
    return work is None or None in (work.cost.flops, work.cost.bytes)


class _Results:
    """Distinct results, and the result of each call that asks for one, -1 for none.

    label_of_call : int32 [calls]
    """

    def __init__(self, label_of_call: Int32) -> None:
        self.label_of_call = label_of_call
        self.of_call = np.full(len(label_of_call), -1, np.int32)
        self.values: list[tuple[Tensor, bool]] = []  # (result, whether it is exact)

    def numbers(self, tensors: Iterable[Tensor | None], exact: bool) -> Int32:
        """An id for each tensor, -1 for None and at the end."""
        out = []
        for tensor in tensors:
            out.append(-1 if tensor is None else len(self.values))
            if tensor is not None:
                self.values.append((tensor, exact))
        return np.array([*out, -1], np.int32)

    def assign(self, call: Int32, number: Int32) -> None:
        """Set results of calls that have none; -1 for no call or no result."""
        new = (call >= 0) & (number >= 0)
        new[new] = self.of_call[call[new]] < 0
        self.of_call[call[new]] = number[new]


def _by_gradient(
    results: _Results, attribution: Attribution, label_of_frame: Int32, call_of_frame: Int32
) -> None:
    gradients = [output_gradient(meaning) for meaning in attribution.meanings]
    number = results.numbers(gradients, True)
    frames = where(number[:-1] >= 0, label_of_frame)
    forward = attribution.meaning_of_frame[frames]
    linked = (forward >= 0) & (forward != frames)
    label = label_of_frame[frames[linked]]
    results.assign(take(call_of_frame, forward[linked]), number[label])


def output_gradient(meaning: Meaning) -> Tensor | None:
    """The gradient of the output among the arguments of a backward operator."""
    if meaning.call is None or not meaning.has_arguments or not meaning.backward:
        return None
    value = arguments(meaning.call).get("gradient")
    return value if isinstance(value, Tensor) and value.shape else None


class _Launched:
    """The kernels of calls that lack a result, ordered by thread and launch.

    `call` is the kernel's call. `last` are the rows of the last kernels of their
    calls on their threads, `frame_after` the frames of the kernels launched next.
    """

    def __init__(
        self, trace: Trace, attribution: Attribution, call_of_frame: Int32, results: _Results
    ) -> None:
        kernels, launches = trace.kernels, trace.launches

        def call_of(frame: Int32) -> Int32:
            """The call of each frame if it lacks a result, else -1."""
            call = take(call_of_frame, frame)
            return np.where(take(results.of_call, call) < 0, call, np.int32(-1))

        rows = where(call_of_frame >= 0, attribution.frame_of_kernel)
        rows = rows[(call_of(attribution.frame_of_kernel[rows]) >= 0) & (kernels.launch[rows] >= 0)]
        after = _launched_after(trace, rows)
        launch = kernels.launch[rows]
        order = np.lexsort((launches.start[launch], launches.thread[launch]))
        self.kernel, after = rows[order], after[order]
        self.call = call_of_frame[attribution.frame_of_kernel[self.kernel]]
        frame_after = np.where(after >= 0, attribution.frame_of_kernel[after], np.int32(-1))
        self.last = np.flatnonzero((after >= 0) & (call_of(frame_after) != self.call))
        self.frame_after = frame_after[self.last]


def _launched_after(trace: Trace, rows: Int64) -> Int64:
    """The kernel launched next on the thread of each of some kernels, -1 for none."""
    launch, launches, n_threads = trace.kernels.launch, trace.launches, len(trace.threads)
    after = _calls.following(launch, launches.thread, launches.start, n_threads, rows)
    if after is not None:
        return after
    # The GPU runs kernels of a thread in another order than launched.
    thread = take(launches.thread, launch)
    is_concerned = np.zeros(n_threads + 1, bool)  # the last for thread -1
    is_concerned[thread[rows]] = True
    some = np.flatnonzero(is_concerned[thread] & (launch >= 0))
    some = some[np.lexsort((launches.start[launch[some]], thread[some]))]
    next_ = np.full(len(launch), -1, np.int64)
    same = thread[some[1:]] == thread[some[:-1]]
    next_[some[:-1][same]] = some[1:][same]
    return next_[rows]


def _by_next_input(
    results: _Results, kernels: _Launched, attribution: Attribution, label_of_frame: Int32
) -> None:
    if not len(kernels.last):
        return
    inputs = [_first_tensor(meaning) for meaning in attribution.meanings]
    ranks = np.array([_path.NO_RANK if input_ is None else 0 for input_ in inputs], np.uint8)
    outermost = _path.best(attribution.frame_parent, label_of_frame, ranks)
    label = take(label_of_frame, take(outermost, kernels.frame_after))
    call = kernels.call[kernels.last]
    number = results.numbers(inputs, False)[label]
    fits = _fitting(attribution.meanings, results.label_of_call[call], label, inputs)
    results.assign(call[fits], number[fits])


def _first_tensor(meaning: Meaning) -> Tensor | None:
    call = meaning.call if meaning.has_arguments else None
    first = next((arg.value for arg in call.args), None) if call else None
    return first if isinstance(first, Tensor) and first.shape else None


def _fitting(
    meanings: list[Meaning], asking: Int32, following: Int32, inputs: list[Tensor | None]
) -> npt.NDArray[np.bool_]:
    """Whether the input of each following label can be the result of the label before."""
    pair, firsts = pairs(asking, following)
    fits = []
    for at in firsts.tolist():
        tensor = inputs[following[at]] if following[at] >= 0 else None
        call = meanings[asking[at]].call
        fits.append(call is not None and tensor is not None and _is_plausible(call, tensor))
    return np.array([*fits, False], bool)[pair]


def _is_plausible(call: Call, result: Tensor) -> bool:
    """Whether a tensor can be the result of a call: by type, rank, and known cost."""
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor) and arg.value.shape]
    if not tensors or {tensors[0].dtype, result.dtype} - {None, tensors[0].dtype}:
        return False
    x, shape = tensors[0], result.shape
    work = ops.work(replace(call, result=result), "fprop")
    if work is None or work.cost.flops is None:
        return False
    if work.parts[0].kernels >= {"convolution"}:
        # No output is larger than the image padded by the kernel size.
        kernel = tensors[1].shape if len(tensors) > 1 else ()
        sides = zip(shape[2:], x.shape[2:], kernel[2:], strict=False)
        return len(shape) == len(x.shape) and all(new < old + size for new, old, size in sides)
    return len(shape) == len(x.shape) > 1 and shape[1:] == x.shape[1:]


def _by_grid(
    results: _Results,
    kernels: _Launched,
    trace: Trace,
    attribution: Attribution,
) -> None:
    asking = np.flatnonzero(take(results.of_call, kernels.call) < 0)
    config = trace.kernels.config[kernels.kernel[asking]]
    configs = trace.kernels.configs
    used, place = distinct(config, len(configs))
    most = [_most_elements(trace, number) for number in used]
    call = kernels.call[asking]
    types = [_first_tensor(meaning) for meaning in attribution.meanings]
    label = results.label_of_call[call]
    pair, firsts = pairs(place, label)
    tensors = []
    for at in firsts.tolist():
        n, x = most[place[at]], types[label[at]]
        tensors.append(Tensor((n,), x.dtype) if n and x else None)
    results.assign(call, results.numbers(tensors, False)[pair])


def _most_elements(trace: Trace, config: int) -> int | None:
    """The maximum number of elements that an elementwise kernel processes."""
    configs = trace.kernels.configs
    name = trace.strings[configs.name[config]] or ""
    match = _ELEMENTS_OF_BLOCK.search(name)
    blocks = int(configs.grid[config, 0])
    return blocks * int(match["threads"]) * int(match["each"]) if match and blocks > 0 else None


def _labelled(
    meanings: list[Meaning],
    label_of_frame: Int32,
    results: _Results,
    frames: Int64,
    result: Int32,
) -> InferredResults:
    """Give the frames new labels, whose calls have a result; overwrites label_of_frame."""
    label = label_of_frame[frames]
    pair, firsts = pairs(label, result)
    more: list[Meaning] = []
    estimated = []
    for at in firsts.tolist():
        meaning, (tensor, exact) = meanings[label[at]], results.values[result[at]]
        if not exact:
            estimated.append(len(meanings) + len(more))
        call = meaning.call and replace(meaning.call, result=tensor)
        more.append(replace(meaning, call=call))
    label_of_frame[frames] = pair + np.int32(len(meanings))
    return InferredResults([*meanings, *more], label_of_frame, frozenset(estimated))


@dataclass(frozen=True)
class CallKinds:
    """What kernels work for: a call, and the calls that determine its cost; -1 for none.

    Parameters
    ----------
    calls : int32 [kinds, 3], indices into the distinct calls:
        the call;
        the call that determines the cost, which is the call or one inside of it;
        the operator that the kernels run in addition to the products of the second, a cast for
        example
    backward : bool [kinds], whether the kernels belong to the backward pass of the call
    gradient : bool [kinds], whether they belong to the backward pass of the call that determines
        the cost
    """

    calls: Int32
    backward: Bools
    gradient: Bools

    @property
    def is_inside(self) -> Bools:
        """[kinds] Whether a call inside of the call determines the cost."""
        call, work, helper = self.calls.T
        inside: Bools = (work >= 0) & (work != call) & (helper < 0)
        return inside


_BATCH = "batch"  # parameter name in formulas
_NONE = np.int32(-1)


class Batches(NamedTuple):
    """Result of `with_batches`.

    Parameters
    ----------
    meanings : the given meanings, then those of new labels
    kinds : the distinct kinds, with new labels
    kind : [kernels] index into `kinds`
    of_kernel : [kernels] the label of the batch's range, -1 for none; None if no kernel has one
    """

    meanings: list[Meaning]
    kinds: CallKinds
    kind: Int32
    of_kernel: Int32 | None


def with_batches(
    attribution: Attribution,
    meanings: list[Meaning],
    label_of_frame: Int32,
    kinds: CallKinds,
    kind: Int32,
) -> Batches:
    """Add the name of the batch's range to the arguments of calls whose formula takes it.

    The range is that around the launch, not the call: a replayed graph processes the batch of its
    launch.

    Parameters
    ----------
    meanings : [labels]
    label_of_frame : [frames]
    kinds : the distinct kinds, of labels
    kind : [kernels] index into `kinds`
    """
    unchanged = Batches(meanings, kinds, kind, None)
    needs = np.zeros(len(meanings) + 1, bool)  # the last for label -1
    for label in unique(kinds.calls[kinds.calls >= 0]).tolist():
        needs[label] = _needs_batch(meanings[label])
    if not needs.any():
        return unchanged
    ranks = np.array([_tensor_rank(meaning.name) for meaning in meanings], np.uint8)
    if (ranks == _path.NO_RANK).all():
        return unchanged
    around = _path.best(attribution.frame_parent, label_of_frame, ranks)
    launch = attribution.launch_frame_of_kernel
    frame = np.where(launch >= 0, launch, attribution.frame_of_kernel)
    batch = take(label_of_frame, take(around, frame))
    needed: Bools = np.any(needs[kinds.calls], axis=1)
    of_kernel = np.where(take(needed, kind), batch, _NONE)
    pair, firsts = pairs(kind, of_kernel)
    extended = list(meanings)
    number: dict[tuple[int, int], int] = {}

    def in_batch(label: int, label_of_batch: int) -> int:
        if label_of_batch < 0 or not needs[label]:
            return label
        key = label, label_of_batch
        if key not in number:
            number[key] = len(extended)
            extended.append(_with_batch(meanings[label], meanings[label_of_batch]))
        return number[key]

    kept = kind[firsts]
    batches = of_kernel[firsts].tolist()
    calls = [
        [in_batch(label, label_of_batch) for label in labels]
        for labels, label_of_batch in zip(kinds.calls[kept].tolist(), batches, strict=True)
    ]
    changed = CallKinds(
        np.array(calls, np.int32).reshape(-1, 3), kinds.backward[kept], kinds.gradient[kept]
    )
    return Batches(extended, changed, pair, of_kernel)


def _tensor_rank(name: str) -> int:
    # Ranges with sums per sequence rank above ranges with totals.
    if not is_batch(name):
        return _path.NO_RANK
    return 0 if is_detailed(name) else 1


def _needs_batch(meaning: Meaning) -> bool:
    if meaning.call is None or not meaning.has_arguments:
        return False
    formula = ops.find(meaning.call)
    return formula is not None and _BATCH in formula.allowed


def _with_batch(meaning: Meaning, batch: Meaning) -> Meaning:
    if meaning.call is None:
        return meaning
    args = (*meaning.call.args, Arg(_BATCH, batch.name))
    return replace(meaning, call=replace(meaning.call, args=args))
