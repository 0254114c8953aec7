"""An MCP server over streamable HTTP, built with FastMCP: a port, and the bearer token that it accepts.

Without a token it requires a login with OAuth, and issues tokens itself without asking a user.
"""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from mcp.server.auth.settings import ClientRegistrationOptions

port, *tokens = sys.argv[1:]
if tokens:
    auth = StaticTokenVerifier({tokens[0]: {"client_id": "check", "scopes": []}})
else:
    registration = ClientRegistrationOptions(enabled=True)
    auth = InMemoryOAuthProvider(
        base_url=f"http://127.0.0.1:{port}", client_registration_options=registration
    )
server = FastMCP("loom", auth=auth)


@server.tool(annotations={"readOnlyHint": True})
def weave(threads: int) -> str:
    """Weaves a cloth of so many threads."""
    return f"a cloth of {threads} threads"


server.run(transport="http", host="127.0.0.1", port=int(port), path="/mcp", show_banner=False)
