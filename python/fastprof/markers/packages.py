"""Names that tell whose a source file is, where its path does not.

torch.profiler cuts what stands on `sys.path` off the paths that it writes: an installed package is
`transformers/models/t5/modeling_t5.py`, Python's own library `threading.py`, and a script of the
user's `train.py`. So only the first name of such a path tells them apart.
"""

from __future__ import annotations

import sys
from typing import Final

# Of Python's own library, without the names that people give to scripts and folders of theirs.
STANDARD: Final = frozenset(sys.stdlib_module_names) - {
    "calendar", "chunk", "cmd", "code", "crypt", "html", "imp", "parser", "profile", "resource",
    "site", "statistics", "test", "this", "token", "trace", "turtle",
}  # fmt: skip

# What stands directly below the folders of torch and triton: `/build/pytorch/torch/nn` is torch's,
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

# Installed packages that work with torch, or that stand between a program and its training loop.
# Names that are as likely a folder of the user's (`datasets`, `models`, `clip`) are left out.
_NAMES: Final = """
IPython PIL _pytest absl accelerate aiohttp aiter albumentations apex asgiref axolotl beartype
bitsandbytes botocore botorch captum catboost causal_conv1d click cloudpickle colossalai cupy cv2
dask deepspeed detectron2 dgl diffusers dill e3nn einops espnet fairscale fairseq fairseq2 faiss
fastai fastapi fastprof fbgemm_gpu flash_attn flash_attn_interface flashinfer flax gpytorch gradio
gunicorn gym gymnasium huggingface_hub hydra ignite ipykernel jax jaxtyping joblib jupyter_client
jupyter_core keras kornia librosa liger_kernel lightgbm lightning lightning_fabric
lightning_utilities litgpt llmfoundry mamba_ssm matplotlib megatron mlflow mmcv mmdet mmengine
mmseg monai nbclient nemo networkx nltk numba numpy omegaconf onnx onnxruntime opacus open_clip
optimum pandas peft pkg_resources pluggy pydantic pyg_lib pyprof pyro pytest pytorch_lightning ray
sagemaker scipy segmentation_models_pytorch sentence_transformers sentencepiece setuptools
sgl_kernel sglang skimage sklearn sklearnex skorch spacy speechbrain stable_baselines3 starlette
streamlit sympy tensordict tensorflow tensorrt_llm tensorstore thinc thunder timm tokenizers
torch_cluster torch_geometric torch_scatter torch_sparse torch_tensorrt torch_xla torchao
torchaudio torchdata torchmetrics torchrec torchrl torchtext torchtitan torchtune torchvision
tornado tqdm traitlets transformer_engine transformer_engine_torch transformers trl typeguard
typer ultralytics unsloth uvicorn uvloop vllm wandb wrapt xformers xgboost yunchang zmq
"""
PACKAGES: Final = frozenset(_NAMES.split())
# Packages of one file.
MODULES: Final = frozenset({"six", "torch_guard", "typing_extensions"})
