"""A client of `raddle mcp-server` with the official Python SDK. Prints what it saw as one JSON object."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

_DECISIONS = {"touch made": "accept", "touch another": "decline"}


async def main():
    seen = {"texts": [], "threads": [], "forms": [], "steps": []}

    async def fill_in(_context, params):
        seen["forms"].append(params.message)
        (decision,) = [it for words, it in _DECISIONS.items() if words in params.message]
        return ElicitResult(action="accept", content={"decision": decision})

    async def step(_progress, _total, message):
        seen["steps"].append(message)

    server = StdioServerParameters(command=sys.argv[1], args=["mcp-server"], env=dict(os.environ))
    async with Client(server, elicitation_callback=fill_in) as client:
        seen["tools"] = [it.name for it in (await client.list_tools()).tools]
        result = await client.call_tool("codex", {"prompt": "weave"})
        thread = result.structured_content["threadId"]
        seen["texts"].append(result.content[0].text)
        seen["threads"].append(thread)
        result = await client.call_tool("codex-reply", {"prompt": "and then", "threadId": thread})
        seen["texts"].append(result.content[0].text)
        seen["threads"].append(result.structured_content["threadId"])
        for prompt in ("make it", "make another"):
            await client.call_tool("codex", {"prompt": prompt}, progress_callback=step)
        result = await client.call_tool("codex", {"prompt": "x", "sandbox": "none"})
        seen["mistake"] = result.content[0].text if result.is_error else ""
    print(json.dumps(seen))


asyncio.run(main())
