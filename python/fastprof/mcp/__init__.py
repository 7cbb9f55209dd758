"""The MCP server of `fastprof mcp`: reports for assistants. Only `server` and `http` load the SDK."""
