"""The model that the programs of simulated runs train, as operations with kernels.

The sizes are those of a small model on H100s: a block of 1024 features and 8192 tokens takes 0.4 ms
forward and 0.8 ms backward. Times of kernels follow from their shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bench.ranks.program import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    ROWS,
    Compute,
    Operation,
    Python,
    Ranks,
)

RATE: Final = 400e12  # FLOP/s of matrix products
MEMORY: Final = 2.4e12  # bytes/s of pointwise kernels
GEMM: Final = (
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT",
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN",
)
POINTWISE: Final = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::{0}, std::array<char*, {1}ul> >"
    "(int, at::native::{0}, std::array<char*, {1}ul>)"
)
GELU: Final = POINTWISE.format("GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda#1}", 2)
GELU_BACKWARD: Final = POINTWISE.format(
    "GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&)::{lambda#1}", 3
)
NORM: Final = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
    "(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*,"
    " c10::BFloat16*)"
)
NORM_BACKWARD: Final = (
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized"
    "<c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*,"
    " c10::BFloat16 const*, c10::BFloat16*, int)"
)
ADAM: Final = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
    "(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)"
    "::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false> >()"
)
BF16: Final = "c10::BFloat16"


@dataclass(eq=False)
class Model:
    """The operations of a stack of blocks: LayerNorm, Linear, GELU, Linear.

    Attributes
    ----------
    blocks, features, hidden, rows : int
        `hidden`: features between the two linear layers of a rank; `rows`: tokens of a rank.
    name : str
        The modules around the blocks.
    first : int
        Number of the first block.
    batch : int
        Number of the micro batch, which tells autograd nodes apart.
    ranks : int64 [members] or None
        The ranks that execute it; None: all.
    """

    blocks: int = 4
    features: int = 1024
    hidden: int = 4096
    rows: int = 8192
    name: str = "Net_0"
    first: int = 0
    batch: int = 0
    ranks: Ranks | None = None

    @property
    def parameters(self) -> int:
        """Weights of a block on a rank."""
        return 2 * self.features * self.hidden

    def layer(self, block: int) -> str:
        """The modules around a block and itself."""
        return f"{self.name}/Block_{self.first + block}"

    def _place(self, block: int) -> tuple[str, int, int]:
        """Modules, first autograd node, and number in the whole model of a block."""
        return self.layer(block), 4 * (block + self.batch * self.blocks), self.first + block

    def _matrix(self, op: str, m: int, k: int, n: int, kernel: int, **others: Any) -> Compute:
        """A matrix product; m, k or n is ROWS."""
        a, b, c = (self.rows if size == ROWS else size for size in (m, k, n))
        dims: tuple[tuple[int, ...], ...] = ((m, k), (k, n))
        types: tuple[str, ...] = (BF16, BF16)
        if op == "aten::addmm":
            dims, types = ((n,), *dims, (), ()), (BF16, *types, "Scalar", "Scalar")
        return Compute(
            op=op, ns=2_000 + round(2 * a * b * c / RATE * 1e9), kernel=GEMM[kernel],
            rows=self.rows, dims=dims, types=types, ranks=self.ranks, **others,
        )  # fmt: skip

    def _pointwise(self, op: str, kernel: str, width: int, n: int, **others: Any) -> Compute:
        """An operator on `n` arrays of rows x width."""
        moved = (n + 1) * 2 * self.rows * width
        return Compute(
            op=op, ns=2_000 + round(moved / MEMORY * 1e9), kernel=kernel, rows=self.rows,
            dims=((ROWS, width),) * n, types=(BF16,) * n, ranks=self.ranks, **others,
        )  # fmt: skip

    def forward_attention(self, block: int) -> list[Operation]:
        """The first half of a block: LayerNorm and the first Linear layer."""
        layer, node, number = self._place(block)
        common = {"phase": FORWARD}
        return [
            Python(ns=30_000, ranks=self.ranks),
            self._pointwise(
                "aten::native_layer_norm", NORM, self.features, 1,
                layer=f"{layer}/LayerNorm_{number}", node=node, **common,
            ),
            self._matrix(
                "aten::addmm", ROWS, self.features, self.hidden, 0,
                layer=f"{layer}/Linear_{2 * number}", node=node + 1, **common,
            ),
        ]  # fmt: skip

    def forward_output(self, block: int) -> list[Operation]:
        """The second half of a block: GELU and the second Linear layer."""
        layer, node, number = self._place(block)
        common = {"phase": FORWARD}
        return [
            self._pointwise(
                "aten::gelu", GELU, self.hidden, 1,
                layer=f"{layer}/GELU_{number}", node=node + 2, **common,
            ),
            self._matrix(
                "aten::addmm", ROWS, self.hidden, self.features, 0,
                layer=f"{layer}/Linear_{2 * number + 1}", node=node + 3, **common,
            ),
        ]  # fmt: skip

    def forward(self, block: int) -> list[Operation]:
        """A block forward."""
        return self.forward_attention(block) + self.forward_output(block)

    def backward_output(self, block: int) -> list[Operation]:
        """The second half of a block backward."""
        layer, node, number = self._place(block)
        linear = {"phase": BACKWARD, "layer": f"{layer}/Linear_{2 * number + 1}", "node": node + 3}
        linear["backward"] = "AddmmBackward0"
        return [
            self._matrix("aten::mm", ROWS, self.features, self.hidden, 1, **linear),
            self._matrix("aten::mm", self.features, ROWS, self.hidden, 2, **linear),
            self._pointwise(
                "aten::gelu_backward", GELU_BACKWARD, self.hidden, 2, phase=BACKWARD,
                layer=f"{layer}/GELU_{number}", node=node + 2, backward="GeluBackward0",
            ),
        ]  # fmt: skip

    def backward_attention(self, block: int) -> list[Operation]:
        """The first half of a block backward."""
        layer, node, number = self._place(block)
        linear = {"phase": BACKWARD, "layer": f"{layer}/Linear_{2 * number}", "node": node + 1}
        linear["backward"] = "AddmmBackward0"
        return [
            self._matrix("aten::mm", ROWS, self.hidden, self.features, 1, **linear),
            self._matrix("aten::mm", self.hidden, ROWS, self.features, 2, **linear),
            self._pointwise(
                "aten::native_layer_norm_backward", NORM_BACKWARD, self.features, 2,
                phase=BACKWARD, layer=f"{layer}/LayerNorm_{number}", node=node,
                backward="NativeLayerNormBackward0",
            ),
        ]  # fmt: skip

    def backward(self, block: int) -> list[Operation]:
        """A block backward."""
        return self.backward_output(block) + self.backward_attention(block)

    def optimizer(self, share: int = 1) -> list[Operation]:
        """The update of a 1/`share` of all weights."""
        moved = 4 * 4 * self.blocks * self.parameters // share
        return [
            Python(ns=50_000, phase=OPTIMIZER, ranks=self.ranks),
            Compute(
                op="aten::_fused_adamw_", ns=2_000 + round(moved / MEMORY * 1e9), kernel=ADAM,
                phase=OPTIMIZER, dims=((),) * 6, types=("TensorList",) * 6, ranks=self.ranks,
            ),
        ]  # fmt: skip
