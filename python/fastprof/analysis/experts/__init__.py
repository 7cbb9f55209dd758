"""`experts`: mixtures of experts by layer: tokens, time, and how even the work is."""
