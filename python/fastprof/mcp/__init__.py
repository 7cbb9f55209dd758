"""The server of `fastprof mcp`: reports for assistants. `server` and `http` load the SDK."""
