"""Two providers of the AI SDK that drive a Codex: as `codex exec`, and as `codex app-server`.

Both take the path of the program as their documented setting `codexPath`, so no shim is needed.
"""

import json
from pathlib import Path

from harness import require_equal, run_client
from mock_model import MockModel, beyond, calls, says

_CLI = Path(__file__).with_name("ai_sdk_cli_program.mjs")
_APP_SERVER = Path(__file__).with_name("ai_sdk_app_server_program.mjs")
_PIECES = ["from ", "thread", "s"]
_STREAMED = ['text = "from threads", size = 6']


def cli(bench):
    """`ai-sdk-provider-codex-cli`: a call of `exec`, a streamed turn, an approval, and a resume."""
    model = MockModel(bench, [
        ("yarn?", says("from wool")),
        ("makes cloth?", _STREAMED),
        ("may I weave?", [beyond("echo woven | tee cloth.txt")]),
        ("woven", says("It is woven.")),
        ("which cloth", says("linen")),
    ])
    seen = _run(bench, model, _CLI, bench.parts.ai_sdk, bench.parts.ai_sdk_codex_cli)
    require_equal("the answer of `exec`", seen["exec"], "from wool")
    require_equal("the streamed answer", "".join(seen["pieces"]), "from threads")
    require_equal("the answer after the approval", seen["approved"], "It is woven.")
    require_equal("how often it was asked", len(seen["asked"]), 1)
    require_equal("the approved command's file", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    _resumed(model, seen, seen["resumed"])


def app_server(bench):
    """`ai-sdk-provider-codex-app-server`: streamed turns, a command, and a resume.

    It drops requests of the server, so there is no approval.
    """
    model = MockModel(bench, [
        ("makes cloth?", _STREAMED),
        ("weave it", [calls("exec_command", {"cmd": "echo woven | tee cloth.txt"})]),
        ("woven", says("It is woven.")),
        ("which cloth", says("linen")),
    ])
    seen = _run(bench, model, _APP_SERVER, bench.parts.ai_sdk_6, bench.parts.ai_sdk_codex_app_server)
    require_equal("the streamed answer", "".join(seen["first"]["pieces"]), "from threads")
    require_equal("the answer after the command", seen["second"]["pieces"], ["It is woven."])
    require_equal("how many tools it saw", len(seen["second"]["tools"]), 1)
    require_equal("the command's file", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    _resumed(model, seen, "".join(seen["resumed"]["pieces"]))


def _run(bench, model, program, sdk, package):
    model.configure(bench)
    command = [bench.parts.node, program, sdk, package, bench.raddle, bench.workspace]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    return json.loads(out)


def _resumed(model, seen, answer):
    """Checks that another process continued the thread, and that the model read what came before."""
    require_equal("the answer of the resumed thread", answer, "linen")
    require_equal("the resumed thread", seen["resumedThread"], seen["thread"])
    told = [text for role, text in model.asked()[-1] if role == "user" and text]
    require_equal("the first of what the model read", told[0], "what makes cloth?")


CHECKS = {"ai-sdk-codex-cli": cli, "ai-sdk-codex-app-server": app_server}
