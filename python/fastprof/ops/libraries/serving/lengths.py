"""Parses sequence lengths from the names of serving stacks' ranges.

The lengths are values of tensors, which no capture records. Under a profiler, vLLM, SGLang and ATOM
open a range around each step. Its name contains the numbers of queries (sq) and keys (sk) of the
step's requests and, with detailed annotation, the sums over requests of their products:

| form | who writes it |
|---|---|
| `execute_context_2(6144)_generation_3(3)` | vLLM: requests and tokens of prefill and decode |
| `execute_context_1(888_788544)_generation_0(0)` | vLLM, with the sum of squared tokens |
| `execute_new_1_cached_3` | vLLM 0.11 to 0.12: requests of prefill, and requests begun before |
| `execute_5_context_1(sq4sk4sqsq16sqsk16)_generation_1(sq1sk9sqsq1sqsk9)` | vLLM, detailed |
| `step[EXTEND bs=2 toks=14721]` | SGLang |
| `step[DECODE bs=64 g_sq=64 g_sk=131072 g_sqsk=131072]` | SGLang, detailed |
| `[Executor] _forward_step 7: 2 ctx reqs, 30 gen reqs` | TensorRT-LLM, PyTorch backend |
| `[Executor] _forward_step 7: 2 ctx reqs, 900 ctx tokens, 30 gen reqs` | the same, later |
| `prefill[bs=2 tok=14721 sqsk=108745533 sk=14721]`, `decode[bs=64 tok=64 d=64]` | ATOM |

Formats: vLLM vllm/v1/worker/gpu_worker.py, SGLang python/sglang/srt/managers/scheduler.py,
TensorRT-LLM tensorrt_llm/_torch/pyexecutor/py_executor.py, and AMD-AGI/TraceLens
TraceLens/TraceUtils/annotation_utils.py. The number after `_` in the second form is 888 squared in
the trace of one request; for several requests it is read as the sum of their squares.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex

_SUMS: Final = r"\(sq(\d+)sk(\d+)sqsq\d+sqsk(\d+)\)"
_VLLM_DETAILED: Final = regex(rf"execute_\d+_context_(\d+){_SUMS}_generation_(\d+){_SUMS}")
_VLLM: Final = regex(
    r"execute_context_(\d+)\((\d+)(?:_(\d+))?\)_generation_(\d+)\((\d+)(?:_\d+)?\)"
)
_VLLM_NEW: Final = regex(r"execute_new_(\d+)_cached_(\d+)\Z")
_SGLANG: Final = regex(r"step\[(EXTEND|DECODE|MIXED)\b([^\]]*)\]")
_TENSORRT: Final = regex(
    r"\[Executor\] _forward_step(?: \d+)?: (\d+) ctx reqs, (?:(\d+) ctx tokens, )?(\d+) gen reqs"
)
_ATOM: Final = regex(r"(prefill|decode)\[([^\]]*(?:\[[^\]]*\][^\]]*)*)\]")
_PAIR: Final = regex(r"\b(\w+)=(\d+)")


class Lengths(NamedTuple):
    """Sums over the requests of a batch.

    Parameters
    ----------
    requests : int
    queries : int
        Tokens computed in this step.
    keys : int or None
        Tokens they attend to, including those of earlier steps.
    scores : int or None
        Sum of the products of queries and keys.
    exact : bool
        Whether all is exact: keys and scores are not lower bounds, and queries, 0 where the name
        does not tell them, are known.
    """

    requests: int
    queries: int
    keys: int | None
    scores: int | None
    exact: bool = True

    def __add__(self, other: object) -> Lengths:
        """The sum of two batches."""
        if not isinstance(other, Lengths):
            return NotImplemented
        return Lengths(
            self.requests + other.requests,
            self.queries + other.queries,
            _sum(self.keys, other.keys),
            _sum(self.scores, other.scores),
            self.exact and other.exact,
        )


class BatchLengths(NamedTuple):
    """The requests of an iteration.

    context : requests whose prompt is computed
    generation : requests that generate a token
    is_sure : whether those of `generation` have no prompt left to compute
    """

    context: Lengths
    generation: Lengths
    is_sure: bool = True


_NONE: Final = Lengths(0, 0, 0, 0)


def is_batch(name: str) -> bool:
    """Whether a range's name has one of these formats."""
    return batch_of(name) is not None


