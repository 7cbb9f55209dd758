"""torchvision: ResNet-18; each ReLU is one module that is called twice."""

import torch
import vision_operators  # noqa: F401
from called import write_called
from torch.nn.functional import cross_entropy
from torchvision.models import resnet18

torch.manual_seed(0)
net = resnet18(num_classes=10)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(6):
    loss = cross_entropy(net(torch.randn(2, 3, 64, 64)), torch.tensor([1, 2]))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
write_called(net)
