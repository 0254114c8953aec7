"""Hostile MCP servers: what they may do, and what must not happen to anything else.

All servers of a table run beside each other in one process of the program under test, together with a server that
behaves. After each case that server is called, so that a case which harms others is found.
"""

import json
import re
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path

from harness import require, require_equal, wait_until
from mcp_client import APPROVED, McpClient, comparable, configure, offered, text_of

_PROGRAM = Path(__file__).with_name("mcp_hostile_program.py")
_GOOD = "good"
#: For servers that do not answer.
_SHORT = {"tool_timeout_sec": 1}
#: The part of a key that the hostile program searches for.
_KEY = "planted-key-"
_SECRETS = ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "RADDLE_SOCKET_TOKEN"]
#: Bytes of an item, a model call and the log, however much a server sends.
_ITEM_BYTES_MAX = 512 << 10
_BODY_BYTES_MAX = 256 << 10
_LOG_BYTES_MAX = 8 << 20
_PROGRESS_BYTES_MAX = 1 << 10
#: Peak memory of the process, in KiB: a few messages of the largest size, for all servers together.
_MEMORY_KIB_MAX = 512 << 10
#: The folder of a check may be in /tmp, which sandboxed processes may write by default.
_NO_TMP = {
    "sandbox_workspace_write.exclude_slash_tmp": True,
    "sandbox_workspace_write.exclude_tmpdir_env_var": True,
}
#: In MiB: four times the limit of a message.
_LINE = 64
_LINE_OF_PROOF = 1024


@dataclass(frozen=True)
class Case:
    """A server that lists its tool, and what must be observed of calls of it."""

    name: str
    status: str = "completed"
    #: A regular expression for the text of the result, or of the error.
    text: str = "done"
    calls: int = 1
    words: tuple = ()
    keys: dict = field(default_factory=dict)


#: A server that answers late or in part fails by its timeout, and nothing waits longer.
_TIMED_OUT = "did not answer within 1 s"
_CASES = [
    Case("garbage", calls=2),
    Case("duplicate-ids", calls=3),
    Case("unknown-ids", calls=3),
    Case("flood"),
    Case("progress"),
    Case("escapes"),
    Case("huge-result", text=r"x\n\[… \d+ bytes are left out …\]\nx"),
    Case("deep-result", "failed", _TIMED_OUT, keys=_SHORT),
    Case("nested-result"),
    Case("many-values", "failed", "more than 100000 values"),
    Case("bad-text", "failed", _TIMED_OUT, keys=_SHORT),
    Case("wrong-result", "failed", ".", keys=_SHORT),
    Case("silent", "failed", _TIMED_OUT, calls=2, keys=_SHORT),
    Case("exits", "failed", "."),
    Case("environment", text=r"found \[\]"),
    Case("processes", text=r"found \[\]"),
    Case("daemon"),
    Case("stderr"),
    Case("requests", text=r"granted \[\]", keys={"tool_timeout_sec": 20}),
    Case("changes", calls=2),
    # May end itself, and nothing else.
    Case("kills", "completed|failed", "."),
]
#: Servers without a connection: a regular expression for the error that clients get.
_UNCONNECTED = {
    "hangs": (r"did not connect within 3 s", {"startup_timeout_sec": 3}),
    "babbles": (r"did not connect within 2 s", {"startup_timeout_sec": 2}),
    "ends": (r"no licence", {}),
    "wrong-types": (r".", {}),
}


def server(kind, *words, **keys):
    return {"command": sys.executable, "args": [_PROGRAM, kind, *words], **APPROVED, **keys}


def calls(bench):
    _calls(bench, _LINE)


def calls_at_full_size(bench):
    _calls(bench, _LINE_OF_PROOF)


