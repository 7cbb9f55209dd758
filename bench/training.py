"""One training step of a small vision-language model, played onto a recorder.

Residual convolution blocks read the images, transformer blocks the text; then loss, backward on
its own thread, gradient clipping and AdamW over all tensors at once. A loader thread prepares the
next batch meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench import operators
from bench.autograd import Autograd
from bench.calls import Call, Op
from bench.operators import HALF, SINGLE
from bench.recorder import FROM_GPU, TO_GPU, Counter, Range, Recorder, Text, Thread

N_TOKENS, N_FEATURES, N_HEADS, N_WORDS = 2048, 2560, 20, 50304
N_IMAGES, N_CHANNELS, IMAGE = 16, 64, 224
N_RESIDUAL_BLOCKS_PER_BLOCK = 2
N_FOREACH_LAUNCHES_PER_BLOCK = 4
GRADIENTS_PER_BUCKET = 24
MODULE_CALL = "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py:1751"
ADAMW = (
    ("aten::_foreach_add_", "foreach_add"),
    ("aten::_foreach_mul_", "foreach_multiply"),
    ("aten::_foreach_lerp_", "foreach_lerp"),
    ("aten::_foreach_mul_", "foreach_multiply"),
    ("aten::_foreach_addcmul_", "foreach_addcmul"),
    ("aten::_foreach_sqrt", "foreach_sqrt"),
    ("aten::_foreach_div_", "foreach_divide"),
    ("aten::_foreach_add_", "foreach_add"),
    ("aten::_foreach_addcdiv_", "foreach_addcdiv"),
)


class TrainingStep:
    """A step of a model with `n_blocks` transformer blocks on one of several processes."""

    def __init__(self, recorder: Recorder, n_blocks: int, n_processes: int) -> None:
        self.recorder = recorder
        self.autograd = Autograd(recorder)
        self.n_blocks = n_blocks
        self.n_processes = n_processes
        self.frames: tuple[str, ...] = ("train.py:214", "train.py:131")

    def run(self) -> None:
        """Play the step."""
        recorder = self.recorder
        with recorder.push_range(Text("iteration %d", ((Counter.STEP, 0),))):
            batch = self.prepare_batches()
            with self.user_range("data"):
                self.copy_batch()
            compute = recorder.begin(Text("compute %d", ((Counter.STEP, 0),)))
            with self.user_range("forward"):
                self.forward()
            with self.user_range("backward"):
                self.backward()
            with self.user_range("optimizer"):
                self.clip_gradients()
                recorder.finish(compute)
                self.update()
            self.read_loss()
            recorder.finish(batch)
            recorder.mark(Text("loss logged", registered=True))

    @contextmanager
    def user_range(self, name: str) -> Iterator[None]:
        with self.recorder.push_range(Text(name, registered=True)):
            yield

    @contextmanager
    def layer(self, name: str, frame: str) -> Iterator[None]:
        """A module call: its `layer:` range, and one more frame under its calls."""
        outer, self.frames = self.frames, (*self.frames, MODULE_CALL, frame)
        with self.recorder.push_range(Text(f"layer:{name}", registered=True)):
            yield
        self.frames = outer

    def call(self, call: Call, line: int, registered: bool = False) -> None:
        """Make a call from a line of the model's file."""
        self.autograd.call(call, (*self.frames, f"model.py:{line}"), registered)

    def prepare_batches(self) -> Range:
        """Play the loader thread; return the open range of the batch."""
        recorder = self.recorder
        with recorder.on(Thread.LOADER, at_once=True):
            batch = recorder.begin(Text("batch %d", ((Counter.STEP, 0),)))
            with recorder.push_range(Text("load batch %d", ((Counter.STEP, 1),))):
                for part in ("read", "decode", "augment", "collate", "pin memory"):
                    with self.user_range(part):
                        recorder.pass_time(40_000, 200_000)
        return batch

    def copy_batch(self) -> None:
        recorder, text = self.recorder, self.autograd.op_text
        loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        with recorder.push_range(text(loader)):
            recorder.pass_time(20_000, 60_000)
        for n_bytes in (N_IMAGES * 3 * IMAGE * IMAGE * 4, N_TOKENS * 8):
            with (
                recorder.push_range(text("aten::to")),
                recorder.push_range(text("aten::_to_copy")),
                recorder.push_range(text("aten::copy_")),
            ):
                recorder.copy(n_bytes, TO_GPU)

    def forward(self) -> None:
        self.images()
        tokens = (N_TOKENS, N_FEATURES)
        with self.layer("text", "model.py:31"):
            self.call(operators.embedding(N_TOKENS, N_WORDS, N_FEATURES), 118)
            self.call(operators.dropout(tokens), 120)
            for i in range(self.n_blocks):
                with self.layer(f"block{i}", "model.py:122"):
                    self.transformer_block(fused=i % 2 == 0)
            self.call(operators.layer_norm(tokens), 126)
        with self.layer("head", "model.py:35"):
            self.call(operators.linear(N_TOKENS, N_FEATURES, N_WORDS, "gemm_head"), 131)
        self.call(operators.cross_entropy(N_TOKENS, N_WORDS), 133)

    def images(self) -> None:
        image, stem = (N_IMAGES, 3, IMAGE, IMAGE), (N_IMAGES, N_CHANNELS, IMAGE // 2, IMAGE // 2)
        small = (N_IMAGES, N_CHANNELS, IMAGE // 4, IMAGE // 4)
        with self.layer("images", "model.py:28"):
            self.call(operators.stem_conv2d(image, (N_CHANNELS, 3, 7, 7)), 62, registered=True)
            self.call(operators.batch_norm(stem), 63, registered=True)
            self.call(operators.relu(stem), 64, registered=True)
            self.call(operators.max_pool2d(stem), 65, registered=True)
            for i in range(self.n_blocks * N_RESIDUAL_BLOCKS_PER_BLOCK):
                with self.layer(f"residual{i}", "model.py:66"):
                    self.residual_block()
            self.call(operators.mean_pool(small), 68, registered=True)
            self.call(operators.cast((N_IMAGES, N_CHANNELS)), 69, registered=True)

    def residual_block(self) -> None:
        x = (N_IMAGES, N_CHANNELS, IMAGE // 4, IMAGE // 4)
        weight = (N_CHANNELS, N_CHANNELS, 3, 3)
        for line in (75, 79):
            self.call(operators.conv2d(x, weight), line, registered=True)
            self.call(operators.batch_norm(x), line + 1, registered=True)
            self.call(operators.relu(x), line + 2, registered=True)
        self.call(operators.add(x, SINGLE), 83, registered=True)

    def transformer_block(self, fused: bool) -> None:
        tokens, wide = (N_TOKENS, N_FEATURES), (N_TOKENS, 4 * N_FEATURES)
        self.call(operators.layer_norm(tokens), 90)
        with self.layer("attention", "model.py:91"):
            self.attention(fused)
        self.call(operators.add(tokens, HALF), 92)
        self.call(operators.layer_norm(tokens), 93)
        with self.layer("mlp", "model.py:94"):
            self.call(operators.linear(N_TOKENS, N_FEATURES, 4 * N_FEATURES, "gemm_widen"), 108)
            self.call(operators.gelu(wide), 109)
            self.call(operators.linear(N_TOKENS, 4 * N_FEATURES, N_FEATURES, "gemm_narrow"), 110)
            self.call(operators.dropout(tokens), 111)
        self.call(operators.add(tokens, HALF), 95)

    def attention(self, fused: bool) -> None:
        n_batch, depth = 2, N_FEATURES // N_HEADS
        length = N_TOKENS // n_batch
        self.call(operators.linear(N_TOKENS, N_FEATURES, 3 * N_FEATURES, "gemm_qkv"), 98)
        self.call(operators.split_heads(N_TOKENS, N_FEATURES), 99)
        if fused:
            self.call(operators.attention((n_batch, N_HEADS, length, depth)), 101)
        else:
            heads = (n_batch * N_HEADS, length, depth)
            scores = (n_batch * N_HEADS, length, length)
            turned = (n_batch * N_HEADS, depth, length)
            self.call(operators.matmul(heads, turned, "gemm_scores"), 102)
            self.call(operators.scale(scores, depth**-0.5), 102)
            self.call(operators.masked_fill(scores), 103)
            self.call(operators.softmax(scores), 104)
            self.call(operators.matmul(scores, heads, "gemm_context"), 105)
            self.call(operators.contiguous(heads), 105)
        self.call(operators.linear(N_TOKENS, N_FEATURES, N_FEATURES, "gemm_project"), 106)

    def backward(self) -> None:
        autograd = self.autograd
        seq = self.recorder.n_seq
        with self.recorder.push_range(autograd.op_text("aten::ones_like", ((),), seq)):
            autograd.plain(Op("aten::fill_", ((),), ("fill",)))
        autograd.backward(GRADIENTS_PER_BUCKET if self.n_processes > 1 else None)

    def foreach(self, name: str, kernel: str) -> None:
        """One op over all parameters, with as many launches as its argument lists need."""
        n_launches = N_FOREACH_LAUNCHES_PER_BLOCK * self.n_blocks
        self.autograd.plain(Op(name, (), (kernel,) * n_launches))

    def clip_gradients(self) -> None:
        self.foreach("aten::_foreach_norm", "foreach_norm")
        self.autograd.plain(Op("aten::linalg_vector_norm", (), ("foreach_norm_sum", "norm")))
        self.autograd.plain(Op("aten::reciprocal", ((),), ("divide",)))
        self.foreach("aten::_foreach_mul_", "foreach_multiply")

    def update(self) -> None:
        recorder, text = self.recorder, self.autograd.op_text
        with recorder.push_range(text("Optimizer.step#AdamW.step")):
            for name, kernel in ADAMW:
                self.foreach(name, kernel)
        with recorder.push_range(text("Optimizer.zero_grad#AdamW.zero_grad")):
            self.foreach("aten::_foreach_zero_", "foreach_zero")

    def read_loss(self) -> None:
        """Copy the loss to the host, which waits for it."""
        recorder, text = self.recorder, self.autograd.op_text
        with (
            recorder.push_range(text("aten::item")),
            recorder.push_range(text("aten::_local_scalar_dense")),
        ):
            recorder.copy(4, FROM_GPU)
            recorder.wait_for_gpu()
