"""Server requests to the stock Python SDK's low-level client, and the effects of its responses."""

import json
import tomllib
from pathlib import Path

from calls import require_answered
from harness import require, require_equal, require_no_panic, run_client
from mock_model import MockModel, beyond, calls, patches, says
from stand_in import StandIn
from turns import Told

_PROGRAM = Path(__file__).with_name("python_sdk_asked_program.py")
_COMMAND = "item/commandExecution/requestApproval"
_PATCH = "item/fileChange/requestApproval"
_QUESTION = "item/tool/requestUserInput"
_RIGHTS = "item/permissions/requestApproval"

_ACCEPT, _SESSION = {"decision": "accept"}, {"decision": "acceptForSession"}
_DECLINE, _CANCEL = {"decision": "decline"}, {"decision": "cancel"}

_BEGIN = [
    *("answer to turn/start", "thread/status/changed active", "turn/started inProgress"),
    *("item/started userMessage", "item/completed userMessage"),
]
_USAGE, _IDLE = "thread/tokenUsage/updated", "thread/status/changed idle"
_GOES_ON = ["serverRequest/resolved", "thread/status/changed active"]
_ANSWERED = [
    *("item/started agentMessage", "item/agentMessage/delta", "item/completed agentMessage"),
    *(_USAGE, _IDLE, "turn/completed completed"),
]
_CANCELLED = [_IDLE, "turn/completed interrupted"]


def commands(bench):
    """Commands outside the sandbox: each decision, and its effect on the session."""
    turns = [
        ("weave", [_ACCEPT]),
        ("weave", [_SESSION]),
        ("weave", []),
        ("dye", [_DECLINE]),
        ("spin", [_CANCEL]),
    ]
    lines = {
        "weave": "echo woven | tee -a ../cloth.txt",
        "dye": "echo dyed | tee -a ../cloth.txt",
        "spin": "echo spun | tee -a ../cloth.txt",
    }
    model = MockModel(bench, [
        *((said, [beyond(line)]) for said, line in lines.items()),
        ("woven", says("it is woven")),
        ("declined", says("as you like")),
    ])
    record, seen = _drive(bench, model, {}, turns)
    _require_asked(turns, seen, _COMMAND)
    for (said, _), turn in zip(turns, seen["turns"], strict=True):
        item = turn["items"][1]
        shown = f"/bin/bash -c '{lines[said]}'"
        require_equal("the command", [item["type"], item["command"]], ["commandExecution", shown])
        for _, params in turn["asked"]:
            members = ("itemId", "command", "cwd", "reason", "commandActions")
            asked = [params[key] for key in members]
            actions = [{"type": "unknown", "command": lines[said]}]
            reason = "It goes beyond the sandbox. The agent says: May I?"
            expected = [item["id"], shown, str(bench.workspace), reason, actions]
            require_equal("the requests", asked, expected)
            # A rule would not permit leaving the sandbox, so none is offered.
            offered = ["accept", "acceptForSession", "decline", "cancel"]
            require_equal("the available decisions", params["availableDecisions"], offered)
    woven = ["completed", 0, "woven\n", "completed"]
    refused = ["declined", None, None, "completed"]
    ends = [_end(turn, "exitCode", "aggregatedOutput") for turn in seen["turns"]]
    cancelled = [*refused[:3], "interrupted"]
    require_equal("the commands", ends, [woven, woven, woven, refused, cancelled])
    begun = "item/started commandExecution"
    asked = [*_BEGIN, "thread/status/changed waitingOnApproval", begun, _COMMAND, _USAGE, *_GOES_ON]
    ended = "item/completed commandExecution"
    ran = ["item/commandExecution/outputDelta", ended, *_ANSWERED]
    _require_order(record, seen, [
        *((*asked, *ran) * 2),
        *(*_BEGIN, begun, _USAGE, *ran),
        *(*asked, ended, *_ANSWERED),
        *(*asked, ended, *_CANCELLED),
    ])
    require_equal("the file", (bench.folder / "cloth.txt").read_text(), "woven\n" * 3)
    _require_given(model, ["\nwoven\n"] * 3 + ["declined"])


