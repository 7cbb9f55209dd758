"""Source lines of a call stack: the owner of each by names, and the lines that a report shows.

A frame is `FILE:LINE`, the executing line, or `FILE:LINE FUNCTION` from torch.profiler's Python
stacks. There the line is that of the frame when the profiler first saw it: the function's
definition, except for functions already running and for resumed generators
(PyFrame_GetLineNumber in torch/csrc/autograd/profiler_python.cpp).

torch.profiler removes the `sys.path` prefix from paths: an installed package appears as
`transformers/models/t5/modeling_t5.py`, the standard library as `threading.py` and a user's script
as `train.py`. Only the first component distinguishes them.
"""

from __future__ import annotations

import enum
import fnmatch
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex

# The standard library, without names that users commonly give to scripts and folders.
STANDARD: Final = frozenset(sys.stdlib_module_names) - {
    "calendar", "chunk", "cmd", "code", "crypt", "html", "imp", "parser", "profile", "resource",
    "site", "statistics", "test", "this", "token", "trace", "turtle",
}  # fmt: skip

# Entries directly below the folders of torch and triton: `/build/pytorch/torch/nn` is torch's,
# `/home/me/torch/train.py` is not.
TORCH_PARTS: Final = (
    r"_\w+|accelerator|amp|ao|autograd|backends|compiler|contrib|cpu|cuda|distributed|distributions"
    r"|export|fft|func|functional\.py|futures|fx|hub\.py|jit|library\.py|linalg|masked|monitor|mps"
    r"|mtia|multiprocessing|nested|nn|onnx|optim|overrides\.py|package|profiler|quantization"
    r"|quasirandom\.py|random\.py|return_types\.py|serialization\.py|signal|sparse|special"
    r"|storage\.py|tensor\.py|testing|types\.py|utils|xpu"
)
TRITON_PARTS: Final = r"_\w+|backends|compiler|experimental|knobs\.py|language|runtime|testing\.py"

TORCH: Final = frozenset({"torch", "functorch", "torchgen", "triton"})

# Packages that work with torch, or that run between a program and its training loop. Names that are
# equally likely a user's folder (`datasets`, `models`, `clip`) are omitted.
_NAMES: Final = """
IPython MinkowskiEngine PIL SimpleITK _pytest absl accelerate aiobotocore aiohttp aiter
albumentations anyio apex asgiref auto_gptq autoawq axolotl bagua beartype bitsandbytes botocore
botorch byteps caffe2 captum catboost causal_conv1d click cloudpickle colossalai colossalai_kernel
compressed_tensors cudf cugraph cuml cupy cutlass cv2 dask deep_ep deep_gemm deepspeed detectron2
dgl diffusers dill e3nn einops espnet executorch fairscale fairseq fairseq2 faiss fastai fastapi
fastprof fbgemm_gpu fla flash_attn flash_attn_interface flash_linear_attention flashinfer flax
fsspec gguf gpytorch gradio gsplat gunicorn gym gymnasium h5py habana_frameworks hivemind horovod
hqq httpx huggingface_hub hydra ignite intel_extension_for_pytorch ipykernel jax jaxtyping joblib
jupyter_client jupyter_core k_diffusion keras kornia langchain lavis librosa liger_kernel lightgbm
lightning lightning_fabric lightning_utilities litgpt llama_index llmfoundry lm_eval
lm_format_enforcer lmcache lmdb lmdeploy loguru mamba_ssm matplotlib medpy megatron mlflow
mmaction mmcls mmcv mmdeploy mmdet mmdet3d mmengine mmpose mmpretrain mmseg mmselfsup modelopt
modelscope monai msgpack msgspec nbclient nemo nemo_toolkit nerfstudio networkx nltk nncf nnunetv2
numba numpy nvidia ogb omegaconf oneflow onnx onnxruntime onnxscript opacus open_clip openvino
optimum optimum_quanto optree outlines paddle pandas peft petals pkg_resources pluggy polars
psutil pyarrow pydantic pyg_lib pyprof pyro pytest pytorch3d pytorch_forecasting pytorch_lightning
pytorch_metric_learning quanto ray recbole requests rich rmm sagemaker schnetpack scipy
segmentation_models_pytorch selective_scan sentence_transformers sentencepiece setuptools
sgl_kernel sglang sglang_router skimage sklearn sklearnex skorch spacy spconv speechbrain
stable_baselines3 starlette streamlit sympy tensorboard tensorboardX tensordict tensorflow
tensorrt_llm tensorstore thinc thunder tilelang timm tokenizers torch_cluster torch_geometric
torch_npu torch_optimizer torch_scatter torch_sparse torch_tensorrt torch_xla torchao torchaudio
torchdata torchdiffeq torchio torchmetrics torchopt torchrec torchrl torchsde torchsparse
torchtext torchtitan torchtune torchvision tornado tqdm traitlets transformer_engine
transformer_engine_torch transformers trl typeguard typer ultralytics unsloth urllib3 uvicorn
uvloop vllm vllm_ascend vllm_flash_attn wandb webdataset wrapt xarray xformers xgboost xgrammar
yaml yunchang zarr zmq
"""
PACKAGES: Final = frozenset(_NAMES.split())
# Single-file packages.
MODULES: Final = frozenset({"six", "torch_guard", "typing_extensions"})