def _calls(bench, line):
    outside = bench.folder / "outside"
    outside.mkdir()
    config = bench.server_home / "config.toml"
    closed = [outside, bench.server_home, bench.client_home, bench.server_folder]
    open_folder = bench.workspace / "own"
    open_folder.mkdir()
    cases = [
        *_CASES,
        Case("long-line", words=(str(line),)),
        Case("writes", text=re.escape(json.dumps([str(open_folder)])), words=(*closed, open_folder)),
        Case("reads", text=re.escape("[]"), words=(config,)),
        Case("late", calls=2, keys=_SHORT),
    ]
    servers = {it.name: server(it.name, *it.words, **it.keys) for it in cases}
    servers |= {name: server(name, **keys) for name, (_, keys) in _UNCONNECTED.items()}
    servers[_GOOD] = server(_GOOD)
    model = configure(bench, servers, **_NO_TMP)
    before = config.read_text()
    keys = {name: _KEY + secrets.token_hex(8) for name in _SECRETS}
    client = McpClient(bench, **keys)

    # The first model call waits for no server: one that hangs is starting.
    turn = client.turn("hello")
    require_equal("how the first turn ended", turn.status, "completed")
    tools = model.tools()[0]
    require("wait_for_mcp_servers" in tools, f"the first model call waited; it has {tools}")

    client.wait_until_connected([_GOOD, *(it.name for it in cases)])
    for case in cases:
        _play(client, case)
        _, item = client.call_tool(_GOOD, "act")
        require_equal(f"the good server after {case.name}", (item["status"], text_of(item)), ("completed", "done"))
    _require_unconnected(client)
    asked = [json.loads(it) for it in client.lines]
    asked = [it["method"] for it in asked if "id" in it and "method" in it]
    require_equal("requests that reached the client", asked, [])
    _require_own_progress(client)
    for body in model.bodies():
        size = len(json.dumps(body))
        require(size < _BODY_BYTES_MAX, f"a model call has {size} bytes")
    peak = client.peak_memory_kib()
    require(peak < _MEMORY_KIB_MAX, f"the peak memory was {peak} KiB")
    client.leave()
    # The mock is the only process that still runs.
    require(wait_until(lambda: len(bench.processes()) == 1, 5), f"left behind: {bench.processes()}")
    log = len(client.stderr())
    require(log < _LOG_BYTES_MAX, f"the log has {log} bytes")
    require(not any(Path(it, "planted").exists() for it in closed), "a file was written outside the sandbox")
    require_equal("the configuration", config.read_text(), before)
    # The sandbox is not so narrow that the cases prove nothing.
    require((open_folder / "planted").exists(), "the server could not write the workspace")


def _play(client, case):
    for number in range(case.calls):
        _, item = client.call_tool(case.name, "act")
        # The first call of this server has no answer in time.
        if case.name == "late" and number == 0:
            require_equal("the status of a late answer", item["status"], "failed")
            continue
        what = f"{case.name}, call {number + 1}"
        require(re.fullmatch(case.status, item["status"]), f"{what}: the item is {json.dumps(item)[:1000]}")
        text = text_of(item)
        require(re.search(case.text, text), f"{what}: the text is {text[:1000]!r}")
        require("forged" not in json.dumps(item), f"{what}: a forged answer counted")
        require(len(json.dumps(item)) < _ITEM_BYTES_MAX, f"{what}: the item has {len(json.dumps(item))} bytes")


def _require_own_progress(client):
    """Clients get short progress of the call that reports it, and none of others."""
    messages = [json.loads(it) for it in client.lines]
    started = [it["params"]["item"] for it in messages if it.get("method") == "item/started"]
    own = {it["id"] for it in started if it.get("server") == "progress"}
    progress = [it["params"] for it in messages if it.get("method") == "item/mcpToolCall/progress"]
    require_equal("the calls with progress", {it["itemId"] for it in progress}, own)
    longest = max(len(it["message"].encode()) for it in progress)
    require(longest <= _PROGRESS_BYTES_MAX, f"a progress message has {longest} bytes")


def _require_unconnected(client):
    """A failed server alternates between failed and starting; each poll sees some of the errors."""
    errors = {}

    def complete():
        for name, state in client.states().items():
            if state["toolsError"]:
                errors.setdefault(name, state["toolsError"])
        return all(name in errors for name in _UNCONNECTED)

    require(wait_until(complete), f"no error of {[it for it in _UNCONNECTED if it not in errors]}")
    for name, (pattern, _) in _UNCONNECTED.items():
        require(re.search(pattern, errors[name]), f"the error of {name} is {errors[name]!r}")
        require("\x1b" not in errors[name], f"the error of {name} has a control character")


