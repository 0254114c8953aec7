"""hermes-agent with Raddle as the `codex` of its runtime `codex_app_server`."""

import json
from pathlib import Path

from harness import require_equal, run_client
from results import ClientResult
from third_party import APPROVAL, TURN, Conversation

_NAME, _VERSION = "hermes-agent", "0.19.0"
_PROGRAM = Path(__file__).with_name("hermes_agent_program.py")


def agent(bench):
    result = ClientResult(
        bench, _NAME, "PyPI", _VERSION,
        "A `codex` on `PATH` that starts Raddle, and the runtime `codex_app_server` (`/codex-runtime on`).",
    )
    conversation = Conversation(bench, name="codex")
    command = [bench.parts.python(_NAME, _VERSION), "-B", _PROGRAM, TURN[0], APPROVAL[0]]
    home = {"HERMES_HOME": str(bench.client_home / "hermes"), "TERMINAL_CWD": str(bench.workspace)}
    code, out, _ = run_client(bench, command, conversation.environment(**home))
    require_equal("the program's exit code", code, 0)
    first, second = json.loads(out)["answers"]
    conversation.require_turn(first)
    conversation.require_approval(second)
    result.works("turn", "approval")
    result.lacks("resume", "Hermes keeps its own history, and starts a new thread in each process.")
    require_equal("requests that are not served", conversation.refused(), [])
    conversation.require_clean()


CHECKS = {_NAME: agent}
