"""`serving`: tokens per second, time per token and between tokens, idle time between iterations."""