def rule(bench):
    """An approval by prefix: later commands with the prefix need no approval, others do."""
    loom = bench.workspace / "loom"
    loom.write_text("#!/bin/sh\necho woven $*\n")
    loom.chmod(0o755)
    words = {"execpolicy_amendment": ["./loom", "twill"]}
    by_rule = {"decision": {"acceptWithExecpolicyAmendment": words}}
    turns = [("twill", [by_rule]), ("broad", []), ("satin", [_DECLINE])]
    model = MockModel(bench, [
        ("woven", says("it is woven")),
        ("declined", says("as you like")),
        ("twill", [calls("exec_command", {"cmd": "./loom twill"})]),
        ("broad", [calls("exec_command", {"cmd": "./loom twill --broad"})]),
        ("satin", [calls("exec_command", {"cmd": "./loom satin"})]),
    ])
    _, seen = _drive(bench, model, {"approvalPolicy": "untrusted"}, turns)
    _require_asked(turns, seen, _COMMAND)
    ((_, params),) = seen["turns"][0]["asked"]
    require_equal("the rule", params["proposedExecpolicyAmendment"], ["./loom", "twill"])
    offered = ["accept", "acceptForSession", by_rule["decision"], "decline", "cancel"]
    require_equal("the available decisions", params["availableDecisions"], offered)
    ends = [_end(turn, "aggregatedOutput") for turn in seen["turns"]]
    require_equal("the commands", ends, [
        ["completed", "woven twill\n", "completed"],
        ["completed", "woven twill --broad\n", "completed"],
        ["declined", None, "completed"],
    ])
    rules = tomllib.loads((bench.server_home / "rules.toml").read_text())
    expected = {"command": ["./loom", "twill"], "verdict": "allow"}
    require_equal("the rules", rules, {"rule": [expected]})


def patches_of_files(bench):
    """Changes of files in a read-only sandbox: each decision, and after one of them no more requests about
    that file.
    """
    turns = [
        *(("spin", [_ACCEPT]), ("dye", [_DECLINE]), ("tear", [_CANCEL])),
        *(("dye", [_SESSION]), ("tear", [])),
    ]
    model = MockModel(bench, [
        ("spin", [patches(_patch("Add File: yarn.txt", "+flax", "+wool"))]),
        ("dye", [patches(_patch("Update File: yarn.txt", "@@", " flax", "-wool", "+silk"))]),
        ("tear", [patches(_patch("Delete File: yarn.txt"))]),
        ("Success", says("it is done")),
        ("declined", says("as you like")),
    ])
    record, seen = _drive(bench, model, {"sandbox": "read-only"}, turns)
    _require_asked(turns, seen, _PATCH)
    file = str(bench.workspace / "yarn.txt")
    added = {"path": file, "kind": {"type": "add"}, "diff": "flax\nwool\n"}
    for turn in seen["turns"][:-1]:
        ((_, params),) = turn["asked"]
        require_equal("what it is about", params["itemId"], turn["items"][1]["id"])
        require_equal("the files", [it["path"] for it in turn["items"][1]["changes"]], [file])
    require_equal("the first change", seen["turns"][0]["items"][1]["changes"], [added])
    kinds = [turn["items"][1]["changes"][0]["kind"]["type"] for turn in seen["turns"]]
    require_equal("the kinds", kinds, ["add", "update", "delete", "update", "delete"])
    made, refused = ["completed", "completed"], ["declined", "completed"]
    cancelled = ["declined", "interrupted"]
    ends = [_end(turn) for turn in seen["turns"]]
    require_equal("the changes", ends, [made, refused, cancelled, made, made])
    asked = [
        *(*_BEGIN, "item/started fileChange", "thread/status/changed waitingOnApproval"),
        *(_PATCH, _USAGE, *_GOES_ON, "item/completed fileChange"),
    ]
    _require_order(record, seen, [
        *(*asked, "turn/diff/updated", *_ANSWERED),
        *(*asked, *_ANSWERED),
        *(*asked, *_CANCELLED),
        *(*asked, "turn/diff/updated", *_ANSWERED),
        *(*_BEGIN, "item/started fileChange", _USAGE, "item/completed fileChange"),
        *("turn/diff/updated", *_ANSWERED),
    ])
    require_equal("the files", list(bench.workspace.iterdir()), [])
    _require_given(model, ["A ", "declined", "declined", "M ", "D "])


def _patch(*lines):
    return "\n".join(["*** Begin Patch", f"*** {lines[0]}", *lines[1:], "*** End Patch", ""])


def inside(bench):
    """Changes within a writable workspace need no approval."""
    turns = [("spin", []), ("weave", [])]
    line = "tee cloth.txt < yarn.txt"
    model = MockModel(bench, [
        ("spin", [patches(_patch("Add File: yarn.txt", "+flax"))]),
        ("weave", [calls("exec_command", {"cmd": line})]),
        ("Success", says("it is done")),
        ("flax", says("it is woven")),
    ])
    record, seen = _drive(bench, model, {"sandbox": "workspace-write"}, turns)
    _require_asked(turns, seen, None)
    patch, command = (turn["items"][1] for turn in seen["turns"])
    require_equal("the change", patch["status"], "completed")
    ended = [command["status"], command["aggregatedOutput"]]
    require_equal("the command", ended, ["completed", "flax\n"])
    # The home of this check is in the temporary folder, which commands may write: a warning names the files
    # in it that they may not write.
    ran = ["warning", "item/commandExecution/outputDelta", "item/completed commandExecution"]
    _require_order(record, seen, [
        *(*_BEGIN, "item/started fileChange", _USAGE, "item/completed fileChange"),
        *("turn/diff/updated", *_ANSWERED),
        *(*_BEGIN, "item/started commandExecution", _USAGE, *ran, "turn/diff/updated", *_ANSWERED),
    ])
    require_equal("the cloth", (bench.workspace / "cloth.txt").read_text(), "flax\n")


