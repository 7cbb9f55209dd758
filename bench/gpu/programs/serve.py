"""Decoding of a small Llama of transformers, one token at a time; weights are random."""

import torch
from common import DEVICE, options, run
from transformers import LlamaConfig, LlamaForCausalLM

args = options("compile", batch=1, tokens=16, layers=16)
config = LlamaConfig(
    hidden_size=2048, intermediate_size=5632, num_hidden_layers=args.layers, num_attention_heads=32,
    num_key_value_heads=8, vocab_size=32000, max_position_embeddings=2048,
)  # fmt: skip
model = LlamaForCausalLM(config).to(torch.bfloat16).to(DEVICE).eval()
ids = torch.randint(0, 32000, (args.batch, 128), device=DEVICE)
mask = torch.ones_like(ids)
how = {
    "max_new_tokens": args.tokens, "min_new_tokens": args.tokens, "do_sample": False,
    "pad_token_id": 0,
}  # fmt: skip
if args.compile:
    how["cache_implementation"] = "static"


@torch.inference_mode()
def step():
    return model.generate(ids, attention_mask=mask, **how)


run(step, args, warm_up=4, n=6)
