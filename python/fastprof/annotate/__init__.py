"""What a training script calls while it runs, so that its capture says more."""