def is_detailed(name: str) -> bool:
    """Whether a batch's range name contains sums over requests, not only totals."""
    batch = batch_of(name)
    return batch is not None and all(
        part.exact and part.keys is not None and part.scores is not None for part in batch[:2]
    )


def lengths_of(name: str, tokens: int) -> Lengths | None:
    """Lengths of the requests processed by an operator with `tokens` tokens.

    All requests of the batch, or only those of prefill or of decode, whichever have that number of
    tokens. A decode-only step may be padded.

    Returns
    -------
    Lengths or None
        None if the name is not a batch's or no part of it matches.
    """
    batch = batch_of(name)
    if batch is None:
        return None
    both = batch.context + batch.generation
    for lengths in (both, batch.context, batch.generation):
        if lengths.queries == tokens and lengths.requests:
            return lengths
    padded = not batch.context.requests and 0 < both.queries <= tokens
    return both if padded else None


def batch_of(name: str) -> BatchLengths | None:
    """The batch that a range's name describes; None if it has none of these formats."""
    if match := _VLLM_DETAILED.match(name):
        results = [int(group) for group in match.groups()]
        return BatchLengths(_summed(*results[:4]), _summed(*results[4:8]))
    if match := _VLLM.match(name):
        requests, tokens, squares, *generation = (int(group or 0) for group in match.groups())
        context = _fresh(requests, tokens)
        if squares:
            context = context._replace(scores=squares)
        return BatchLengths(context, _decode(*generation))
    if match := _VLLM_NEW.match(name):
        new, cached = (int(group) for group in match.groups())
        return BatchLengths(_fresh(new, None), _fresh(cached, None), is_sure=False)
    if match := _TENSORRT.match(name):
        prompts, known, generating = (int(group or 0) for group in match.groups())
        return BatchLengths(_fresh(prompts, known), _decode(generating, generating))
    if match := _SGLANG.match(name):
        return _sglang(match[1], {key: int(value) for key, value in _PAIR.findall(match[2])})
    if match := _ATOM.match(name):
        return _atom(match[1], {key: int(value) for key, value in _PAIR.findall(match[2])})
    return None


def _sglang(kind: str, pairs: dict[str, int]) -> BatchLengths | None:
    size, tokens = pairs.get("bs"), pairs.get("toks")
    parts = []
    for letter, only in (("c", "EXTEND"), ("g", "DECODE")):
        requests = size if kind == only else pairs.get(letter, 0)
        if kind not in (only, "MIXED"):
            parts.append(_NONE)
        elif f"{letter}_sqsk" in pairs and requests is not None:
            sums = [pairs.get(f"{letter}_{text}") for text in ("sq", "sk", "sqsk")]
            if sums[0] is None:
                return None
            parts.append(Lengths(requests, sums[0], sums[1], sums[2]))
        elif size is None or kind == "MIXED":
            return None
        else:
            parts.append(_decode(size, size) if letter == "g" else _fresh(size, tokens))
    return BatchLengths(parts[0], parts[1])


def _atom(kind: str, pairs: dict[str, int]) -> BatchLengths | None:
    size, tokens = pairs.get("bs"), pairs.get("tok")
    if size is None or tokens is None:
        return None
    if "sqsk" in pairs:
        part = Lengths(size, tokens, pairs.get("sk"), pairs["sqsk"])
    else:
        part = _fresh(size, tokens) if kind == "prefill" else _decode(size, tokens)
    return BatchLengths(part, _NONE) if kind == "prefill" else BatchLengths(_NONE, part)


def _fresh(requests: int, tokens: int | None) -> Lengths:
    # Prefill with totals only: a lower bound, for equally long requests without a past.
    if not requests or not tokens:
        return Lengths(requests, tokens or 0, 0, 0, not requests)
    return Lengths(requests, tokens, tokens, tokens * tokens // requests, False)


def _decode(requests: int, tokens: int) -> Lengths:
    # The past of a decode is unknown.
    return Lengths(requests, tokens, None, None) if requests else _NONE


def _summed(requests: int, queries: int, keys: int, scores: int) -> Lengths:
    return Lengths(requests, queries, keys, scores)


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
