"""`raddle mcp-server`: the official Python SDK as its client, and the official conformance suite."""

import json
from pathlib import Path

from harness import require, require_equal, run_client
from mcp_http_bridge import Bridge, Session
from mcp_suite import Suite
from mock_model import MockModel, beyond, calls, says

_PROGRAM = Path(__file__).with_name("mcp_server_mode_program.py")
#: Scenarios that fail, each with its reason.
_EXPECTED = Path(__file__).with_name("mcp_server_failures.json")
_SDK_VERSION = "4.1.2"
#: The suite expects tools of its own. These calls show the same behaviour with a scripted model: a text, an
#: error, progress, and a form.
_CALLS = {
    "test_simple_text": {"name": "codex", "arguments": {"prompt": "weave"}},
    "test_error_handling": {"name": "codex", "arguments": {"prompt": ""}},
    "test_tool_with_progress": {"name": "codex", "arguments": {"prompt": "three steps"}},
    "test_elicitation": {"name": "codex", "arguments": {"prompt": "make it"}},
}


def sdk(bench):
    """A thread, its continuation, an approval that the user gives and one that the user declines."""
    model = MockModel(
        bench,
        [
            ("make it", [beyond("touch made")]),
            ("make another", [beyond("touch another")]),
            ("and then", says("The cloth is cut.")),
            ("weave", says("The cloth is woven.")),
        ],
    )
    model.configure(bench, approval_policy="on-request")
    # FastMCP brings the SDK.
    python = bench.parts.python("fastmcp", _SDK_VERSION)
    code, out, _ = run_client(bench, [python, _PROGRAM, bench.raddle], bench.environment())
    require_equal("the exit code of the client", code, 0)
    seen = json.loads(out)
    require_equal("the tools", seen["tools"], ["codex", "codex-reply"])
    require_equal("the answers", seen["texts"], ["The cloth is woven.", "The cloth is cut."])
    require_equal("the number of threads", len(set(seen["threads"])), 1)
    require_equal("the number of forms", len(seen["forms"]), 2)
    for form, command in zip(seen["forms"], ["touch made", "touch another"]):
        require(form.startswith("Run this command in ") and command in form, f"the form is {form!r}")
    made = [(bench.workspace / name).exists() for name in ("made", "another")]
    require_equal("the approved file and the declined one", made, [True, False])
    require(any("touch made" in it for it in seen["steps"]), f"the progress is {seen['steps']}")
    require("cannot be \"none\"" in seen["mistake"], f"the error is {seen['mistake']!r}")


def conformance(bench):
    """Every scenario for servers passes, or fails as expected."""
    steps = [calls("exec_command", {"cmd": f"echo {it}", "login": False}) for it in range(3)]
    answers = [
        ("make it", [beyond("touch made")]),
        ("three steps", steps),
        ("weave", says("The cloth is woven.")),
    ]
    MockModel(bench, answers).configure(bench, approval_policy="on-request")
    log = open(bench.folder / "mcp-server.stderr", "wb")
    bench.afterwards(log.close)
    command = [bench.raddle, "mcp-server"]
    bridge = Bridge(lambda: Session(command, bench.workspace, bench.environment(), log), _CALLS)
    bench.afterwards(bridge.close_sessions)
    bench.serve(bridge)
    Suite(bench, "server", "--url", bridge.url).require_expected(_EXPECTED)
    # The suite accepts every form, with other values than a decision.
    require(not (bench.workspace / "made").exists(), "a form without a decision approved a command")
    require_equal("the exit codes of the servers", set(bridge.close_sessions()) - {0}, set())


CHECKS = {
    "mcp-server": sdk,
    "mcp-server-conformance": conformance,
}
