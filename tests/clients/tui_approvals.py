"""Approval requests in the stock terminal client, and each of the answers."""

import tomllib

from harness import require, require_equal, wait_until
from mock_model import beyond, calls, patches, says
from recorder import NO_SERVER, SERVER
from tui_session import Session

_COMMAND_ASKED = "Would you like to run the following command?"
_COMMAND = "item/commandExecution/requestApproval"
_LINE = "echo woven | tee -a ../cloth.txt"
_ADD = """*** Begin Patch
*** Add File: yarn.txt
+flax
+wool
*** End Patch
"""
_CHANGE = """*** Begin Patch
*** Update File: yarn.txt
@@
 flax
-wool
+silk
*** End Patch
"""
_CHANGE_AGAIN = """*** Begin Patch
*** Update File: yarn.txt
@@
-flax
+hemp
 silk
*** End Patch
"""
_BEGIN = [
    *("answer to turn/start", "thread/status/changed active", "turn/started inProgress"),
    *("item/started userMessage", "item/completed userMessage"),
]
_GOES_ON = ["serverRequest/resolved", "thread/status/changed active"]
_ASKED = [
    *("thread/status/changed waitingOnApproval", "item/started commandExecution"),
    *(_COMMAND, "thread/tokenUsage/updated", *_GOES_ON),
]
_PATCH_ASKED = "Would you like to make the following edits?"
_PATCH = "item/fileChange/requestApproval"
_PATCH_TOLD = [
    *("item/started fileChange", "thread/status/changed waitingOnApproval"),
    *(_PATCH, "thread/tokenUsage/updated"),
]
_AGENT = ["item/started agentMessage", "item/agentMessage/delta", "item/completed agentMessage"]
_RAN = ["item/commandExecution/outputDelta", "item/completed commandExecution"]
_END = ["thread/tokenUsage/updated", "thread/status/changed idle", "turn/completed completed"]


def accept_command(bench):
    """Approved once, and the next time the client asks again; approved for the session, and it asks no more."""
    session = _session(bench)
    client = session.begin()
    answers = [(3, "y", "this time"), (4, "a", "every time this session")]
    for turns, key, words in answers:
        _ask(client, bench, "weave")
        client.terminal.press(key)
        client.terminal.wait_for(f"✔ You approved codex to run {_LINE} {words}")
        client.wait_for_told("turn/completed", count=turns)
        client.told().require_end([*_BEGIN, *_ASKED, *_RAN, *_AGENT, *_END])
    client.enter("weave")
    client.wait_for_told("turn/completed", count=5)
    ran = ["item/started commandExecution", "thread/tokenUsage/updated", *_RAN]
    client.told().require_end([*_BEGIN, *ran, *_AGENT, *_END])
    require_equal("the answers", _answers(client), ["accept", "acceptForSession"])
    require_equal("the file", (bench.folder / "cloth.txt").read_text(), "woven\n" * 3)
    for given in session.model.given():
        require(given.endswith("Output:\nwoven\n"), f"the model read {given!r}")
    client.terminal.wait_until_shown(f"• Ran {_LINE}", times=3)
    client.terminal.wait_until_shown("  └ woven", times=3)
    session.close(client)


def refuse_command(bench):
    """Declined, and the model continues; declined and cancelled, and the turn ends."""
    session = _session(bench)
    client = session.begin()
    _ask(client, bench, "weave")
    client.terminal.press("d")
    client.terminal.wait_for(f"✗ You did not approve codex to run {_LINE}")
    client.wait_for_told("turn/completed", count=3)
    refused = [*_BEGIN, *_ASKED, "item/completed commandExecution"]
    client.told().require_end([*refused, *_AGENT, *_END])
    client.terminal.wait_for("• as you like")
    (given,) = session.model.given()
    require("declined" in given, f"the model read {given!r}")

    _ask(client, bench, "weave")
    client.terminal.press("Escape")
    client.terminal.wait_for(f"✗ You canceled the request to run {_LINE}")
    client.wait_for_told("turn/completed", count=4)
    ended = ["thread/status/changed idle", "turn/completed interrupted"]
    client.told().require_end([*refused, *ended])
    client.terminal.wait_for("■ Conversation interrupted")
    require_equal("the answers", _answers(client), ["decline", "cancel"])
    statuses = [item["status"] for item in client.told().items("commandExecution")]
    require_equal("the commands", statuses, ["declined", "declined"])
    client.turn("what is wool?", "from sheep")
    require(not (bench.folder / "cloth.txt").exists(), "a rejected command ran")
    session.close(client)


