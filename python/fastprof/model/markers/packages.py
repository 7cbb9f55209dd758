"""Package and module names that identify the owner of a source file with a relative path.

torch.profiler removes the `sys.path` prefix from paths: an installed package appears as
`transformers/models/t5/modeling_t5.py`, the standard library as `threading.py` and a user's script
as `train.py`. Only the first component distinguishes them.
"""

from __future__ import annotations

import sys
from typing import Final

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
