"""Serving stacks: vLLM, SGLang, FlashInfer, aiter, TensorRT-LLM."""
