"""A transformer encoder in bfloat16: attention as one operator, blocks as layers.

python examples/transformer.py
fastprof nsys --captured -- python examples/transformer.py
"""

import torch
import torch.nn.functional as F
from torch import nn

import fastprof
import settings

options = settings.read(__doc__)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        # [batch, tokens, 3 * width] -> three of [batch, heads, tokens, width / heads]
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


model = nn.Sequential(*(Block(width=64, heads=4) for _ in range(2))).to(options.device)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(2, 48, 64, device=options.device)

fastprof.init()
fastprof.annotate_layers(model, "encoder")  # encoder, encoder.0, encoder.0.attention, ...


def step():
    with torch.autocast(options.device, dtype=torch.bfloat16):
        loss = model(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        step()
        capture.step()

settings.say_where(options)
