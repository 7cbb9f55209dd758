"""What kind of program a file is of: by the names of its kernels, ranges, modules and threads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.markers import Kind, Meaning
from fastprof.model.markers.meaning import EVALUATE
from fastprof.model.metadata import OF_AMD, About
from fastprof.ops.kernels import classify

TRAINING: Final = "torch training"
INFERENCE: Final = "torch inference"
TORCH: Final = "torch"  # whether it trains is not known
SERVING: Final = "serving engine"  # on PyTorch
ENGINE: Final = "inference engine"  # without PyTorch
JAX, TENSORFLOW, MXNET = "jax", "tensorflow", "mxnet"
CUPY, RAPIDS, NUMBA = "cupy", "rapids", "numba"
CUDA, HIP = "cuda", "hip"  # C++
OTHER: Final = "other"  # another framework or language
UNKNOWN: Final = "unknown"

USES_TORCH: Final = frozenset({TRAINING, INFERENCE, TORCH, UNKNOWN})
"""The kinds of which the user writes code for PyTorch; most of what is unknown is one of these."""
TRAINS: Final = frozenset({TRAINING, TORCH, UNKNOWN})
"""The kinds that may have gradients and an optimizer of PyTorch."""
WRITES_KERNELS: Final = frozenset({CUDA, HIP, CUPY, NUMBA, OTHER})
"""The kinds of which the user writes kernels and chooses streams."""
WITH_OPERATORS: Final = USES_TORCH | {SERVING}
"""The kinds that may have operators of PyTorch."""

_LONGEST: Final = 300  # characters used of a name
_SHOWN: Final = 50  # characters of a name in the evidence


@dataclass(frozen=True)
class Program:
    """What kind of program.

    Parameters
    ----------
    kind : a constant of this module
    name : such as "PyTorch training" or "vLLM"; "" if unknown
    evidence : the names that tell
    is_compiled : whether kernels came out of torch.compile
    shares_gradients : whether gradients are parts of larger buffers, as DDP and FSDP can keep them
    """

    kind: str = UNKNOWN
    name: str = ""
    evidence: str = ""
    is_compiled: bool = False
    shares_gradients: bool = False

    @property
    def uses_torch(self) -> bool:
        """Whether the user writes code for PyTorch, as far as is known."""
        return self.kind in USES_TORCH

    def choose(self, texts: Mapping[str, str]) -> str:
        """The text for its name or kind, PyTorch or C++ if it is of these, else that of OTHER."""
        for key in (self.name, self.kind, SERVING if self.kind == ENGINE else self.kind):
            if key in texts:
                return texts[key]
        if self.kind == HIP and CUDA in texts:
            return texts[CUDA].replace("cuda", "hip").replace("CUDA", "HIP")
        return texts.get(TORCH, texts[OTHER]) if self.uses_torch else texts[OTHER]

    def facts(self) -> dict[str, str | None]:
        """For JSON: kind, name and evidence."""
        return {"kind": self.kind, "name": self.name or None, "evidence": self.evidence or None}


@dataclass(frozen=True)
class _Mark:
    """A kind, its name, and what names of kernels and of ranges tell it; "" for nothing.

    words : each match contains one of these, in lower case; most traces have none, and need not be
        searched
    """

    kind: str
    name: str
    kernels: str = ""
    ranges: str = ""
    words: tuple[str, ...] = ("",)


# The first one counts. A module or range tells more than a kernel: engines borrow those.
_ENGINES: Final = (
    _Mark(
        SERVING, "SGLang", r"\bsgl_(?:hip|kernel)|_sgl_|7sgl_hip",
        r"\bsglang/|^sglang_|^sgl_kernel::|^step.[A-Z_0-9]+ bs=\d|^scheduler.run_batch$",
        ("sgl_", "sglang", " bs=", "run_batch"),
    ),
    _Mark(
        SERVING, "vLLM", r"\bvllm::|_ZN4vllm|\bpaged_attention_v[12]|\breshape_and_cache",
        r"(?:^|/)vllm/|^_?vllm(?:_\w+)?::|^execute_context_\d+\(|^execute_new_\d+_cached_\d"
        r"|^gpu_model_runner: ",
        ("vllm", "paged_attention", "reshape_and_cache", "execute_", "gpu_model_runner"),
    ),
    _Mark(
        SERVING, "text-generation-inference", "", r"(?:^|/)text_generation_server/",
        ("text_generation_server",),
    ),
    _Mark(
        SERVING, "LMDeploy", r"\bturbomind::", r"(?:^|/)lmdeploy/", ("turbomind", "lmdeploy"),
    ),
    _Mark(
        SERVING, "TensorRT-LLM", r"\btensorrt_llm::|_ZN12tensorrt_llm",
        r"(?:^|/)tensorrt_llm/|^trtllm::|^tensorrt_llm|^\[Executor\] _forward_step",
        ("tensorrt_llm", "trtllm", "_forward_step"),
    ),
    _Mark(SERVING, "xDiT", "", r"(?:^|/)xfuser/", ("xfuser",)),
    _Mark(
        ENGINE, "llama.cpp", r"\bggml_type\b|^(?:void )?mul_mat_(?:vec_)?q\w*[<(]", "",
        ("ggml_type", "mul_mat_"),
    ),
    _Mark(
        ENGINE, "ONNX Runtime", r"\bonnxruntime::", r"(?:^|/)onnxruntime/", ("onnxruntime",),
    ),
    _Mark(
        ENGINE, "TensorRT", r"\bnvinfer1::|^trt_\w+", r"^ExecutionContext::enqueue",
        ("nvinfer1", "trt_", "executioncontext"),
    ),
)  # fmt: skip
_TORCH: Final = _Mark(
    TORCH,
    "PyTorch",
    r"\bat::(?:native|cuda)\b|_ZN2at6native|\bat_cuda_detail::|\bc10::|\bpytorch_flash::"
    r"|\bPyTorchMemEffAttention",
    r"^aten::|^ProfilerStep#|^autograd::|^Optimizer\.|^## Call CompiledF|^torch/",
)
_FRAMEWORKS: Final = (
    _Mark(OTHER, "PaddlePaddle", r"\bpaddle::|\bphi::"),
    _Mark(TENSORFLOW, "TensorFlow", r"\btensorflow::|\bEigen::internal::Eigen"),
    _Mark(MXNET, "MXNet", r"\bmxnet::|\bmshadow::"),
    _Mark(
        JAX,
        "JAX",
        r"^(?:\w+_)?fusion(?:[._]+\d+)*$|^wrapped_[a-z]\w*$|\bxla::",
        r"^(?:TSL:)?Xla[A-Z]\w*:#|^(?:TSL:)?Thunk:#|^PjRt|^PjitFunction|(?:^|/)jax/_src/",
    ),
    _Mark(
        RAPIDS,
        "RAPIDS",
        r"\b(?:cudf|cuml|raft|cugraph|cuspatial|cuvs)::|\bML::",
        r"^(?:libcudf|cudf|cuml|cugraph)\b|(?:^|/)(?:cudf|cuml|cugraph)/",
    ),
    _Mark(CUPY, "CuPy", r"^cupyx?_\w+", r"(?:^|/)cupyx?/"),
    _Mark(NUMBA, "Numba", r"\bcudapy::|^_ZN6cudapy", r"(?:^|/)numba/cuda/"),
    _Mark(OTHER, "Julia", r"^(?:_Z\d+)?julia_"),
    _Mark(OTHER, "Warp", r"_cuda_kernel_(?:forward|backward)$", r"(?:^|/)warp/"),
)
_TRAINS: Final = _Mark(
    TRAINING,
    "PyTorch training",
    r"[Bb]ackward|_bwd|bwd_|wgrad|Adam|[sS][gG][dD](?:Math|Functor)|LAMB|LambStage",
    r"^autograd::engine::evaluate_function|^Optimizer\.(?:step|zero_grad)#"
    r"|^(?i:\W*(?:backward|optimi[sz]er|train(?:ing)?)(?:[ ._](?:pass|step))?\W*)$",
    (
        *("backward", "_bwd", "bwd_", "wgrad", "adam", "sgd", "lamb"),
        *("autograd", "optimi", "train"),
    ),
)
_COMPILED: Final = _Mark(
    TORCH,
    "",
    r"^triton_(?:poi|red|per|tem|for)_",
    r"CompiledFxGraph|^Torch-Compiled Region|^CompiledFunction",
    ("triton_", "compiled"),
)
_SHARES: Final = regex(
    r"DistributedDataParallel|torch\.distributed\.ddp|^FSDP::|FullyShardedDataParallel"
    r"|deepspeed/|megatron/",
    re.M,
)
_SHARING: Final = ("distributed", "fsdp", "fullysharded", "deepspeed", "megatron")
_PYTHON: Final = regex(r"python|^pt_main|ipykernel|jupyter|torchrun|^pyper|celery|gunicorn")
_PYTHON_FILE: Final = regex(r"\.py\b")


def program_of(
    about: About,
    kernels: Iterable[str],
    meanings: Collection[Meaning],
    has_gradients: bool,
    has_graphs: bool,
) -> Program:
    """What kind of program; linear in the distinct names.

    Parameters
    ----------
    kernels : distinct names of kernels, without copies and memsets
    meanings : of the distinct names of ranges
    has_gradients : whether operators count the nodes of an autograd graph
    has_graphs : whether graphs hide kernels
    """
    names = _Names(kernels, meanings)
    is_compiled = bool(names.evidence(_COMPILED))
    shares = names.ranges.has(_SHARING) and bool(_SHARES.search(names.ranges.text))
    trains = _training(about, names, meanings)
    engine = _first(names, _ENGINES)
    torch = _torch(about, names, meanings)
    if (torch or engine is not None) and trains:
        return Program(TRAINING, _TRAINS.name, f"{torch or engine}; {trains}", is_compiled, shares)
    if engine is not None:
        kind = SERVING if torch else engine[0].kind
        return Program(kind, engine[0].name, engine[1], is_compiled)
    if torch:
        # Where all is recorded, nothing of a backward pass is there.
        tells = names.in_kernels(_TORCH) or "\naten::" in f"\n{names.ranges.text}"
        is_all = bool(names.kernels.text and tells) and not has_graphs and not has_gradients
        kind, name = (INFERENCE, "PyTorch inference") if is_all else (TORCH, "PyTorch")
        more = "; no backward pass, no optimizer" if is_all else ""
        return Program(kind, name, f"{torch}{more}", is_compiled, shares)
    framework = _first(names, _FRAMEWORKS)
    if framework is not None:
        return Program(framework[0].kind, framework[0].name, framework[1])
    return _own(about, names)


class _Names:
    """Distinct names, a line for each.

    Parameters
    ----------
    kernels : of kernels
    meanings : of ranges and Python functions
    """

    def __init__(self, kernels: Iterable[str], meanings: Iterable[Meaning]) -> None:
        self.kernels = _Lines(kernels)
        named = (meaning.name for meaning in meanings if meaning.kind != Kind.HIDDEN)
        self.ranges = _Lines(dict.fromkeys(named))  # operators differ in shapes

    def evidence(self, mark: _Mark) -> str:
        """The first name that tells, ranges before kernels; "" for none."""
        return self.in_ranges(mark) or self.in_kernels(mark)

    def in_ranges(self, mark: _Mark) -> str:
        """The first range or module that tells."""
        return _hit("range", mark.ranges, self.ranges, mark.words)

    def in_kernels(self, mark: _Mark) -> str:
        """The first kernel that tells."""
        return _hit("kernel", mark.kernels, self.kernels, mark.words)


class _Lines:
    """Names, a line for each, as they are and in lower case."""

    def __init__(self, names: Iterable[str]) -> None:
        self.text = "\n".join([name[:_LONGEST].replace("\n", " ") for name in names])
        self.lower = self.text.lower()

    def has(self, words: Iterable[str]) -> bool:
        """Whether any name contains any of some words in lower case."""
        return any(word in self.lower for word in words)


def _hit(what: str, pattern: str, lines: _Lines, words: tuple[str, ...]) -> str:
    """`kernel NAME` of the first name in which a pattern is found; "" for none."""
    text = lines.text
    match = re.search(pattern, text, re.M) if pattern and lines.has(words) else None
    if match is None:
        return ""
    begin = text.rfind("\n", 0, match.start() + 1) + 1
    end = text.find("\n", match.end())
    name = text[begin : len(text) if end < 0 else end]
    if _PYTHON_FILE.search(name):
        what = "module"
    if len(name) > _SHOWN and match.start() - begin > _SHOWN // 2:
        name = text[match.start() :].partition("\n")[0]
    return f"{what} {name.removeprefix(EVALUATE)[:_SHOWN]}"


def _first(names: _Names, marks: Iterable[_Mark]) -> tuple[_Mark, str] | None:
    """The first kind that ranges tell, else that kernels do, with the evidence."""
    marks = tuple(marks)
    for find in (names.in_ranges, names.in_kernels):
        for mark in marks:
            if hit := find(mark):
                return mark, hit
    return None


def _torch(about: About, names: _Names, meanings: Iterable[Meaning]) -> str:
    """What tells PyTorch; "" for nothing."""
    if hit := names.evidence(_TORCH):
        return hit
    if about.format in ("kineto", "dict"):
        return about.tool or "dict lines"
    kinds = (Kind.ARGUMENT, Kind.MODULE, Kind.TRACE, Kind.LAYER, Kind.TORCH)
    return next(
        (f"range {meaning.name[:_SHOWN]}" for meaning in meanings if meaning.kind in kinds), ""
    )


def _training(about: About, names: _Names, meanings: Iterable[Meaning]) -> str:
    """What tells a backward pass or an optimizer; "" for nothing."""
    if hit := names.in_ranges(_TRAINS):
        return hit
    for meaning in meanings:
        if meaning.backward or meaning.engine or meaning.autograd_node:
            return f"range {meaning.name[:_SHOWN]}"
    if hit := names.in_kernels(_TRAINS):
        return hit
    return next(
        (
            f"thread {thread}"
            for thread in about.threads.values()
            if thread.startswith("pt_autograd")
        ),
        "",
    )


def _own(about: About, names: _Names) -> Program:
    """A program without the names of a framework: C++, or another language."""
    hosts = [*about.processes.values(), *about.threads.values()]
    python = next((host for host in hosts if _PYTHON.search(host)), None)
    own = [part for part in names.kernels.text.split("\n") if part and _is_own(part)]
    if python is not None:
        return Program(OTHER, "Python", f"process {python[:_SHOWN]}") if own else Program()
    if not names.kernels.text or not (hosts or any(_is_signature(text) for text in own)):
        return Program()
    names_amd = (re.search(r"AMD|Radeon|Instinct|\bgfx", text) for text in about.gpus.values())
    is_amd = about.format in OF_AMD or any(names_amd)
    evidence = [f"kernel {own[0][:_SHOWN]}"] if own else []
    evidence += [f"process {hosts[0][:_SHOWN]}"] if hosts else []
    kind, name = (HIP, "HIP C++") if is_amd else (CUDA, "CUDA C++")
    return Program(kind, name, "; ".join([*evidence, "no framework's names"]))


def _is_own(kernel: str) -> bool:
    """Whether a kernel is of no library."""
    return classify(kernel).kind not in ("gemm", "convolution", "attention", "communication")


def _is_signature(kernel: str) -> bool:
    """Whether a name is that of a C++ function with its parameters."""
    return kernel.startswith("_Z") or re.search(r"\(.*[*,)]", kernel) is not None
