"""What the names of a serving engine's ranges and functions tell: iterations, stages, host work.

| engine | names | since |
|---|---|---|
| vLLM | `execute_new_1_cached_3` around an iteration | V1, autumn 2025 |
| vLLM | `execute_context_1(888)_generation_4(4)`, see `ops.libraries.serving.lengths` | then |
| vLLM | `Preprocess`, `Sample`, `Draft` inside an iteration | V1, 2025 |
| vLLM | `gpu_model_runner: sample`, `schedule: ...`, `llm_engine step: ...` | then |
| SGLang | `step[DECODE bs=32]`, with the names of its class ForwardMode | 2026 |
| SGLang | `scheduler.run_batch`, `scheduler.recv_requests` | NVTX, 2026 |
| TensorRT-LLM | `[Executor] _forward_step 7: 2 ctx reqs, 30 gen reqs` | PyTorch backend |
| TensorRT-LLM | `_sample_async`, `_prepare_draft_batch`, `_send_disagg_ctx_cache` | the same |
| transformers | functions of `generation/utils.py`, with recorded stacks only | `_prefill` |
| transformers | `generate[decode bs=3 toks=3]`, which `readers.kineto.generate` makes | then |

Sources: vLLM vllm/v1/worker/gpu_worker.py, vllm/v1/worker/gpu_model_runner.py and
vllm/v1/core/sched/scheduler.py; SGLang python/sglang/srt/managers/scheduler.py and
python/sglang/srt/model_executor/forward_batch_info.py; TensorRT-LLM
tensorrt_llm/_torch/pyexecutor/py_executor.py; transformers src/transformers/generation/utils.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.markers import Kind, Meaning
from fastprof.ops.libraries.serving.lengths import BatchLengths, Lengths, batch_of

PREFILL, DECODE, MIXED = "prefill", "decode", "mixed"
DRAFT, VERIFY, SAMPLING = "draft", "verify", "sampling"
TOKENIZER, KV_TRANSFER = "tokenizer", "KV transfer"
STAGES: Final = (PREFILL, DECODE, MIXED, DRAFT, VERIFY, SAMPLING, TOKENIZER, KV_TRANSFER)

SCHEDULER, DETOKENIZER = "scheduler", "detokenizer"
ON_HOST, WAITING = "sampling on the host", "waiting for requests"
PREPARING: Final = "preparing inputs"
HOST_WORK: Final = (SCHEDULER, PREPARING, ON_HOST, DETOKENIZER, WAITING)

INEXACT: Final = "~"
"""Precedes a stage that names of kernels tell, or a batch that may have prompts left."""


class Iteration(NamedTuple):
    """What the range of an iteration tells; -1 where it does not.

    Parameters
    ----------
    stage : of STAGES; "" for an iteration without requests
    is_sure : whether the name tells the stage, not only that requests have begun before
    requests : of the batch
    tokens : computed in the iteration
    prompts, prompt_tokens : requests whose prompt is computed, and tokens of it
    generating : requests that generate; each yields one token, more with accepted drafts
    keys : sum over requests of the tokens that they attend to
    """

    stage: str
    is_sure: bool
    requests: int
    tokens: int
    prompts: int
    prompt_tokens: int
    generating: int
    keys: int = -1

    @property
    def batch(self) -> str:
        """The composition, such as `prefill 1x888 + decode 3`."""
        parts = []
        if self.prompts > 0:
            tokens = f" of {self.prompt_tokens} tokens" if self.prompt_tokens >= 0 else ""
            parts.append(f"{self.prompts} prefill{tokens}")
        if self.generating > 0:
            stage = self.stage if self.prompts == 0 else DECODE
            parts.append(f"{self.generating} {stage}")
        if not parts:
            return f"{self.requests} {self.stage}" if self.requests > 0 else "empty"
        return " + ".join(parts)


def iteration_of(name: str) -> Iteration | None:
    """The iteration that a range is, by its name; None for other ranges."""
    if not name.startswith(_BEGIN) or _TOO_LONG.search(name):
        return None
    return _told(name)


_TOO_LONG: Final = regex(r"\d{16}")  # of a number of requests or tokens
_BEGIN: Final = ("execute_", "step[", "[Executor] ", "prefill[", "decode[", "generate[")


@lru_cache(maxsize=4096)
def _told(name: str) -> Iteration | None:
    batch = batch_of(name)
    if batch is not None:
        return _of_batch(batch)
    if own := _GENERATE.match(name):
        return _of_generate(own[1], int(own[2] or -1), int(own[3] or -1))
    match = _SGLANG.match(name)
    if match is None or match[1] not in _MODES:
        return None
    stage, size, tokens = _MODES[match[1]], match[2], match[3]
    requests, tokens = int(size or -1), int(tokens or -1)
    is_split = stage not in (MIXED, "")
    prompts = requests if stage == PREFILL else 0
    generating = requests if is_split and stage != PREFILL else 0
    if stage == MIXED:
        prompts = generating = -1
    return Iteration(stage, True, requests, tokens, prompts, tokens if prompts else 0, generating)


def has_iterations(meanings: Iterable[Meaning]) -> bool:
    """Whether any of the user's ranges is an engine's iteration with requests."""
    return any(is_iteration(meaning) for meaning in meanings if meaning.kind == Kind.USER)


def is_iteration(meaning: Meaning) -> bool:
    """Whether a range of the user is an engine's iteration with requests."""
    told = iteration_of(meaning.name) if meaning.kind == Kind.USER else None
    return told is not None and told.stage != ""