def question(bench):
    """The model asks the user a question, and reads the answer."""
    asked = {
        "id": "colour",
        "header": "Colour",
        "question": "Which colour?",
        "options": [
            {"label": "red", "description": "From madder"},
            {"label": "blue", "description": "From woad"},
        ],
    }
    turns = [("dye", [{"answers": {"colour": {"answers": ["blue"]}}}])]
    model = MockModel(bench, [
        ("dye", [calls("request_user_input", {"questions": [asked]})]),
        ("blue", says("blue it is")),
    ])
    record, seen = _drive(bench, model, {}, turns)
    _require_asked(turns, seen, _QUESTION)
    (turn,) = seen["turns"]
    ((_, params),) = turn["asked"]
    (shown,) = params["questions"]
    require_equal("the question", {**shown, **asked}, shown)
    require_equal("whether it waits", params["isBlocking"], True)
    ended = [turn["status"], turn["items"][-1]["text"]]
    require_equal("how it ended", ended, ["completed", "blue it is"])
    waits = "thread/status/changed waitingOnUserInput"
    _require_order(record, seen, [*_BEGIN, waits, _QUESTION, _USAGE, *_GOES_ON, *_ANSWERED])
    _require_given(model, ["blue"])


def rights(bench):
    """Permissions beyond a read-only sandbox: granted for one turn, and then denied."""
    yard = (bench.folder / "yard").resolve()
    yard.mkdir()
    wanted = {"write": [str(yard)]}
    granted = {"permissions": {"fileSystem": wanted}, "scope": "turn"}
    turns = [("dry", [granted]), ("bleach", [{"permissions": {}}])]
    asks = {"reason": "to hang it up", "permissions": {"file_system": wanted}}
    model = MockModel(bench, [
        *((said, [calls("request_permissions", asks)]) for said, _ in turns),
        ('"scope":"turn"', [calls("exec_command", {"cmd": f"echo dried | tee {yard}/cloth.txt"})]),
        ("dried", says("it is dry")),
        ("granted none", says("as you like")),
    ])
    record, seen = _drive(bench, model, {"sandbox": "read-only"}, turns)
    _require_asked(turns, seen, _RIGHTS)
    for turn in seen["turns"]:
        ((_, params),) = turn["asked"]
        require_equal("the permissions", params["permissions"]["fileSystem"]["write"], wanted["write"])
        asked = [params["cwd"], params["reason"]]
        require_equal("what for", asked, [str(bench.workspace), "to hang it up"])
    asked = [
        *(*_BEGIN, "item/started dynamicToolCall", "thread/status/changed waitingOnApproval"),
        *(_RIGHTS, _USAGE, *_GOES_ON, "item/completed dynamicToolCall"),
    ]
    ran = ["item/commandExecution/outputDelta", "item/completed commandExecution"]
    _require_order(record, seen, [
        *(*asked, "item/started commandExecution", _USAGE, *ran, *_ANSWERED),
        *(*asked, *_ANSWERED),
    ])
    require_equal("the cloth", (yard / "cloth.txt").read_text(), "dried\n")
    _require_given(model, ['"scope":"turn"', "dried", "granted none"])


def _require_asked(turns, seen, method):
    """Checks that there were as many requests as answers."""
    asked = [[asked for asked, _ in turn["asked"]] for turn in seen["turns"]]
    require_equal("the requests", asked, [[method] * len(answers) for _, answers in turns])


def _require_order(record, seen, expected):
    told = Told(record, seen["thread"])
    expected = ["answer to thread/start", "thread/started", *expected]
    require_equal("the messages about the thread", told.words, expected)


def _require_given(model, expected):
    """Checks that the results of the model's calls contain these texts."""
    for text, part in zip(model.given(), expected, strict=True):
        require(part in text, f"the model read {text!r}, not {part!r}")


def _end(turn, *members):
    """Returns the status of the tool and of the turn."""
    item = turn["items"][1]
    return [item["status"], *(item[member] for member in members), turn["status"]]


def _drive(bench, model, thread, turns):
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    overrides = [f"{key}={value}" for key, value in model.settings.items()]
    command = [
        *(bench.parts.sdk_python, "-B", _PROGRAM, stand_in.program),
        *(json.dumps(thread), json.dumps(turns), *overrides),
    ]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    require_answered(stand_in.record())
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())
    return stand_in.record(), json.loads(out)


CHECKS = {
    "python-sdk-commands": commands,
    "python-sdk-rule": rule,
    "python-sdk-patches": patches_of_files,
    "python-sdk-inside": inside,
    "python-sdk-question": question,
    "python-sdk-rights": rights,
}
