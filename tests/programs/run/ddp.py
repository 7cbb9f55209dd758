"""DistributedDataParallel with gloo."""

import torch
from called import write_called
from torch import distributed

distributed.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
model = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if distributed.get_rank() == 0:
    print(loss.item())
    write_called(net)  # annotate_layers leaves the prefix of the wrapper out
distributed.barrier()
del model, optimizer, loss  # torch crashes now and then if they outlive the process group
distributed.destroy_process_group()
