"""Questions of MCP servers to the user: forms and pages, from a reference server and from hostile ones."""

import json
import re
import secrets
import sys
from pathlib import Path

from harness import Failure, Server, require, require_equal
from mcp_client import APPROVED, McpCalls, McpClient, configure, text_of
from mock_model import calls, says
from socket_client import SocketClient

_VERSION = "2026.8.31"
_PROGRAM = Path(__file__).with_name("mcp_hostile_program.py")
_METHOD = "mcpServer/elicitation/request"
_FORM, _PAGE = "trigger-elicitation-request", "trigger-url-elicitation"
_MESSAGE = "Please provide inputs for the following fields:"
_CONTENT = {"name": "Ada", "check": True, "integer": 7}
_ACCEPTED = {"action": "accept", "content": _CONTENT, "_meta": None}
_URL = "https://example.com/loom?warp=1"
#: The page that the reference server wants to be visited first.
_FIRST_URL = "https://modelcontextprotocol.io"
#: Open questions of a call at a time, and in all.
_OPEN_MAX, _ASKED_MAX = 4, 32


def _everything(bench):
    path = "@modelcontextprotocol/server-everything/dist/index.js"
    program = bench.parts.package("mcp-servers", _VERSION, path)
    return {"everything": {"command": bench.parts.node, "args": [program], **APPROVED}}


class _Asked(McpCalls):
    """The part of a client that answers questions."""

    def begin(self, server, tool, arguments=None, thread=None):
        """Starts a turn in which the model calls a tool."""
        name = f"mcp__{server}__{tool}"
        text = f"MOCK call name={name} arguments={json.dumps(arguments or {})}"
        said = [{"type": "text", "text": text}]
        self._send("turn/start", {"threadId": thread or self.thread, "input": said})

    def until(self, method):
        """Reads to the next message with this method, and returns it."""
        for message in self._messages():
            if message.get("method") == method:
                return message
        raise Failure(f"the server ended before {method}")

    def answer(self, request, result):
        self._write({"id": request["id"], "result": result})

    def refuse(self, request):
        self._write({"id": request["id"], "error": {"code": -32601, "message": "unknown"}})

    def ended_call(self):
        """Reads to the end of the turn, and returns how it ended and its last MCP call."""
        (status,), items = self.ended_calls(1)
        return status, items[-1]

    def ended_calls(self, turns):
        """Reads to the end of so many turns, and returns how they ended and all their MCP calls."""
        statuses, items = [], []
        for message in self._messages():
            params = message.get("params", {})
            if message.get("method") == "item/completed" and params["item"]["type"] == "mcpToolCall":
                items.append(params["item"])
            if message.get("method") == "turn/completed":
                statuses.append(params["turn"]["status"])
            if len(statuses) == turns:
                return statuses, items
        raise Failure("the server ended before the turn did")

    def received(self, method):
        messages = [json.loads(it) for it in self.lines]
        return [it for it in messages if it.get("method") == method]


class _Client(_Asked, McpClient):
    """With its own server process."""


class _SocketClient(_Asked, SocketClient):
    """On a websocket."""


def _question(message):
    """Checks the envelope of a question, and returns its params."""
    params = message["params"]
    require(params["threadId"] and params["turnId"], f"the question is {params}")
    require_equal("the name of the server", params["serverName"], "everything")
    return params


