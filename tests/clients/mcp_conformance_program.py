"""The program under test as an MCP client, for the official conformance suite.

The suite starts this with the address of its server. It logs in if the server requires that, lists the tools, and
calls each of them once.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

_SAMPLES = {"string": "warp", "number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}
_TRIES = 5


class Server:
    def __init__(self, raddle, home, url):
        config = 'model = "mock/mock"\n[mcp_servers.suite]\n' f"url = {json.dumps(url)}\n"
        Path(home, "config.toml").write_text(config)
        self._number = 0
        self._process = subprocess.Popen(
            [raddle, "app-server"],
            env={**os.environ, "RADDLE_HOME": home, "HOME": home},
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, method, **params):
        """Returns the result, or None."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        print(json.dumps(message), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            answer = json.loads(line)
            if "method" in answer and "id" in answer:
                # A question of the server: every form is accepted with its defaults.
                reply = {"id": answer["id"], "result": {"action": "accept", "content": {}}}
                print(json.dumps(reply), file=self._process.stdin, flush=True)
            elif answer.get("id") == self._number:
                print(method, json.dumps(answer)[:2000], file=sys.stderr)
                return answer.get("result")
        sys.exit("the server ended")

    def end(self):
        self._process.stdin.close()
        self._process.wait()


def main(raddle, url):
    with tempfile.TemporaryDirectory() as home:
        server = Server(raddle, home, url)
        server.call("initialize", clientInfo={"name": "suite", "version": "1"})
        thread = server.call("thread/start", cwd=home)["thread"]["id"]
        tools = connect(server, thread)
        called = [
            server.call("mcpServer/tool/call", threadId=thread, server="suite", tool=name, arguments=sample(it))
            for name, it in (tools or {}).items()
        ]
        server.end()
    sys.exit(0 if tools is not None and None not in called else 1)


def connect(server, thread):
    """Returns the tools by their names; None without a connection."""
    for _ in range(_TRIES):
        (state,) = server.call("mcpServerStatus/list", threadId=thread)["data"]
        if state["runtimeStatus"] == "connected":
            return state["tools"]
        if state["authStatus"] == "notLoggedIn":
            login = server.call("mcpServer/oauth/login", name="suite")
            if login is None:
                return None
            with urllib.request.urlopen(login["authorizationUrl"], timeout=30) as page:
                page.read()
    return None


def sample(tool):
    schema = tool.get("inputSchema", {})
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    return {name: _SAMPLES.get(properties.get(name, {}).get("type"), "warp") for name in required}


main(*sys.argv[1:])
