"""timm: a vision transformer, with timm's own optimizer."""

import torch
import vision_operators  # noqa: F401  before timm

import timm  # isort: skip
from called import write_called
from timm.optim import create_optimizer_v2

torch.manual_seed(0)
net = timm.create_model("vit_tiny_patch16_224", num_classes=10, depth=3)
optimizer = create_optimizer_v2(net, opt="lamb", lr=1e-3)
for _ in range(6):
    loss = net(torch.randn(1, 3, 224, 224)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
write_called(net)
