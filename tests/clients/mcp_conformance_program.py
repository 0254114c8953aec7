"""The client command of the MCP conformance suite: its server becomes an MCP server of the program under test.

Arguments: a folder, the program under test, the folder of the parts, and the URL, which the suite appends. The
suite names the scenario in MCP_CONFORMANCE_SCENARIO. The exit code is 0 if the client reached the end of the
scenario; the suite judges the requests that its server received.
"""

import sys

# Before the imports below: no caches in the source tree.
sys.dont_write_bytecode = True

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

from harness import DEADLINE_S, Bench, Failure, Parts, require, wait_until
from mcp_client import APPROVED, McpClient, configure, text_of

_NAME = "suite"
#: The tool of each scenario, and its arguments. Servers of scenarios about logins list `test-tool`.
_TOOLS = {
    "initialize": None,
    "tools_call": ("add_numbers", {"a": 2, "b": 3}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    "sse-retry": ("test_reconnection", {}),
}
_TOOL_OF_LOGINS = ("test-tool", {})
#: Logins that a user attempts for one call.
_LOGINS_MAX = 2


class ConformanceClient(McpClient):
    """A client whose user accepts each request of the server with the default values of its form."""

    def _messages(self):
        for message in super()._messages():
            if message.get("method") == "mcpServer/elicitation/request":
                self._accept(message)
                continue
            yield message

    def _accept(self, request):
        fields = request["params"].get("requestedSchema", {}).get("properties", {})
        content = {name: it["default"] for name, it in fields.items() if "default" in it}
        answer = {"action": "accept", "content": content, "_meta": None}
        self._write({"id": request["id"], "result": answer})

    def state(self):
        return self.states()[_NAME]

    def settled(self):
        """Waits until the server is connected, failed, or requires a login, and returns its state."""

        def settled():
            state = self.state()
            return (state["serverInfo"] or state["toolsError"] or _needs_login(state)) and state

        state = wait_until(settled)
        require(state, "the server is still starting")
        return state

    def log_in(self):
        """Logs in, as a user with a browser does. Returns whether the user is logged in."""
        since = len(self.lines)
        login = self.call("mcpServer/oauth/login", {"name": _NAME, "threadId": self.thread})
        try:
            with urllib.request.urlopen(login["authorizationUrl"], timeout=DEADLINE_S):
                pass
        except urllib.error.HTTPError as error:
            raise Failure(f"the browser shows {error.code}: {error.read()!r}") from None

        def completed():
            # Each request reads the notifications before its response.
            self.state()
            messages = [json.loads(it) for it in self.lines[since:]]
            ends = [it["params"] for it in messages if it.get("method") == "mcpServer/oauthLogin/completed"]
            return ends and ends[-1]

        end = wait_until(completed)
        require(end, "the login has no end")
        require(end["success"], f"the login failed: {end.get('error')}")


def _needs_login(state):
    return state["authStatus"] == "notLoggedIn"


def main():
    folder, raddle, parts, url = sys.argv[1:]
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    bench = Bench(Path(folder) / scenario.replace("/", "-"), Path(raddle), Parts(Path(parts)))
    try:
        _play(bench, scenario, url)
    finally:
        bench.close()


def _play(bench, scenario, url):
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    configure(bench, {_NAME: {"url": url, **_keys(context), **APPROVED}}, approval_policy="on-request")
    client = ConformanceClient(bench)
    state = client.settled()
    if _needs_login(state):
        client.log_in()
        state = client.settled()
    require(state["serverInfo"], f"the server is not connected: {state['toolsError']}")
    tool = _TOOLS.get(scenario, _TOOL_OF_LOGINS)
    if tool:
        _call(client, *tool)
    client.leave()


def _keys(context):
    """Returns the keys of a client that the suite has registered."""
    if "client_secret" not in context and "client_id" not in context:
        return {}
    names = ("client_id", "client_secret")
    return {"oauth": {name: context[name] for name in names if name in context}}


def _call(client, tool, arguments):
    """Calls a tool. If the call needs another login, the user logs in and the call is repeated."""
    for _ in range(_LOGINS_MAX):
        _, item = client.call_tool(_NAME, tool, arguments)
        if item["status"] == "completed":
            return
        if not _needs_login(client.state()):
            break
        client.log_in()
    raise Failure(f"the call of {tool} failed: {text_of(item)}")


try:
    main()
except Failure as failure:
    sys.exit(str(failure))
