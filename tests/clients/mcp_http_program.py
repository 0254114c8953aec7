"""An MCP server over streamable HTTP, built with FastMCP: a port, and the bearer token that it accepts."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier

port, token = sys.argv[1:]
server = FastMCP("loom", auth=StaticTokenVerifier({token: {"client_id": "check", "scopes": []}}))


@server.tool(annotations={"readOnlyHint": True})
def weave(threads: int) -> str:
    """Weaves a cloth of so many threads."""
    return f"a cloth of {threads} threads"


server.run(transport="http", host="127.0.0.1", port=int(port), path="/mcp", show_banner=False)