_LIBRARY_FRAME = regex(
    r"/torch/nn/modules/|/torch/nn/functional\.py:|/torch/tensor\.py:|/torch/_tensor\.py:"
    r"|/torch/autograd/|/torch/_jit_internal\.py:|/torch/_utils\.py:|/torch/optim/"
    r"|/apex/optimizers/|/pyprof/nvtx/|/fastprof/annotate/|/nvmarker\.py:"
)


def is_library_frame(frame: str) -> bool:
    """Whether a frame is always omitted: torch's frames around every call, such as those of a
    module's forward, and frames of the annotator."""
    return _LIBRARY_FRAME.search("/" + frame.replace("\\", "/") + ":") is not None


class Owner(enum.Enum):
    """The owner of a source file."""

    TORCH = "torch, triton, code they generate, and Python's standard library"
    LIBRARY = "another installed package"
    MINE = "the user"


_FRAME: Final = regex(r"(.+?):(\d+)(?: (.*))?\Z", re.DOTALL)
_MOST_DIGITS: Final = 9


class FramePlace(NamedTuple):
    """A frame's file, line and function; None where the frame does not name it."""

    file: str
    line: int | None
    function: str | None


def place_of(frame: str) -> FramePlace:
    """The place of a frame `FILE:LINE` or `FILE:LINE FUNCTION`."""
    match = _FRAME.match(frame)
    if match is None:
        return FramePlace(frame, None, None)
    line = int(match[2]) if len(match[2]) <= _MOST_DIGITS else None
    return FramePlace(match[1], line, match[3] or None)


_INSTALLED: Final = regex(r"(?:^|.*/)(?:site|dist)-packages/", re.DOTALL)
_STANDARD: Final = regex(
    r"(?:^|/)lib(?:64)?/(?:python|pypy)3(?:\.\d+)?t?/|/python3\d*(?:\.zip|/lib)/", re.IGNORECASE
)
_OF_TORCH: Final = regex(
    rf"(?:^|/)torch/(?:{TORCH_PARTS})(?:/|\Z)"
    rf"|(?:^|/)triton/(?:{TRITON_PARTS})(?:/|\Z)"
)
# Files of torch's compiler: `ov/cov463qh...`, a hash in a folder named after its second and third
# letters, in any cache folder; and files of its debug mode.
_GENERATED: Final = regex(
    r"(?:^|/)([a-z2-7]{2})/c\1[a-z2-7]{40,}\.py\Z|/torchinductor_[^/]*/|(?:^|/)torch_compile_debug/"
    r"|/\.triton/"
)
_TYPED: Final = regex(r"<(?:stdin|console|ipython-input|input|command)\b")
_MADE: Final = regex(r"<(?:frozen |eval_with_key)")


@functools.lru_cache(maxsize=1 << 14)
def owner_of(file: str) -> Owner | None:
    """The owner of a file, by its path. None for code without a file (`<string>`), which has the
    owner of its caller."""
    path = file.replace("\\", "/")
    if path.startswith("<"):
        if _MADE.match(path):
            return Owner.TORCH
        return Owner.MINE if _TYPED.match(path) else None
    if _GENERATED.search(path) or _OF_TORCH.search(path):
        return Owner.TORCH
    installed = _INSTALLED.match(path)
    if installed is None and _STANDARD.search(path):
        return Owner.TORCH
    if installed is None and (path.startswith("/") or path[1:3] == ":/"):
        return Owner.MINE
    return _owner_by_name(path[installed.end() if installed else 0 :], installed is not None)


def _owner_by_name(path: str, is_installed: bool) -> Owner:
    """The owner of a file, by the first component of its path below a `sys.path` folder."""
    name, is_folder, _ = path.partition("/")
    name = name.removesuffix(".py")
    if is_folder and name in TORCH:
        return Owner.TORCH
    if is_installed or name in (PACKAGES if is_folder else MODULES):
        return Owner.LIBRARY
    return Owner.TORCH if name in STANDARD else Owner.MINE


