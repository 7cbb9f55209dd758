"""fully_shard (FSDP2) with gloo."""

import torch
from called import write_called
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

distributed.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
fully_shard(net[0], mesh=mesh)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(8):
    loss = net(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if distributed.get_rank() == 0:
    print(loss.item())
    write_called(net)
distributed.barrier()
del net, optimizer, loss
distributed.destroy_process_group()
