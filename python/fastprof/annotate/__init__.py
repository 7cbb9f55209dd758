"""What runs in a training script, so that its capture says more: the only room with torch."""
