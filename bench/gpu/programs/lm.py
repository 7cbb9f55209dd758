"""A GPT of 12 layers: attention that writes its scores, vocabulary 50257, foreach AdamW.

Gradients are clipped, with `.item()`. --ckpt, --fp32 and --tf32 make it slower.
"""

import math

import torch
import torch.nn.functional as F
from common import DEVICE, options, run
from torch import nn
from torch.utils.checkpoint import checkpoint

args = options(
    "sdpa fused compile ckpt pad fp32 noclip tf32", batch=8, layers=12, dim=1024, seq=1024
)
torch.backends.cuda.matmul.allow_tf32 = args.tf32
VOCABULARY = 50304 if args.pad else 50257
HEADS = args.dim // 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(args.dim, 3 * args.dim)
        self.out = nn.Linear(args.dim, args.dim)
        mask = torch.tril(torch.ones(args.seq, args.seq, dtype=torch.bool))
        self.register_buffer("mask", mask)

    def forward(self, x):
        n = x.shape[0]
        q, k, v = self.qkv(x).view(n, args.seq, 3, HEADS, 64).permute(2, 0, 3, 1, 4)
        if args.sdpa:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(64)
            y = scores.masked_fill(~self.mask, float("-inf")).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(n, args.seq, args.dim))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(args.dim), Attention()
        self.norm2 = nn.LayerNorm(args.dim)
        self.mlp = nn.Sequential(
            nn.Linear(args.dim, 4 * args.dim), nn.GELU(), nn.Linear(4 * args.dim, args.dim)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, args.dim)
        self.positions = nn.Parameter(torch.zeros(args.seq, args.dim))
        self.blocks = nn.ModuleList(Block() for _ in range(args.layers))
        self.norm, self.head = nn.LayerNorm(args.dim), nn.Linear(args.dim, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if args.ckpt else block(x)
        return self.head(self.norm(x))


model = Model().to(DEVICE)
kind = {"fused": True} if args.fused else {"foreach": True}
optimizer = torch.optim.AdamW(model.parameters(), 3e-4, **kind)
forward = torch.compile(model) if args.compile else model
ids = torch.randint(0, 50257, (args.batch, args.seq + 1), device=DEVICE)


def step():
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=not args.fp32):
        scores = forward(ids[:, :-1])
        loss = F.cross_entropy(scores.float().view(-1, VOCABULARY), ids[:, 1:].reshape(-1))
    loss.backward()
    if not args.noclip and nn.utils.clip_grad_norm_(model.parameters(), 1.0).item() > 1e9:
        raise SystemExit("diverged")
    optimizer.step()
    optimizer.zero_grad()


run(step, args, warm_up=6, n=10)
