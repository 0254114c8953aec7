"""Questions of an MCP server in the stock terminal client, also after the server was killed."""

import json
import sys
from pathlib import Path

from harness import require, require_equal, wait_until
from mock_model import calls, says
from recorder import NO_SERVER, SERVER
from tui_session import Session

_PROGRAM = Path(__file__).with_name("mcp_hostile_program.py")
_TOOL = "mcp__loom__act"
_METHOD = "mcpServer/elicitation/request"
_QUESTION, _FIELD = "Which colour?", "Type your answer"


def answered(bench):
    """The user fills in the form, and cancels it another time."""
    session = _session(bench)
    client = session.begin()
    client.enter("weave")
    _fill_in(client, "indigo")
    client.terminal.wait_for("• it is indigo")
    client.enter("weave again")
    client.terminal.answer(_QUESTION, "Escape")
    client.terminal.wait_for("• without a colour")
    answers = [call.result for call in client.record.calls(by=SERVER) if call.method == _METHOD]
    require_equal("how many questions were answered", len(answers), 2)
    require_equal("the first answer", (answers[0]["action"], answers[0]["content"]), ("accept", {"colour": "indigo"}))
    require(answers[1]["action"] in ("decline", "cancel"), f"the second answer is {answers[1]}")
    session.close(client)


def outlives_the_server(bench):
    """The server is killed while a question is open. The model repeats the lost call, and another client answers."""
    session = _session(bench)
    one = session.begin()
    one.enter("weave")
    one.terminal.wait_for(_FIELD)
    session.server.kill()
    one.terminal.wait_for("Reconnecting to server")
    session.restart()
    one.call("thread/resume")
    one.record.forget(NO_SERVER)
    two = session.start("resume", one.thread)
    _fill_in(two, "indigo")
    for client in (one, two):
        client.terminal.wait_for("• it is indigo")
        gone = wait_until(lambda client=client: _QUESTION not in client.terminal.screen())
        require(gone, "the question is still there")
    asked = [call for call in two.record.calls(by=SERVER) if call.method == _METHOD]
    answers = [call.result["content"] for call in asked if call.answers]
    require_equal("the answers of the second client", answers, [{"colour": "indigo"}])
    read = [it for it in session.model.given() if "so it was lost" in json.dumps(it)]
    require_equal("how often the model was told of the lost call", len(read), 1)
    session.close(one, two)


def _session(bench):
    keys = {
        "command": sys.executable,
        "args": [str(_PROGRAM), "asks"],
        "default_tools_approval_mode": "approve",
    }
    settings = {f"mcp_servers.loom.{key}": value for key, value in keys.items()}
    call = [calls(_TOOL, {})]
    answers = [
        ("weave", call),
        ("is still starting", [calls("wait_for_mcp_servers", {})]),
        ("loom: connected", call),
        ("asking the user a question", call),
        ("accept", says("it is indigo")),
        ("answered", says("without a colour")),
    ]
    return Session(bench, answers, **settings)


def _fill_in(client, text):
    client.terminal.wait_for(_QUESTION)
    client.terminal.wait_for(_FIELD)
    client.terminal.enter(text)


CHECKS = {
    "tui-elicitation": answered,
    "tui-elicitation-killed": outlives_the_server,
}
