"""MCP servers: the reference servers of npm as tools of the model, and the processes of many servers.

The same `config.toml` is given to the real Codex, and both must offer the same tools to the model.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from harness import require, require_equal, run_client, wait_until
from mcp_client import APPROVED, McpClient, comparable, configure, offered, sections, text_of
from model_script import PROVIDER, ModelScript

_VERSION = "2026.8.31"
#: With an unknown name, it behaves.
_PROGRAM = Path(__file__).with_name("mcp_hostile_program.py")
#: Servers, folders and threads of a folder. A pile would have a process for each thread.
_SERVERS, _THREADS = 10, 50
#: Turns of a median, and the delay that servers may cause.
_TURNS, _DELAY_S = 15, 0.05
#: Threads before the first measurement, which fill caches; those after it; and the growth that is allowed.
_ROUNDS, _ROUNDS_OF_PROOF = (100, 100, 16 << 10), (2000, 1000, 4 << 10)
_DESCRIPTORS_MORE = 8
#: Time until no process is left after the server was killed.
_END_S = 2
#: The keywords of schemas that Codex passes on. It leaves out the others.
_KEYWORDS = {
    *("type", "description", "properties", "required", "items", "enum", "anyOf", "oneOf", "allOf"),
    *("minItems", "maxItems", "additionalProperties", "$ref", "$defs"),
}


def _servers(bench):
    """Returns the reference servers: a path below npm's package, and keys."""

    def server(name, *words, **keys):
        path = f"@modelcontextprotocol/server-{name}/dist/index.js"
        program = bench.parts.package("mcp-servers", _VERSION, path)
        return {"command": bench.parts.node, "args": [program, *words], **APPROVED, **keys}

    return {
        "everything": server("everything"),
        "filesystem": server("filesystem", bench.workspace),
        "memory": server("memory", env={"MEMORY_FILE_PATH": bench.workspace / "memory.jsonl"}),
        "sequential-thinking": server("sequential-thinking"),
    }


