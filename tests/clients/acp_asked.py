"""Permission requests of the stock ACP adapter: to acpx, and to a client that chooses."""

import json
import sys
from pathlib import Path

from acp import recorded, run_acpx
from calls import require_in_order
from harness import require, require_equal, require_no_panic, run_client
from mock_model import MockModel, beyond, says
from recorder import SERVER
from turns import Told

_PROGRAM = Path(__file__).with_name("acp_asked_program.py")
_COMMAND = "item/commandExecution/requestApproval"
#: The command that the model runs for a prompt. It writes outside the workspace.
_LINES = {
    "weave": "echo woven | tee -a ../cloth.txt",
    "dye": "echo dyed | tee -a ../cloth.txt",
    "spin": "echo spun | tee -a ../cloth.txt",
}
#: The options that must be offered.
_OPTIONS = ["allow_once", "allow_for_session", "decline", "cancel"]
#: Exit code of acpx if a permission was denied.
_DENIED = 5


def approve_all(bench):
    """acpx allows every request."""
    ends = ["completed", "it is woven"]
    _acpx(bench, "--approve-all", exit_code=0, decision="accept", ends=ends)


def deny_all(bench):
    """acpx denies every request, and the model reads the denial."""
    ends = ["failed", "as you like"]
    _acpx(bench, "--deny-all", exit_code=_DENIED, decision="decline", ends=ends)


def _acpx(bench, option, exit_code, decision, ends):
    model = _model(bench)
    stand_in = recorded(bench)
    code, out, _ = run_acpx(bench, stand_in, "json", option, "exec", "weave")
    require_equal("the client's exit code", code, exit_code)
    require_equal("the responses to the server", _answers(stand_in.record()), [decision])
    messages = [json.loads(line) for line in out.splitlines()]
    updates = [it["params"]["update"] for it in messages if it.get("method") == "session/update"]
    require_equal("how it ended", _ended(updates), ends)
    (asked,) = (it for it in messages if it.get("method") == "session/request_permission")
    _require_asked(asked["params"], "weave")
    accepted = decision == "accept"
    written, given = (["woven"], ["\nwoven\n"]) if accepted else ([], ["declined"])
    _require_agreed(bench, model, stand_in, written, given)


def choose(bench):
    """A client that always allows a command gets no further request; a client that cancels ends its turn."""
    turns = [
        ("weave", ["allow_for_session"]),
        ("weave", []),
        ("dye", ["decline"]),
        ("spin", ["cancel"]),
    ]
    model = _model(bench)
    stand_in = recorded(bench)
    command = [
        *(sys.executable, "-B", _PROGRAM, bench.parts.codex_acp, bench.workspace),
        json.dumps(turns),
    ]
    environment = bench.environment(CODEX_PATH=str(stand_in.program), NO_BROWSER="1")
    code, out, _ = run_client(bench, command, environment)
    require_equal("the program's exit code", code, 0)
    seen = json.loads(out)
    require_equal("the adapter's exit code", seen["exit"], 0)
    for (said, options), turn in zip(turns, seen["turns"], strict=True):
        require_equal(f"how often it asked at {said}", len(turn["asked"]), len(options))
        for asked in turn["asked"]:
            _require_asked(asked, said)
    reasons = [turn["stopReason"] for turn in seen["turns"]]
    require_equal("why the turns ended", reasons, ["end_turn"] * 3 + ["cancelled"])
    ends = [_ended(turn["updates"]) for turn in seen["turns"]]
    woven = ["completed", "it is woven"]
    expected = [woven, woven, ["failed", "as you like"], ["failed", ""]]
    require_equal("how they ended", ends, expected)
    given = ["acceptForSession", "decline", "cancel"]
    require_equal("the responses to the server", _answers(stand_in.record()), given)
    told = Told(stand_in.record(), seen["session"]).items("commandExecution")
    statuses = [item["status"] for item in told]
    require_equal("the commands", statuses, ["completed", "completed", "declined", "declined"])
    given = ["\nwoven\n", "\nwoven\n", "declined"]
    _require_agreed(bench, model, stand_in, ["woven", "woven"], given)


def _model(bench):
    """The adapter requests a title in another thread, with the user's input."""
    model = MockModel(bench, [
        ("very short title", says(json.dumps({"title": "Weave"}))),
        *((said, [beyond(line)]) for said, line in _LINES.items()),
        ("woven", says("it is woven")),
        ("declined", says("as you like")),
    ])
    model.configure(bench)
    return model


def _require_asked(params, said):
    """Checks that the request is about the command and has every option."""
    call = params["toolCall"]
    require_equal("the act of the request", [call["kind"], call["title"]], ["execute", _LINES[said]])
    require_in_order([option["optionId"] for option in params["options"]], _OPTIONS)


def _answers(record):
    """Returns the responses to the server's approval requests for commands."""
    asked = record.calls(by=SERVER)
    require_equal("the server's requests", {call.method for call in asked}, {_COMMAND})
    return [call.result["decision"] for call in asked]


def _ended(updates):
    """Returns the last status of the tool, and the message."""
    ends = [it for it in updates if it["sessionUpdate"] == "tool_call_update" and "status" in it]
    chunks = [it for it in updates if it["sessionUpdate"] == "agent_message_chunk"]
    return [ends[-1]["status"], "".join(it["content"]["text"] for it in chunks)]


def _require_agreed(bench, model, stand_in, written, given):
    """Checks that the disk has the allowed changes, and that the model read the results of its calls."""
    file = bench.folder / "cloth.txt"
    require_equal("the file", file.read_text().split() if file.exists() else [], written)
    told = model.given()
    for text, expected in zip(told, given, strict=True):
        require(expected in text, f"the model read {text!r}, not {expected!r}")
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())


CHECKS = {
    "acp-approve-all": approve_all,
    "acp-deny-all": deny_all,
    "acp-choose": choose,
}