def accept_by_rule(bench):
    """Approved by prefix: the server adds a rule to the user's rules."""
    loom = bench.server_folder / "loom"
    loom.write_text("#!/bin/sh\necho woven $*\n")
    loom.chmod(0o755)
    rules = bench.server_home / "rules.toml"
    own = '# Mine.\n[[rule]]\ncommand = ["shred"]\nverdict = "deny" # never\n'
    rules.write_text(own)
    weave = "./loom twill"
    session = Session(
        bench,
        [
            ("weave", [calls("exec_command", {"cmd": weave})]),
            ("make it", [calls("exec_command", {"cmd": f"{weave} --wide"})]),
            ("woven twill --wide", says("it is broad")),
            ("woven twill", says("it is woven")),
        ],
        approval_policy="untrusted",
    )
    client = session.begin()
    client.enter("weave")
    client.terminal.wait_for(_COMMAND_ASKED)
    client.terminal.wait_for(f"don't ask again for commands that start with `{weave}` (p)")
    client.terminal.press("p")
    client.wait_for_told("turn/completed", count=3)
    client.turn("make it wide", "it is broad")
    client.require_shown(
        f"✔ You approved codex to always run commands that start with {weave}",
        *(f"• Ran {weave}", "└ woven twill", f"• Ran {weave} --wide", "└ woven twill --wide"),
    )
    rule = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["./loom", "twill"]}}
    require_equal("the answers", _answers(client), [rule])
    kept = rules.read_text()
    require(kept.startswith(own), f"the user's text has changed: {kept!r}")
    expected = {"command": ["./loom", "twill"], "verdict": "allow"}
    require_equal("the rules that were added", tomllib.loads(kept)["rule"][1:], [expected])
    session.close(client)


def two_clients(bench):
    """Both clients ask; one answers, and the other's question disappears."""
    session = _session(bench)
    one = session.begin()
    _ask(one, bench, "weave")
    two = session.start("resume", one.thread)
    two.terminal.wait_for(f"$ {_LINE}")
    two.terminal.answer(_COMMAND_ASKED, "y")
    for client in (one, two):
        client.require_shown("› weave", f"• Ran {_LINE}", "└ woven", "• it is woven")
        require(_COMMAND_ASKED not in client.terminal.screen(), "the question is still there")
    require_equal("the file", (bench.folder / "cloth.txt").read_text(), "woven\n")
    require_equal("the second's answers", _answers(two), ["accept"])
    session.close(one, two)


def outlives_the_server(bench):
    """The server is killed while it waits for an answer, and asks again after its restart."""
    session = _session(bench)
    client = session.begin()
    _ask(client, bench, "weave")
    session.server.kill()
    client.terminal.wait_for("Reconnecting to server")
    session.restart()
    client.call("thread/resume")
    client.record.forget(NO_SERVER)
    asked = wait_until(lambda: len(client.record.calls(by=SERVER)) == 2)
    require(asked, "the server did not send the request again")
    client.terminal.wait_for(f"$ {_LINE}")
    client.terminal.answer(_COMMAND_ASKED, "y")
    client.terminal.wait_for("• it is woven")
    before, after = client.record.calls(by=SERVER)
    require_equal("the repeated request", after.params, before.params)
    require_equal("the answers", [before.answers, after.result], [[], {"decision": "accept"}])
    require_equal("the file", (bench.folder / "cloth.txt").read_text(), "woven\n")
    client.require_shown("› weave", f"• Ran {_LINE}", "└ woven", "• it is woven")
    session.close(client)