def answers(bench):
    """Each answer to a form and a page reaches the server, and the turn continues."""
    configure(bench, _everything(bench), approval_policy="on-request")
    client = _Client(bench)
    client.wait_until_connected(["everything"])
    for tool, arguments, result, text in [
        (_FORM, {}, _ACCEPTED, "- Name: Ada\n- Agreed to terms: true\n- Favorite Integer: 7"),
        (_FORM, {}, {"action": "decline"}, "User declined"),
        (_FORM, {}, {"action": "cancel"}, "User cancelled"),
        (_FORM, {}, {}, "User declined"),
        (_FORM, {}, {"action": "accept", "content": {"name": "x" * 100_000}}, "User declined"),
        (_FORM, {}, None, "User declined"),
        (_PAGE, {"url": _URL}, {"action": "accept", "content": _CONTENT}, '"action": "accept"\n}'),
        (_PAGE, {"url": _URL}, {"action": "decline"}, '"action": "decline"'),
    ]:
        what = f"{tool} answered with {json.dumps(result)[:80]}"
        client.begin("everything", tool, arguments)
        request = client.until(_METHOD)
        params = _question(request)
        if tool == _FORM:
            require_equal("the form", (params["mode"], params["message"]), ("form", _MESSAGE))
            fields = params["requestedSchema"]["properties"]
            require_equal("a field", fields["check"]["type"], "boolean")
            require_equal("the required fields", params["requestedSchema"]["required"], ["name"])
        else:
            require_equal("the page", (params["mode"], params["url"]), ("url", _URL))
            require(params["elicitationId"], f"the question is {params}")
        if result is None:
            client.refuse(request)
        else:
            client.answer(request, result)
        resolved = client.until("serverRequest/resolved")
        require_equal("the resolved request", resolved["params"]["requestId"], request["id"])
        status, item = client.ended_call()
        require_equal(f"the end of {what}", (status, item["status"]), ("completed", "completed"))
        require(text in text_of(item), f"the result of {what} is {text_of(item)!r}")
    # The server answers the call with an error that asks for another page first.
    client.begin("everything", _PAGE, {"url": _URL, "errorPath": True})
    for url in (_FIRST_URL, _URL):
        request = client.until(_METHOD)
        require_equal("the page", _question(request)["url"], url)
        client.answer(request, {"action": "accept"})
    status, item = client.ended_call()
    require_equal("the end of a call with two pages", (status, item["status"]), ("completed", "completed"))
    client.begin("everything", _PAGE, {"url": f"{_URL}&weft=2", "errorPath": True})
    client.answer(client.until(_METHOD), {"action": "decline"})
    status, item = client.ended_call()
    require_equal("the end without the first page", (status, item["status"]), ("completed", "failed"))
    waiting = [json.dumps(it["params"]) for it in client.received("thread/status/changed")]
    require(any("waitingOnUserInput" in it for it in waiting), f"the states were {waiting}")
    client.leave()


def interrupted(bench):
    """An interrupt withdraws the question and cancels the call; the next call works."""
    configure(bench, _everything(bench), approval_policy="on-request")
    client = _Client(bench)
    client.wait_until_connected(["everything"])
    client.begin("everything", _FORM)
    request = client.until(_METHOD)
    turn = _question(request)["turnId"]
    client._send("turn/interrupt", {"threadId": client.thread, "turnId": turn})
    status, item = client.ended_call()
    require_equal("the end of the turn", (status, item["status"]), ("interrupted", "failed"))
    resolved = client.received("serverRequest/resolved") or [client.until("serverRequest/resolved")]
    require_equal("the withdrawn request", resolved[-1]["params"]["requestId"], request["id"])
    # A late answer has no effect.
    client.answer(request, _ACCEPTED)
    _, item = client.call_tool("everything", "echo", {"message": "warp"})
    require_equal("the next call", text_of(item), "Echo: warp")
    client.leave()


def forbidden(bench):
    """Where the approval policy forbids questions, the server is declined and no client is asked."""
    configure(bench, _everything(bench))
    client = _Client(bench)
    client.wait_until_connected(["everything"])
    _, item = client.call_tool("everything", _FORM)
    require("User declined" in text_of(item), f"the result is {text_of(item)!r}")
    require_equal("the questions", client.received(_METHOD), [])
    client.leave()


