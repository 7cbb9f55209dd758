"""A model with one compiled block: the block is one layer, the rest is reported call by call.

python examples/compile.py
fastprof nsys --captured -- python examples/compile.py
"""

import torch
import torch.nn.functional as F
from torch import nn

import fastprof
import settings

options = settings.read(__doc__)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.outer(F.gelu(self.inner(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        # On a GPU, the default compiler fuses operators into Triton kernels. On a CPU, it would run
        # a slow C++ compiler, so use the backend that stops after tracing.
        compiler = "inductor" if options.device == "cuda" else "aot_eager"
        self.block = torch.compile(Block(width), backend=compiler)
        self.head = nn.Linear(width, 100)

    def forward(self, tokens):
        return self.head(self.block(self.embedding(tokens)))


model = Model().to(options.device)
tokens = torch.randint(100, (4, 32), device=options.device)

fastprof.init()
fastprof.annotate_layers(model)

# The first iteration compiles, so skip it.
with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        model(tokens).sum().backward()
        capture.step()

settings.say_where(options)