def accept_patch(bench):
    """The client shows a change of files before it asks. The user approves it once, and then for this file and the
    session.
    """
    session = _session(bench)
    client = session.begin()
    file = bench.server_folder / "yarn.txt"
    added = ["• Added yarn.txt (+2 -0)", "1 +flax", "2 +wool"]
    edited = ["• Edited yarn.txt (+1 -1)", "2 -wool", "2 +silk"]
    for turns, said, shown, key, content, done in [
        (3, "spin", added, "y", "flax\nwool\n", "spun"),
        (4, "dye", edited, "a", "flax\nsilk\n", "dyed"),
    ]:
        before = file.exists() and file.read_text()
        client.enter(said)
        client.terminal.wait_for(_PATCH_ASKED)
        client.require_shown(*shown)
        require_equal("the file", file.exists() and file.read_text(), before)
        client.terminal.press(key)
        client.wait_for_told("turn/completed", count=turns)
        require_equal("the file", file.read_text(), content)
        client.told().require_end([
            *(*_BEGIN, *_PATCH_TOLD, *_GOES_ON, "item/completed fileChange"),
            *("turn/diff/updated", *_AGENT, *_END),
        ])
        client.require_shown(*shown, f"• it is {done}")
    client.enter("bleach")
    client.wait_for_told("turn/completed", count=5)
    require_equal("the file", file.read_text(), "hemp\nsilk\n")
    require_equal("the answers", _answers(client), ["accept", "acceptForSession"])
    # The model sends the patch itself, and reads the result in the same form.
    asked = session.model.bodies()[-1]
    (offered,) = [tool for tool in asked["tools"] if tool["name"] == "apply_patch"]
    require_equal("the tool", [offered["type"], offered["format"]["syntax"]], ["custom", "lark"])
    said = [it["type"] for it in asked["input"] if it["type"] != "message"]
    require_equal("the calls", said, ["custom_tool_call", "custom_tool_call_output"] * 3)
    for given in session.model.given():
        require("yarn.txt" in given, f"the model read {given!r}")
    session.close(client)


def refuse_patch(bench):
    """Declined: nothing is written, and the turn ends."""
    session = _session(bench)
    client = session.begin()
    client.enter("spin")
    client.terminal.wait_for(_PATCH_ASKED)
    client.terminal.press("Escape")
    client.wait_for_told("turn/completed", count=3)
    ended = ["thread/status/changed idle", "turn/completed interrupted"]
    refused = [*_BEGIN, *_PATCH_TOLD, *_GOES_ON, "item/completed fileChange", *ended]
    client.told().require_end(refused)
    client.terminal.wait_for("■ Conversation interrupted")
    (item,) = client.told().items("fileChange")
    require_equal("the change", item["status"], "declined")
    require_equal("the answers", _answers(client), ["cancel"])
    client.turn("what is wool?", "from sheep")
    require_equal("what was written", list(bench.server_folder.iterdir()), [])
    session.close(client)


def _session(bench):
    return Session(bench, [
        ("weave", [beyond(_LINE)]),
        ("spin", [patches(_ADD)]),
        ("dye", [patches(_CHANGE)]),
        ("bleach", [patches(_CHANGE_AGAIN)]),
        ("A /", says("it is spun")),
        ("M /", says("it is dyed")),
        ("woven", says("it is woven")),
        ("declined", says("as you like")),
        ("wool", says("from sheep")),
    ])


def _ask(client, bench, said):
    """Sends a prompt and waits for the question. Checks that nothing has run yet."""
    file = bench.folder / "cloth.txt"
    before = file.exists() and file.read_text()
    client.enter(said)
    client.terminal.wait_for(_COMMAND_ASKED)
    client.terminal.wait_for("Reason: It goes beyond the sandbox.")
    client.terminal.wait_for(f"$ {_LINE}")
    require_equal("the file", file.exists() and file.read_text(), before)


def _answers(client):
    """Returns the client's responses to the server's requests."""
    return [call.result["decision"] for call in client.record.calls(by=SERVER)]


CHECKS = {
    "tui-accept-command": accept_command,
    "tui-refuse-command": refuse_command,
    "tui-accept-by-rule": accept_by_rule,
    "tui-asks-two": two_clients,
    "tui-asks-again": outlives_the_server,
    "tui-accept-patch": accept_patch,
    "tui-refuse-patch": refuse_patch,
}
