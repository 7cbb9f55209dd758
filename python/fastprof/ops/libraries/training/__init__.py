"""Fused operators of training packages: Transformer Engine, Liger, Apex, Megatron, bitsandbytes."""
