"""`ranges`: the user's own ranges."""