# The modes of SGLang's ForwardMode without lengths; EXTEND and DECODE with `bs` are batches.
_MODES: Final = {
    "EXTEND": PREFILL,
    "SPLIT_PREFILL": PREFILL,
    "DLLM_EXTEND": PREFILL,
    "DECODE": DECODE,
    "MIXED": MIXED,
    "TARGET_VERIFY": VERIFY,
    "DRAFT_EXTEND": DRAFT,
    "DRAFT_EXTEND_V2": DRAFT,
    "IDLE": "",
}


def _of_generate(stage: str, requests: int, tokens: int) -> Iteration:
    is_prompt = stage == PREFILL
    return Iteration(
        stage, True, requests, tokens, requests if is_prompt else 0, tokens if is_prompt else 0,
        0 if is_prompt else requests,
    )  # fmt: skip


# Of fastprof.readers.kineto.generate.
_GENERATE: Final = regex(r"generate\[(prefill|decode)(?: bs=(\d+) toks=(\d+))?\]")
_SGLANG: Final = regex(r"step\[(\w+)(?: bs=(\d+))?(?: toks=(\d+))?[^\]]*\]")


def _of_batch(batch: BatchLengths) -> Iteration:
    prompt, more = batch.context, batch.generation
    stage = MIXED if prompt.requests and more.requests else PREFILL if prompt.requests else DECODE
    if not prompt.requests and not more.requests:
        stage = ""
    prompt_tokens, tokens = _tokens(prompt), _tokens(more)
    if stage == DECODE and tokens > more.requests:  # a token, and drafts
        stage = VERIFY
    keys = (prompt + more).keys
    return Iteration(
        stage,
        batch.is_sure or not more.requests,
        prompt.requests + more.requests,
        prompt_tokens + tokens if min(prompt_tokens, tokens) >= 0 else -1,
        prompt.requests,
        prompt_tokens,
        more.requests,
        -1 if keys is None or not (prompt.exact and more.exact) else keys,
    )


def _tokens(part: Lengths) -> int:
    """The tokens of a part of a batch; -1: unknown, which is 0 for some requests."""
    return part.queries if part.queries or not part.requests else -1


_STAGE_OF_RANGE: Final = (
    (SAMPLING, regex(r"gpu_model_runner: sample\Z|_sample_async\Z")),
    (DRAFT, regex(r"gpu_model_runner: draft\Z|_prepare_draft_\w+\Z|_?draft_forward\w*\Z")),
    (KV_TRANSFER, regex(r"_(?:send|recv)_disagg_\w+\Z|_send_kv_async\Z|_prepare_disagg_gen_\w+\Z")),
    (TOKENIZER, regex(r"tokenizer(?:_manager)?\.\w+\Z")),
)
# These need an iteration around them: other programs use such names too.
_STAGE_INSIDE: Final = {"Sample": SAMPLING, "Draft": DRAFT}
GENERATE: Final = "generate"
"""In place of a stage: the loop of transformers' generate, whose prefill is a function inside."""
_STAGE_OF_FUNCTION: Final = (
    (GENERATE, regex(
        r"(?:.*/)?transformers/generation/utils\.py\(\d+\): _(?:sample|beam_search)\Z"
    )),
    (SAMPLING, regex(
        r"(?:.*/)?(?:vllm/v1/sample/|vllm/model_executor/layers/sampler\.py"
        r"|sglang/srt/layers/sampler\.py|sglang/srt/sampling/"
        r"|tensorrt_llm/_torch/pyexecutor/sampler|transformers/generation/logits_process\.py)"
    )),
    (DRAFT, regex(r"(?:.*/)?vllm/v1/spec_decode/")),
    (KV_TRANSFER, regex(
        r"(?:.*/)?(?:vllm/distributed/kv_transfer/|sglang/srt/disaggregation/)"
    )),
    (PREFILL, regex(
        r"(?:.*/)?(?:sglang/srt/model_executor/model_runner\.py\(\d+\): forward_extend\Z"
        r"|transformers/generation/utils\.py\(\d+\): _prefill\Z)"
    )),
    (DECODE, regex(
        r"(?:.*/)?sglang/srt/model_executor/model_runner\.py\(\d+\): forward_decode\Z"
    )),
)  # fmt: skip


