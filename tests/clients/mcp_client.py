"""A client for checks of MCP servers: their configuration, their states, and calls of their tools by the mock."""

import json
import re

from harness import Failure, require, require_equal, wait_until
from mock_model import MockModel
from stdio_client import StdioClient, Turn

#: A call by the model needs no approval, so that a check tests the call.
APPROVED = {"default_tools_approval_mode": "approve"}


def sections(servers):
    """Returns the part of `config.toml` with these servers: their names, and their keys."""
    return "".join(_section(name, keys) for name, keys in servers.items())


def _section(name, keys):
    lines = [f"{key} = {_toml(value)}\n" for key, value in keys.items()]
    return f"\n[mcp_servers.{json.dumps(name)}]\n{''.join(lines)}"


def _toml(value):
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(it)}' for key, it in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value if isinstance(value, (bool, int, float)) else str(value))


def configure(bench, servers, answers=(), approval_policy="never", **settings):
    """Writes a configuration with these servers and the mock, which is returned."""
    model = MockModel(bench, answers)
    model.configure(bench, sandbox_mode="workspace-write", approval_policy=approval_policy, **settings)
    with open(bench.server_home / "config.toml", "a", encoding="utf-8") as file:
        file.write(sections(servers))
    return model


def comparable(name):
    """Returns the name of a tool without the characters in which products differ."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def offered(body):
    """Returns the MCP tools of a model call, flat or in namespaces, by their whole comparable names."""
    tools = {}
    for tool in body.get("tools", []):
        name = tool.get("name", "")
        if not name.startswith("mcp__"):
            continue
        for inner in tool.get("tools", [tool]):
            whole = name if inner is tool else f"{name}__{inner['name']}"
            tools[comparable(whole)] = inner
    return tools


class McpCalls:
    """The part of a client that uses MCP servers. Its threads have the settings of the configuration."""

    settings_of_turns = {}

    def states(self, thread=None):
        """Returns the status of each server for a thread, by its name."""
        listed = self.call("mcpServerStatus/list", {"threadId": thread or self.thread})
        require_equal("the cursor of the list", listed["nextCursor"], None)
        return {it["name"]: it for it in listed["data"]}

    def wait_until_connected(self, names, thread=None):
        """Waits until these servers have listed their tools, and returns the states of all."""

        def connected():
            states = self.states(thread)
            return all(states.get(it, {}).get("tools") for it in names) and states

        states = wait_until(connected)
        require(states, f"not connected: {[n for n, s in self.states(thread).items() if not s['tools']]}")
        return states

    def turns(self, threads, text):
        """Starts a turn in each thread at once, and reads all to their ends."""
        said = [{"type": "text", "text": text}]
        for thread in threads:
            self._send("turn/start", {"threadId": thread, "input": said, **self.settings_of_turns})
        turns = {thread: Turn() for thread in threads}
        for message in self._messages():
            require("error" not in message, f"the response was {message}")
            turn = turns.get(message.get("params", {}).get("threadId"))
            if turn:
                turn.hear(message)
            if all(it.status for it in turns.values()):
                return list(turns.values())
        raise Failure("the server ended before the turns did")

    def call_tool(self, server, tool, arguments=None):
        """Lets the model call a tool. Returns the item as started and as completed."""
        since = len(self.lines)
        name = f"mcp__{server}__{tool}"
        turn = self.turn(f"MOCK call name={name} arguments={json.dumps(arguments or {})}")
        require_equal(f"how the turn with {name} ended", (turn.status, turn.error), ("completed", None))
        messages = [json.loads(it) for it in self.lines[since:]]
        items = [
            (it["method"], it["params"]["item"])
            for it in messages
            if it.get("method") in ("item/started", "item/completed")
            and it["params"]["item"]["type"] == "mcpToolCall"
        ]
        require_equal(f"the notifications of {name}", [it for it, _ in items], ["item/started", "item/completed"])
        (_, started), (_, completed) = items
        require_equal("the status at the start", started["status"], "inProgress")
        require_equal("the ids of the item", completed["id"], started["id"])
        for item in (started, completed):
            called = (item["server"], item["tool"], item["arguments"])
            require_equal("the call in the item", called, (server, tool, arguments or {}))
        return started, completed


class McpClient(McpCalls, StdioClient):
    """A client with its own server process."""


def text_of(item):
    """Returns the text of a result, or the error."""
    if item["error"]:
        return item["error"]["message"]
    return "\n".join(it.get("text", "") for it in item["result"]["content"])
