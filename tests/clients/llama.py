"""The stock clients with a real engine as the model: llama.cpp with a deterministic model.

With tools, the model writes a file, which needs the user's approval in a read-only sandbox, and then
returns its fixed sentence. This is the whole loop: model, policy, user, disk, and the model again.
"""

import json
from pathlib import Path

from harness import Server, require, require_equal, run_client
from llama_model import ANSWER, ANSWER_TOKENS, CONTENT, FILE, MODEL, LlamaModel
from recorder import SERVER
from stand_in import StandIn
from tui_client import EMPTY_PROMPT, recorded, start_tui

_PROGRAM = Path(__file__).with_name("python_sdk_program.py")
_ASKED_PROGRAM = Path(__file__).with_name("python_sdk_asked_program.py")
_PROMPTS = ["is it ready?", "are you sure?"]
_PATCH = "item/fileChange/requestApproval"


def terminal_client(bench):
    _terminal_client(bench)


def terminal_client_of_nobody(bench):
    """The same with a server of an unprivileged user."""
    _terminal_client(bench, has_rights=False)


def _terminal_client(bench, has_rights=True):
    model = LlamaModel(bench)
    model.configure(bench)
    if not has_rights:
        bench.have_no_rights()
    server = Server(bench, "--listen", "ws://127.0.0.1:0", "--insecure-loopback")
    record, relay = recorded(bench, server)
    terminal = start_tui(bench, f"ws://{relay.address}")
    terminal.wait_for(EMPTY_PROMPT)
    terminal.wait_for(f"{MODEL} default")
    terminal.enter(_PROMPTS[0])
    terminal.wait_for("Would you like to make the following edits?")
    terminal.wait_for(f"• Added {FILE} (+1 -0)")
    terminal.wait_for(f"1 +{CONTENT}")
    file = bench.server_folder / FILE
    require(not file.exists(), "the file was written before the approval request")
    terminal.press("y")
    terminal.wait_for(f"• {ANSWER}")
    terminal.wait_for(EMPTY_PROMPT)
    terminal.enter("/quit")
    require_equal("the client's exit code", terminal.wait_for_end(), 0)
    server.stop()
    _require_agreed(bench, file, model, record)
    model.require_generated(2 * ANSWER_TOKENS)


def python_sdk(bench):
    """The high-level client approves every request."""
    model = LlamaModel(bench)
    network = "sandbox_workspace_write.network_access=true"
    command = [
        *(bench.parts.sdk_python, "-B", _PROGRAM, "sync", bench.raddle),
        *(json.dumps(_PROMPTS), *_overrides(model), network),
    ]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    turns = json.loads(out)["turns"]
    require_equal("the answers", [turn["answer"] for turn in turns], [ANSWER, ANSWER])
    items = ["userMessage", "fileChange", "agentMessage"]
    require_equal("the items", [turn["items"] for turn in turns], [items, items])
    for turn in turns:
        require_equal("the status", turn["status"], "completed")
        taken, made, both = turn["lastTokens"]
        require_equal("the generated tokens", made, ANSWER_TOKENS)
        require(taken > 0 and both == taken + made, f"the tokens are {turn['lastTokens']}")
    _, made, _ = turns[-1]["totalTokens"]
    require_equal("all tokens", model.generated(), made)
    require_equal("the file", (bench.workspace / FILE).read_text(), CONTENT)


def python_low_level(bench):
    _python_low_level(bench)


def python_low_level_of_nobody(bench):
    """The same with a server of an unprivileged user."""
    _python_low_level(bench, has_rights=False)


def python_on_chat(bench):
    """The same on the engine's Chat Completions wire."""
    _python_low_level(bench, wire="chat")


def python_on_messages(bench):
    """The same on the engine's Messages wire."""
    _python_low_level(bench, wire="messages")


def _python_low_level(bench, has_rights=True, wire="responses"):
    """The low-level client receives the request and approves it."""
    model = LlamaModel(bench, wire)
    if not has_rights:
        bench.have_no_rights()
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    turns = [(_PROMPTS[0], [{"decision": "accept"}])]
    command = [
        *(bench.parts.sdk_python, "-B", _ASKED_PROGRAM, stand_in.program),
        *(json.dumps({"sandbox": "read-only"}), json.dumps(turns), *_overrides(model)),
    ]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    (turn,) = json.loads(out)["turns"]
    require_equal("the requests", [method for method, _ in turn["asked"]], [_PATCH])
    ended = [turn["status"], turn["items"][-1]["text"]]
    require_equal("how it ended", ended, ["completed", ANSWER])
    _require_agreed(bench, bench.workspace / FILE, model, stand_in.record())


def _require_agreed(bench, file, model, record):
    """Checks that the disk, the item and the model's next input agree."""
    require_equal("the file", file.read_text(), CONTENT)
    require_equal("its owner", file.stat().st_uid, bench.server_user)
    (asked,) = record.calls(by=SERVER)
    require_equal("the requests", [asked.method, asked.result], [_PATCH, {"decision": "accept"}])
    told = [message for message, _ in record.told() if message.get("method") == "item/completed"]
    (item,) = (it["params"]["item"] for it in told if it["params"]["item"]["type"] == "fileChange")
    change = {"path": str(file), "kind": {"type": "add"}, "diff": CONTENT}
    require_equal("the item", [item["status"], item["changes"]], ["completed", [change]])
    tool, arguments, output = model.told()
    called = ["write_file", {"path": FILE, "content": CONTENT}]
    require_equal("the model's call", [tool, arguments], called)
    require(str(file) in output, f"the model read {output!r}")


def _overrides(model):
    return [f"{key}={value}" for key, value in model.settings.items()]


CHECKS = {
    "llama-tui": terminal_client,
    "llama-tui-nobody": terminal_client_of_nobody,
    "llama-python-sdk": python_sdk,
    "llama-python-asked": python_low_level,
    "llama-python-nobody": python_low_level_of_nobody,
    "llama-chat": python_on_chat,
    "llama-messages": python_on_messages,
}
