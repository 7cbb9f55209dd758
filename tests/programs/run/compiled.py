"""torch.compile of the model and of the optimizer's step."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
model = torch.compile(net, backend="aot_eager")
step = torch.compile(optimizer.step, backend="aot_eager")
for _ in range(8):
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    step()
    optimizer.zero_grad()
print(loss.item())
