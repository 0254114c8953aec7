"""A permission that a plugin asks for in the stock terminal client, also after the server was killed."""

import json

from harness import require, require_equal, run_client, wait_until
from mock_model import calls, says
from plugin_client import NO_TMP, QUESTION
from recorder import NO_SERVER, SERVER
from tui_session import Session

_PLUGIN, _TOOL = "local.hello", "plugin__local_hello__greet"
_QUESTION = "The plugin local.hello 0.1.0 asks for the permission workspace.read."

#: Told to the model when the server was killed. The model then repeats the call.
_LOST = "and the question is still open"

#: Shown below the response when a turn has ended.
_WORKED = "Worked for"


def answered(bench):
    """The user declines, and is asked again; then the user accepts, and is not asked again."""
    session = _session(bench)
    client = session.begin()
    client.enter("greet")
    client.terminal.wait_for(_QUESTION)
    client.terminal.press("Down")
    client.terminal.wait_for("› 2. Deny")
    client.terminal.answer(_QUESTION, "Enter")
    client.terminal.wait_for("• without it")
    # Until the client has read the end of a turn, it adds typed input to that turn.
    client.terminal.wait_until_shown(_WORKED, 2)
    client.enter("greet once more")
    client.terminal.answer(_QUESTION, "Enter")
    client.terminal.wait_for("• with it")
    client.terminal.wait_until_shown(_WORKED, 3)
    client.turn("greet again", "with it")
    require_equal("the answers", _actions(client), ["decline", "accept"])
    session.close(client)


def outlives_the_server(bench):
    """The server is killed while a question is open. The same question is open after the restart, and another client answers it."""
    session = _session(bench)
    one = session.begin()
    one.enter("greet")
    one.terminal.wait_for(_QUESTION)
    session.server.kill()
    one.terminal.wait_for("Reconnecting to server")
    session.restart()
    one.call("thread/resume")
    one.record.forget(NO_SERVER)
    two = session.start("resume", one.thread)
    two.terminal.answer(_QUESTION, "Enter")
    for client in (one, two):
        client.terminal.wait_for("• with it")
        gone = wait_until(lambda client=client: _QUESTION not in client.terminal.screen())
        require(gone, "the question is still there")
    require_equal("the answers of the second client", _actions(two), ["accept"])
    asked = {call.identity for client in (one, two) for call in _asked(client)}
    require_equal("the ids of the question", len(asked), 1)
    read = [it for it in session.model.given() if _LOST in json.dumps(it)]
    require_equal("how often the model was told of the lost call", len(read), 1)
    session.close(one, two)


def _session(bench):
    folder = bench.folder / "hello"
    session = Session(
        bench,
        [
            (_LOST, [calls(_TOOL, {"name": "Ada"})]),
            ('"approved":true', says("with it")),
            ('"approved":false', says("without it")),
            ("greet", [calls(_TOOL, {"name": "Ada"})]),
        ],
        sandbox_mode="workspace-write",
        **NO_TMP,
    )
    rule = f'[[rule]]\ntool = "{_TOOL}"\nverdict = "allow"\n'
    (bench.server_home / "rules.toml").write_text(rule)
    for words in (["new", folder, "--lang", "python"], ["add", folder]):
        code, _, err = run_client(bench, [bench.raddle, "plugin", *words], bench.environment())
        require_equal(f"the exit code of {words[0]} ({err})", code, 0)
    return session


def _asked(client):
    return [call for call in client.record.calls(by=SERVER) if call.method == QUESTION]


def _actions(client):
    return [call.result["action"] for call in _asked(client) if call.answers]


CHECKS = {
    "tui-plugin-approval": answered,
    "tui-plugin-approval-killed": outlives_the_server,
}
