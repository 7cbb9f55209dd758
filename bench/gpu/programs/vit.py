"""ViT-B/16 training with a GradScaler: fp32 by default."""

import timm
import torch
from common import DEVICE, options, run

args = options("amp fused", batch=64)
model = timm.create_model("vit_base_patch16_224").to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=args.fused or None)
x = torch.randn(args.batch, 3, 224, 224, device=DEVICE)
y = torch.randint(0, 1000, (args.batch,), device=DEVICE)
scaler = torch.amp.GradScaler(DEVICE, enabled=args.amp)


def step():
    with torch.autocast(DEVICE, dtype=torch.float16, enabled=args.amp):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


run(step, args, warm_up=6, n=10)
