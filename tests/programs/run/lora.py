"""peft: LoRA adapters; only they are trained."""

import torch
from called import write_called
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
net = get_peft_model(
    GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=100, n_positions=64)),
    LoraConfig(target_modules=["c_attn"], r=4, fan_in_fan_out=True),
)
optimizer = torch.optim.AdamW(
    [parameter for parameter in net.parameters() if parameter.requires_grad]
)
for i in range(8):
    ids = torch.arange(i, i + 8)[None]
    loss = net(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
write_called(net)
