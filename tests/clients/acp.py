"""The stock ACP adapter: acpx drives codex-acp, which drives our program."""

import json
import shlex

from harness import require, require_equal, require_no_panic, run_client
from stand_in import StandIn
from start_up import require_start_up

#: Without a result to each of these the adapter gives up.
NEEDED = ["initialize", "config/read", "account/read", "permissionProfile/list", "config/read"]


def transcript(bench):
    """As a program reads it: one JSON message of ACP per line."""
    stand_in, code, out = _drives(bench, "json")
    require_equal("the client's exit code", code, 1)
    messages = [json.loads(line) for line in out.splitlines()]
    answers = _answers(messages)
    require("initialize" in answers and "session/new" in answers, f"answered were {list(answers)}")
    agent = answers["initialize"]["result"]["agentInfo"]
    require_equal(
        "the agent",
        [agent["name"], agent["version"]],
        ["@agentclientprotocol/codex-acp", "2.6.0"],
    )
    error = answers["session/new"].get("error", {})
    require_equal(
        "why there is no session",
        error.get("data"),
        {"details": "method not found: thread/start"},
    )
    _sent(bench, stand_in)


def text(bench):
    """As a person reads it."""
    stand_in, code, out = _drives(bench, "text")
    require_equal("the client's exit code", code, 1)
    lines = [line for line in out.splitlines() if line]
    require_equal("the last line", lines[-1:], ["[error] RUNTIME: method not found: thread/start"])
    require("[client] session/new (running)" in lines, "no session was asked for")
    _sent(bench, stand_in)


def _drives(bench, output):
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    command = [
        *(bench.parts.acpx, "--cwd", bench.workspace, "--format", output),
        *("--agent", shlex.quote(str(bench.parts.codex_acp)), "exec", "say hello"),
    ]
    environment = bench.environment(CODEX_PATH=str(stand_in.program), NO_BROWSER="1")
    code, out, _ = run_client(bench, command, environment)
    return stand_in, code, out


def _answers(messages):
    """By the method they answer."""
    methods = {it["id"]: it["method"] for it in messages if "method" in it and "id" in it}
    answers = [it for it in messages if "method" not in it]
    return {methods[it["id"]]: it for it in answers if it.get("id") in methods}


def _sent(bench, stand_in):
    require_equal("the arguments", stand_in.starts(), [["app-server"]])
    before = require_start_up(stand_in.record(), NEEDED)
    require_equal("the home", before[0].result["codexHome"], str(bench.server_home))
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())


CHECKS = {
    "acp-json": transcript,
    "acp-text": text,
}