def hostile(bench):
    """Questions beyond the limits, without a call, and of two threads are declined."""
    kinds = ["storm", "two-calls", "uncalled"]
    servers = {it: {"command": sys.executable, "args": [_PROGRAM, it], **APPROVED} for it in kinds}
    configure(bench, servers, approval_policy="on-request")
    client = _Client(bench)
    client.wait_until_connected(servers)

    _, item = client.call_tool("uncalled", "act")
    require_equal("a question without a call", text_of(item), "asked without a call: ['decline']")

    other = client.call("thread/start", {"cwd": str(bench.workspace)})["thread"]["id"]
    for thread in (client.thread, other):
        client.begin("two-calls", "act", thread=thread)
    statuses, items = client.ended_calls(2)
    require_equal("the ends of two turns", statuses, ["completed"] * 2)
    texts = [text_of(it) for it in items]
    require_equal("a question beside two threads", texts, ["asked of two: decline"] * 2)
    require_equal("the questions so far", client.received(_METHOD), [])

    client.begin("storm", "act")
    for _ in range(_ASKED_MAX):
        request = client.until(_METHOD)
        params = json.dumps(request["params"])
        require(not re.search(r"\\u001b|\\u202e", params), f"the question is {params}")
        client.answer(request, {"action": "accept", "content": {"colour": "red"}})
    status, item = client.ended_call()
    require_equal("the end of the storm", (status, item["status"]), ("completed", "completed"))
    counts, bad = re.fullmatch(r"accepted (\[.*\]) (\d+)", text_of(item)).groups()
    counts = json.loads(counts)
    require_equal("how many were accepted", (sum(counts), int(bad)), (_ASKED_MAX, 0))
    require(max(counts) >= _OPEN_MAX, f"the accepted questions of each round are {counts}")
    require_equal("the questions", len(client.received(_METHOD)), _ASKED_MAX)
    client.leave()


def _secured(bench, token):
    # The folder of the token is hidden from MCP servers, which need the workspace beside it.
    file = bench.folder / "token" / "file"
    file.parent.mkdir(exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(token)
    auth = ["--ws-auth", "capability-token", "--ws-token-file", str(file)]
    return Server(bench, "--listen", "ws://127.0.0.1:0", *auth)


#: The model repeats a call that was lost with the server, once the MCP server is connected.
def _repeats(tool):
    return [
        ("asking the user a question", [calls(tool, {})]),
        ("is still starting", [calls("wait_for_mcp_servers", {})]),
        ("everything: connected", [calls(tool, {})]),
        ("User provided", says("noted")),
        ("weave", [calls(tool, {})]),
    ]


def killed(bench):
    """The server is killed while a question is open. The call is lost and the model is told so; the call that it
    repeats asks another client.
    """
    tool = f"mcp__everything__{_FORM}"
    model = configure(bench, _everything(bench), _repeats(tool), approval_policy="on-request")
    token = secrets.token_hex(16)
    server = _secured(bench, token)
    one = _SocketClient(bench, server.port, token)
    one.wait_until_connected(["everything"])
    said = [{"type": "text", "text": "weave"}]
    one._send("turn/start", {"threadId": one.thread, "input": said})
    _question(one.until(_METHOD))
    server.kill()

    server = _secured(bench, token)
    two = _SocketClient(bench, server.port, token)
    two.call("thread/resume", {"threadId": one.thread})
    asked = two.received(_METHOD)
    request = asked[-1] if asked else two.until(_METHOD)
    require_equal("the thread that asks", _question(request)["threadId"], one.thread)
    two.answer(request, _ACCEPTED)
    status, item = two.ended_call()
    require_equal("the end of the turn", (status, item["status"]), ("completed", "completed"))
    require("- Name: Ada" in text_of(item), f"the result is {text_of(item)!r}")
    read = json.dumps(model.bodies()[-1])
    require("so it was lost and no answer can reach it" in read, "the model was not told of the lost call")

    items = two.call("thread/read", {"threadId": one.thread, "includeTurns": True})["thread"]["turns"][-1]["items"]
    items = [it for it in items if it["type"] == "mcpToolCall"]
    statuses = (items[0]["status"], items[-1]["status"])
    require_equal("the calls of the turn", statuses, ("failed", "completed"))
    require("asking the user a question" in text_of(items[0]), f"the lost call is {items[0]}")
    two.leave()
    server.stop()


CHECKS = {
    "mcp-elicitation": answers,
    "mcp-elicitation-interrupted": interrupted,
    "mcp-elicitation-forbidden": forbidden,
    "mcp-elicitation-hostile": hostile,
    "mcp-elicitation-killed": killed,
}