def reference_servers(bench):
    """Calls tools of each server, and reads the states of all."""
    servers = _servers(bench)
    model = configure(bench, servers)
    client = McpClient(bench)
    states = client.wait_until_connected(servers)
    require_equal("the servers", sorted(states), sorted(servers))
    for name, state in states.items():
        require_equal(f"the error of {name}", state["toolsError"], None)
        require(state["serverInfo"]["version"], f"{name} has no version")
        for tool, definition in state["tools"].items():
            require_equal("the name of a definition", definition["name"], tool)
            require("inputSchema" in definition, f"{tool} has no schema")
    require(states["everything"]["resources"], "the resources are missing")

    woven = bench.workspace / "woven.txt"
    entity = {"name": "loom", "entityType": "machine", "observations": ["it weaves"]}
    thought = {"thought": "warp", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    for server, tool, arguments, status, text in [
        ("everything", "echo", {"message": "warp"}, "completed", "Echo: warp"),
        ("everything", "get-sum", {"a": 2, "b": 3}, "completed", "The sum of 2 and 3 is 5."),
        ("everything", "get-sum", {"a": "x"}, "failed", "validation"),
        ("filesystem", "write_file", {"path": str(woven), "content": "cloth"}, "completed", "wrote"),
        ("filesystem", "read_text_file", {"path": str(woven)}, "completed", "cloth"),
        ("filesystem", "read_text_file", {"path": "/etc/passwd"}, "failed", "denied"),
        ("memory", "create_entities", {"entities": [entity]}, "completed", "loom"),
        ("memory", "read_graph", {}, "completed", "it weaves"),
        ("sequential-thinking", "sequentialthinking", thought, "completed", "thoughtHistoryLength"),
    ]:
        _, item = client.call_tool(server, tool, arguments)
        what = f"{server}.{tool}"
        require_equal(f"the status of {what}", item["status"], status)
        require(text in text_of(item), f"the result of {what} is {text_of(item)!r}")
        require(isinstance(item["durationMs"], int), f"{what} has no duration")
        require(text in json.dumps(model.given()[-1]), f"the model did not get the result of {what}")
    require_equal("the file that a server wrote", woven.read_text(), "cloth")

    _, item = client.call_tool("everything", "get-tiny-image")
    kinds = [it["type"] for it in item["result"]["content"]]
    require("image" in kinds, f"the result has {kinds}")
    require("data:image/png;base64," in json.dumps(model.bodies()[-1]), "the model did not get the image")

    _, item = client.call_tool("everything", "get-structured-content", {"location": "Chicago"})
    require("temperature" in item["result"]["structuredContent"], f"the result is {item['result']}")

    turn = client.turn("MOCK call name=mcp__filesystem__nothing arguments={}")
    require_equal("the turn with an unknown tool", turn.status, "completed")
    require("mcp__filesystem__nothing" in json.dumps(model.given()[-1]), "the model was not told")
    client.leave()


def same_tools(bench):
    """One `config.toml` for Codex and the program under test: the same names, descriptions and schemas."""
    script = ModelScript(bench)
    lines = [f"{key} = {value}\n" for key, value in script.settings.items()]
    # Codex requires a name. A required server is connected before its first model call.
    lines.append(f'model_providers.{PROVIDER}.name = "script"\n')
    servers = {name: {**keys, "required": True} for name, keys in _servers(bench).items()}
    text = "".join(lines) + sections(servers)
    for home in (bench.client_home, bench.server_home):
        (home / "config.toml").write_text(text)

    command = [bench.parts.codex, "exec", "--skip-git-repo-check", "hello"]
    code, _, _ = run_client(bench, command, bench.environment())
    require_equal("the exit code of Codex", code, 0)
    theirs = offered(script.bodies()[-1])

    client = McpClient(bench)
    states = client.wait_until_connected(servers)
    client.turn("hello")
    ours = offered(script.bodies()[-1])
    client.leave()

    listed = {comparable(f"mcp__{name}__{tool}") for name, it in states.items() for tool in it["tools"]}
    require_equal("the tools that are offered, and listed", sorted(ours), sorted(listed))
    require(len(theirs) > 30, f"Codex offers {list(theirs)}")
    require_equal("the tools that only Codex offers", set(theirs) - set(ours), set())
    require_equal("the tools that only the program offers", set(ours) - set(theirs), set())
    for name in ours:
        tool = theirs[name]
        require_equal(f"the description of {name}", ours[name]["description"], tool["description"])
        require_equal(f"the schema of {name}", _reduced(ours[name]["parameters"]), tool["parameters"])


def _reduced(schema):
    """Returns a schema as Codex passes it on."""
    if not isinstance(schema, dict):
        return schema
    reduced = {}
    for key, value in schema.items():
        if key not in _KEYWORDS:
            continue
        if key in ("properties", "$defs"):
            reduced[key] = {name: _reduced(it) for name, it in value.items()}
        elif isinstance(value, list):
            reduced[key] = [_reduced(it) for it in value]
        else:
            reduced[key] = _reduced(value)
    if reduced.get("type") == "object" and "additionalProperties" not in reduced:
        reduced.setdefault("properties", {})
    return reduced


def no_piles(bench):
    """Threads of a folder share the servers; each dies with the program."""
    bench.has_limit = True
    names = [f"s{number}" for number in range(_SERVERS)]
    servers = {it: {"command": sys.executable, "args": [_PROGRAM, it], **APPROVED} for it in names}
    configure(bench, servers)
    folders = [bench.workspace / "one", bench.workspace / "two"]
    for folder in folders:
        folder.mkdir()
    client = McpClient(bench, cwd=folders[0])
    for number, folder in enumerate(folders, start=1):
        start = {"cwd": str(folder)}
        threads = [client.call("thread/start", start)["thread"]["id"] for _ in range(_THREADS)]
        client.wait_until_connected(names, threads[0])
        for client.thread in threads:
            _, item = client.call_tool(names[0], "act")
            require_equal("the call", (item["status"], text_of(item)), ("completed", "done"))
        running, expected = _running(bench), sorted(names * number)
        require_equal(f"the servers of {_THREADS} threads in {number} folders", running, expected)
    client.kill()
    require(
        wait_until(lambda: not _running(bench), _END_S),
        f"{_END_S} s after the end of the server there are {_running(bench)}",
    )


def no_waiting(bench):
    """Servers that do not connect delay no model call: the first turn of a thread takes as long as without servers."""
    bench.has_limit = True
    good = {f"s{it}": {"command": sys.executable, "args": [_PROGRAM, f"s{it}"]} for it in range(15)}
    hanging = {f"h{it}": {"command": sys.executable, "args": [_PROGRAM, "hangs"]} for it in range(3)}
    dead = {f"d{it}": {"command": sys.executable, "args": [_PROGRAM, "ends"]} for it in range(2)}
    times = []
    for servers in ({}, good | hanging | dead):
        model = configure(bench, servers)
        client = McpClient(bench)
        if servers:
            client.wait_until_connected(good)
        times.append(statistics.median(_first_turn_s(client, bench) for _ in range(_TURNS)))
        require("wait_for_mcp_servers" in model.tools()[-1] or not servers, "no server is starting")
        client.leave()
    without, beside = times
    require(
        beside - without < _DELAY_S,
        f"a first turn took {beside:.3f} s beside servers, and {without:.3f} s without",
    )


def _first_turn_s(client, bench):
    client.thread = client.call("thread/start", {"cwd": str(bench.workspace)})["thread"]["id"]
    begun = time.monotonic()
    turn = client.turn("hello")
    require_equal("how the turn ended", turn.status, "completed")
    return time.monotonic() - begun


def rounds(bench):
    _rounds(bench, *_ROUNDS)


def rounds_at_full_size(bench):
    _rounds(bench, *_ROUNDS_OF_PROOF)


def _rounds(bench, before, count, memory_kib_more):
    """Threads that start, use a server and are archived leave nothing behind."""
    names = ["s0", "s1"]
    servers = {it: {"command": sys.executable, "args": [_PROGRAM, it], **APPROVED} for it in names}
    configure(bench, servers)
    client = McpClient(bench)
    client.wait_until_connected(names)
    sizes = []
    for number in range(before + count):
        if number == before:
            sizes.append((client.descriptors(), client.memory_kib()))
        started = client.call("thread/start", {"cwd": str(bench.workspace)})
        client.thread = started["thread"]["id"]
        _, item = client.call_tool(names[number % 2], "act")
        require_equal("the call", item["status"], "completed")
        client.call("thread/archive", {"threadId": client.thread})
    require_equal("the servers", _running(bench), names)
    sizes.append((client.descriptors(), client.memory_kib()))
    (descriptors, memory), (descriptors_after, memory_after) = sizes
    require(
        descriptors_after <= descriptors + _DESCRIPTORS_MORE,
        f"{descriptors} descriptors became {descriptors_after} in {count} rounds",
    )
    require(
        memory_after <= memory + memory_kib_more,
        f"{memory} KiB became {memory_after} KiB in {count} rounds",
    )
    print(
        f"figure: in {count} threads after {before} others, {descriptors} descriptors became {descriptors_after}, "
        f"and {memory // 1024} MiB became {memory_after // 1024} MiB"
    )
    client.leave()


def _running(bench):
    """Returns the name of each running server: its program is the first argument of the interpreter."""
    found = []
    for pid, _ in bench.processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            # It has ended.
            continue
        if len(words) > 2 and words[1] == bytes(_PROGRAM):
            found.append(words[2].decode())
    return sorted(found)


CHECKS = {
    "mcp-servers": reference_servers,
    "mcp-same-tools": same_tools,
    "mcp-processes": no_piles,
    "mcp-no-waiting": no_waiting,
    "mcp-rounds": rounds,
}
#: With 1,000 threads.
PROOFS = {
    "mcp-rounds-full": rounds_at_full_size,
}
