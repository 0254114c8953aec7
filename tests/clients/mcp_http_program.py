"""An MCP server over streamable HTTP, built with FastMCP: a port, and the bearer token that it accepts.

Without a token it requires a login with OAuth, and issues tokens itself without asking a user. Then `/expire`
makes all access tokens expire, and `/refreshes` counts the requests for new ones.
"""

import asyncio
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.responses import JSONResponse

#: Time of a refresh, so that others would overlap with it.
_REFRESH_S = 0.3


class CountingProvider(InMemoryOAuthProvider):
    """A provider that counts refreshes, also those that fail."""

    refreshes = 0

    async def load_refresh_token(self, client, refresh_token):
        self.refreshes += 1
        await asyncio.sleep(_REFRESH_S)
        return await super().load_refresh_token(client, refresh_token)


port, *tokens = sys.argv[1:]
if tokens:
    auth = StaticTokenVerifier({tokens[0]: {"client_id": "check", "scopes": []}})
else:
    registration = ClientRegistrationOptions(enabled=True)
    auth = CountingProvider(
        base_url=f"http://127.0.0.1:{port}", client_registration_options=registration
    )
server = FastMCP("loom", auth=auth)


@server.tool(annotations={"readOnlyHint": True})
def weave(threads: int) -> str:
    """Weaves a cloth of so many threads."""
    return f"a cloth of {threads} threads"


@server.custom_route("/expire", methods=["POST"])
async def expire(_):
    # The refresh tokens stay valid.
    auth.access_tokens.clear()
    return JSONResponse({})


@server.custom_route("/refreshes", methods=["GET"])
async def refreshes(_):
    return JSONResponse(auth.refreshes)


server.run(transport="http", host="127.0.0.1", port=int(port), path="/mcp", show_banner=False)