def lists(bench):
    """Names and descriptions that imitate others."""
    servers = {name: server(name) for name in ("names", "orders", "huge-definition", _GOOD)}
    # The names of these two tools are the same when they are joined.
    servers |= {"names__a": server(_GOOD), "wrong-revision": server("wrong-revision")}
    model = configure(bench, servers)
    client = McpClient(bench)
    states = client.wait_until_connected([it for it in servers if it != "wrong-revision"])
    turn = client.turn("hello")
    require_equal("how the turn ended", turn.status, "completed")
    body = model.bodies()[-1]

    whole = [it.get("name") for it in body["tools"]]
    require_equal("names that occur twice", sorted({it for it in whole if whole.count(it) > 1}), [])
    require(all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", it or "") for it in whole), f"the names are {whole}")
    foreign = offered(body)
    own = [it for it in body["tools"] if it.get("name") == "exec_command"]
    require_equal("how many tools run commands", len(own), 1)
    require("Acts." not in json.dumps(own), "a server replaced a built-in tool")
    for name in ("exec_command", "apply_patch", "search_tools", "call_mcp_tool"):
        require(f"mcp__names__{name}" in foreign, f"{name} of the server is not offered; there are {list(foreign)}")

    # An order reaches the model only as the description of the tool.
    tools = body.pop("tools")
    require("Ignore all earlier" not in json.dumps(body), "the order is outside of the tools")
    carriers = [it["name"] for it in tools if "Ignore all earlier" in json.dumps(it)]
    require(
        all(comparable(it).startswith("mcp__") for it in carriers),
        f"the order is in the description of {carriers}",
    )
    require(len(json.dumps(tools)) < _BODY_BYTES_MAX, "a huge definition reached the model")
    require_equal("the tools of a huge definition", list(states["huge-definition"]["tools"]), ["act"])

    # Each name leads to its own server.
    for name, tool in ((_GOOD, "act"), ("names", "exec_command"), ("names", "search_tools")):
        _, item = client.call_tool(name, tool)
        require_equal(f"the call of {tool}", (item["status"], text_of(item)), ("completed", "done"))
    require(not (bench.workspace / "obeyed").exists(), "the order was obeyed")
    client.leave()


def long_lists(bench):
    """A list of tools without an end, and one of 10,000: the model gets a search."""
    servers = {name: server(name) for name in ("pages", "thousands", _GOOD)}
    model = configure(bench, servers)
    client = McpClient(bench)
    states = client.wait_until_connected(servers)
    require(len(states["pages"]["tools"]) <= 1000, "the endless list was read for ever")
    require(len(states["thousands"]["tools"]) <= 1000, "more tools are listed than the limit")
    turn = client.turn("hello")
    require_equal("how the turn ended", turn.status, "completed")
    tools = model.bodies()[-1]["tools"]
    size = len(json.dumps(tools))
    require(size < 64 << 10, f"the tools of a model call have {size} bytes")
    require("search_tools" in [it.get("name") for it in tools], "the model cannot search")

    turn = client.turn('MOCK call name=search_tools arguments={"query": "thousands act77"}')
    require_equal("how the search ended", turn.status, "completed")
    found = json.loads(model.given()[-1])
    require_equal("the first tool found", found[0]["name"], "mcp__thousands__act77")
    wish = json.dumps({"name": "mcp__thousands__act77", "arguments": {}})
    turn = client.turn(f"MOCK call name=call_mcp_tool arguments={wish}")
    (item,) = (it for it in turn.items if it["type"] == "mcpToolCall")
    called = (item["server"], item["tool"], item["status"], text_of(item))
    require_equal("the call of a found tool", called, ("thousands", "act77", "completed", "done"))
    client.leave()


CHECKS = {
    "mcp-hostile": calls,
    "mcp-hostile-lists": lists,
    "mcp-long-lists": long_lists,
}
#: With a line of 1 GiB.
PROOFS = {
    "mcp-hostile-full": calls_at_full_size,
}
