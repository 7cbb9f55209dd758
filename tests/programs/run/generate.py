"""transformers: generate, without training."""

import torch
from called import write_called
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
net = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64))
net.eval()
for i in range(8):
    made = net.generate(torch.full((1, 4), i), max_new_tokens=5, do_sample=False, pad_token_id=0)
print(made.tolist())
write_called(net)