@lru_cache(maxsize=4096)
def stage_of_range(name: str, is_inside: bool) -> str | None:
    """The stage that one of an engine's ranges tells, other than an iteration's; None: none.

    is_inside : whether an iteration is around it
    """
    if is_inside and name in _STAGE_INSIDE:
        return _STAGE_INSIDE[name]
    return next((stage for stage, form in _STAGE_OF_RANGE if form.match(name)), None)


@lru_cache(maxsize=4096)
def stage_of_function(label: str) -> str | None:
    """The stage that a function of an engine tells, `FILE(LINE): NAME`; None: none."""
    return next((stage for stage, form in _STAGE_OF_FUNCTION if form.match(label)), None)


_STAGE_OF_KERNEL: Final = (
    (SAMPLING, regex(
        r"\w*(?:gumbel_sample|TopKTopPSampling|TopPSampling|TopKSampling|MinPSampling"
        r"|SamplingFromProb|ChainSpeculativeSampling|num_sampled_and_rejected)"
    )),
    (DECODE, regex(
        r".*(?:BatchDecodeWith|SingleDecodeWith|masked_multihead_attention|\bpaged_attention_)"
    )),
)  # fmt: skip
_ENGINE_KERNEL: Final = regex(
    r".*(?:\bvllm::|N4vllm|sgl_(?:hip|kernel)|\bflashinfer::|tensorrt_llm::|paged_attention_)"
)


def stage_of_kernel(name: str) -> str | None:
    """The stage that a kernel's name suggests; None: none."""
    return next((stage for stage, form in _STAGE_OF_KERNEL if form.match(name)), None)


def is_of_engine(kernel: str) -> bool:
    """Whether a kernel is one that only engines have, by its name."""
    return _ENGINE_KERNEL.match(kernel) is not None


_HOST_WORK: Final = (
    (WAITING, regex(
        r"scheduler\.recv_requests\Z|_fetch_new_requests\Z|_fetch_and_activate_new_requests\Z"
        r"|llm_engine step: get_output\Z"
        r"|(?:.*/)?sglang/srt/managers/scheduler\.py\(\d+\): recv_requests\Z"
        r"|(?:.*/)?vllm/v1/engine/core\.py\(\d+\): _process_input_queue\Z"
    )),
    (DETOKENIZER, regex(
        r"llm_engine step: process_outputs\Z|_handle_responses\Z"
        r"|(?:.*/)?(?:vllm/v1/engine/(?:detokenizer|output_processor)\.py"
        r"|sglang/srt/managers/detokenizer_manager\.py)"
    )),
    (ON_HOST, regex(
        r"gpu_model_runner: (?:bookkeep|sample|postprocess)\Z|_sample_async\Z|_update_requests\Z"
        r"|scheduler\.process_batch_result\Z"
        r"|(?:.*/)?(?:vllm/v1/sample/|sglang/srt/layers/sampler\.py|sglang/srt/sampling/"
        r"|sglang/srt/managers/scheduler_output_processor_mixin\.py"
        r"|tensorrt_llm/_torch/pyexecutor/sampler)"
    )),
    (PREPARING, regex(
        r"gpu_model_runner: preprocess\Z|Preprocess\Z"
        r"|(?:.*/)?(?:vllm/v1/worker/gpu_model_runner\.py\(\d+\): _prepare_inputs\Z"
        r"|sglang/srt/model_executor/cuda_graph_runner\.py\(\d+\): replay_prepare\Z)"
    )),
    (SCHEDULER, regex(
        r"schedule: |core step: schedule\Z|scheduler\.(?:get_next_batch_to_run"
        r"|process_input_requests|get_new_batch_\w+|update_running_batch)\Z|_schedule\Z"
        r"|(?:.*/)?(?:vllm/v1/core/sched/|sglang/srt/managers/schedule_(?:batch|policy)\.py"
        r"|sglang/srt/managers/scheduler\.py\(\d+\): (?:get_next_batch_to_run|get_new_batch_\w+"
        r"|process_input_requests)\Z|tensorrt_llm/_torch/pyexecutor/scheduler)"
    )),
)  # fmt: skip


@lru_cache(maxsize=4096)
def host_work_of(name: str) -> str | None:
    """What an engine does on the host in a range or function, of HOST_WORK; None: unknown."""
    return next((work for work, form in _HOST_WORK if form.match(name)), None)
