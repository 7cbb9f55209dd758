"""`history`: the figures of stored captures over many commits, and where they change."""