def path_pattern(globs: Sequence[str]) -> re.Pattern[str]:
    """A pattern of the paths, with forward slashes, whose trailing components match a glob.

    Raises
    ------
    ValueError
        A glob is empty.
    """
    folded = [glob.replace("\\", "/").removeprefix("./").rstrip("/") for glob in globs]
    if "" in folded:
        raise ValueError(f"expected globs of files or folders, found {list(globs)!r}")
    each = "|".join(fnmatch.translate(glob)[:-2] for glob in folded)  # without \\Z
    return re.compile(rf"(?:.*/)?(?:{each})(?:/.*)?\Z", re.DOTALL)


class SourceLines:
    """Selects the source lines of a call stack that a report shows.

    Parameters
    ----------
    mine : str or sequence of str
        Globs of the user's own files and folders; all other files are then not the user's. A glob
        matches trailing path components: `train.py`, `src/*`, `transformers`. By default, files
        outside installed packages and the standard library are the user's.

    Raises
    ------
    ValueError
        A glob is empty.
    """

    def __init__(self, mine: str | Sequence[str] = ()) -> None:
        globs = [mine] if isinstance(mine, str) else list(mine)
        try:
            self._mine = path_pattern(globs) if globs else None
        except ValueError as error:
            raise ValueError(f"mine: {error}") from None
        self._owner_of: dict[str, Owner | None] = {}  # of frames: each is in many stacks

    def trace(self, frames: Sequence[str]) -> tuple[str, ...]:
        """The frames without trailing ones of torch, triton or the standard library."""
        return tuple(frames[: self._last(frames, Owner.LIBRARY, Owner.MINE) + 1])

    def library_line(self, frames: Sequence[str]) -> str | None:
        """The last frame of `trace`: the user's or a package's. None if there is none."""
        last = self._last(frames, Owner.LIBRARY, Owner.MINE)
        return frames[last] if last >= 0 else None

    def line(self, frames: Sequence[str]) -> str | None:
        """The last frame of the user's own files. None if there is none."""
        last = self._last(frames, Owner.MINE)
        return frames[last] if last >= 0 else None

    def mine(self, frames: Sequence[str]) -> list[bool]:
        """Whether each frame is in the user's own files."""
        return [owner is Owner.MINE for owner in self._owners(frames)]

    def _last(self, frames: Sequence[str], *owners: Owner) -> int:
        """Index of the last frame of these owners, -1 for none."""
        last = len(frames) - 1  # of the frames that have the owner of their caller
        for i in range(last, -1, -1):
            owner = self._owner(frames[i])
            if owner in owners:
                return last
            if owner is not None:
                last = i - 1
        return last if Owner.MINE in owners else -1

    def _owners(self, frames: Sequence[str]) -> Iterator[Owner]:
        """The owner of each frame; code without a file has the owner of its caller."""
        caller = Owner.MINE
        for frame in frames:
            caller = self._owner(frame) or caller
            yield caller

    def _owner(self, frame: str) -> Owner | None:
        if frame not in self._owner_of:
            self._owner_of[frame] = self._owner_of_file(place_of(frame).file)
        return self._owner_of[frame]

    def _owner_of_file(self, file: str) -> Owner | None:
        owner = owner_of(file)
        if self._mine is None:
            return owner
        if self._mine.match(file.replace("\\", "/")):
            return Owner.MINE
        return Owner.LIBRARY if owner is Owner.MINE else owner


_DEEPEST: Final = 64  # maximum number of dots searched in a name; modules nest less deeply


def each_part_once(names: Sequence[str]) -> tuple[str, ...]:
    """Remove the names of enclosing layers from the names of nested layers.

    `model`, `model.layers.0`, `model.layers.0.mlp` become `model`, `layers.0`, `mlp`. If a name
    starts with an enclosing layer's name and a dot, both are removed; the longest match wins.

    Parameters
    ----------
    names : sequence of str
        The recorded names, outermost first.

    Returns
    -------
    tuple of str
        Same length and order. A nonempty name stays nonempty.
    """
    around: set[str] = set()
    parts = []
    for name in names:
        parts.append(name[_repeated(name, around) :])
        around.add(name)
    return tuple(parts)


def _repeated(name: str, around: set[str]) -> int:
    """Length of the prefix of a name that is an enclosing layer's name and a dot; 0 if none."""
    end = name.rfind(".", 0, len(name) - 1)
    for _ in range(_DEEPEST):
        if end <= 0:
            break
        if name[:end] in around:
            return end + 1
        end = name.rfind(".", 0, end)
    return 0
