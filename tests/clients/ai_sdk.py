"""Two providers of the AI SDK that drive a Codex: as `codex exec`, and as `codex app-server`.

Both take the path of the program as their documented setting `codexPath`, so no shim is needed.
"""

import json
from pathlib import Path

from harness import require, require_equal, run_client
from mock_model import MockModel, beyond, calls, says
from results import ClientResult

_CLI = Path(__file__).with_name("ai_sdk_cli_program.mjs")
_APP_SERVER = Path(__file__).with_name("ai_sdk_app_server_program.mjs")
_HELP = "The path of Raddle as its setting `codexPath`."
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
    version = "2.2.1"
    result = ClientResult(bench, "ai-sdk-provider-codex-cli", "npm", version, help=_HELP)
    sdk, package = (
        bench.parts.package("ai-sdk-codex-cli", version, f"{name}/dist/index.js")
        for name in ("ai", "ai-sdk-provider-codex-cli")
    )
    seen = _run(bench, model, _CLI, sdk, package)
    require_equal("the answer of `exec`", seen["exec"], "from wool")
    result.works("exec")
    require_equal("the streamed answer", "".join(seen["pieces"]), "from threads")
    result.works("turn")
    require_equal("the answer after the approval", seen["approved"], "It is woven.")
    require_equal("how often it was asked", len(seen["asked"]), 1)
    require_equal("the approved command's file", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    result.works("approval")
    _resumed(model, seen, seen["resumed"])
    result.works("resume")


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
    version = "1.1.7"
    result = ClientResult(bench, "ai-sdk-provider-codex-app-server", "npm", version, help=_HELP)
    sdk, package = (
        bench.parts.package("ai-sdk-codex-app-server", version, path)
        for path in ("ai/dist/index.mjs", "ai-sdk-provider-codex-app-server/dist/index.js")
    )
    seen = _run(bench, model, _APP_SERVER, sdk, package)
    require_equal("the streamed answer", "".join(seen["first"]["pieces"]), "from threads")
    result.works("turn")
    require_equal("the answer after the command", seen["second"]["pieces"], ["It is woven."])
    require_equal("how many tools it saw", len(seen["second"]["tools"]), 1)
    require_equal("the command's file", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    result.works("command")
    _resumed(model, seen, "".join(seen["resumed"]["pieces"]))
    result.works("resume")
    result.lacks("approval", "The client drops every request of the server.")


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
    require("what makes cloth?" in told[0], f"the model read {told!r}")


CHECKS = {"ai-sdk-codex-cli": cli, "ai-sdk-codex-app-server": app_server}
