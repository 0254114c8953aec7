"""VS Code, as code-server: its agent host with a client of its protocol, and its chat page in Chromium.

The agent host looks for `codex` in the folder of an npm package, which `raddle shim install --vscode`
writes. It is 612 MB, so these checks belong to `cargo xtask prove vscode`.
"""

import json
from pathlib import Path

from browser import drive_page
from codex_shim import install_vscode_shim
from harness import free_port, require, require_equal, run_client
from mock_model import MockModel, beyond, held, patches, says
from results import ClientResult
from services import Service, end_descendants

_VERSION = "4.139.1"
_PROOF = "cargo xtask prove vscode"
_HELP = "`raddle shim install --vscode DIR`, and `VSCODE_AGENT_HOST_CODEX_SDK_ROOT=DIR`."
_UNTRIED = 'Not tried. The checks use the preset "Full Access", which asks for nothing.'
_HOST_PROGRAM = Path(__file__).with_name("vscode_host_program.mjs")
_PAGE_PROGRAM = Path(__file__).with_name("vscode_page_program.mjs")
_SCREENSHOT = Path(__file__).resolve().parents[2] / "docs/images/vscode.png"
_PATCH = "*** Begin Patch\n*** Add File: ../outside.txt\n+dyed\n*** End Patch\n"
_SETTINGS = {
    "chat.agentHost.codexAgent.enabled": True,
    "chat.editor.codex.preferAgentHost": True,
    "chat.agentHost.allowSignedOutWhenUsable": True,
    "workbench.startupEditor": "none",
    "security.workspace.trust.enabled": False,
}


def agent_host(bench):
    result = ClientResult(
        bench, "VS Code's agent host", "npm", f"code-server {_VERSION}", help=_HELP, checked_by=_PROOF
    )
    end_descendants(bench)
    model = _model(bench)
    environment = _environment(bench)

    host = _Host(bench, environment)
    seen = host.run("full-access")
    require_equal("the protocol's version", seen["protocolVersion"], "0.9.0")
    require_equal("the turn", seen["turn"], _ended("from threads"))
    result.works("turn")
    require_equal("the turn with a command", seen["command"], _ended("It is woven."))
    require_equal("the file of the command", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    result.works("command")
    require_equal("the turn with a patch", seen["patch"], _ended("It is dyed."))
    require_equal("the patched file", (bench.folder / "outside.txt").read_text(), "dyed\n")
    result.works("patch")
    require_equal("the end of the cancelled turn", seen["cancelled"]["end"], "chat/turnCancelled")
    model.wait_until_left()
    result.works("cancel")

    host.stop()
    host = _Host(bench, environment)
    again = host.run("full-access", seen["session"])
    require_equal("the answer of the resumed session", again["resumed"], _ended("linen"))
    require("what makes cloth?" in json.dumps(model.bodies()[-1]), "the model did not read the first turn")
    result.works("resume")

    result.lacks("approval", _UNTRIED)


def chat_page(bench):
    result = ClientResult(
        bench, "VS Code's chat page", "npm", f"code-server {_VERSION}", help=_HELP, checked_by=_PROOF
    )
    end_descendants(bench)
    _model(bench)
    data = bench.client_home / "data"
    settings = data / "User/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(_SETTINGS))
    port = free_port()
    command = [
        *(bench.parts.node, bench.parts.package("code-server", _VERSION, "code-server/out/node/entry.js")),
        *("--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--user-data-dir", data),
        *("--disable-telemetry", "--disable-update-check", bench.workspace),
    ]
    server = Service(bench, "code-server", command, _environment(bench))
    server.wait_for(lambda: "HTTP server listening on" in server.log(), "address")
    drive_page(bench, _PAGE_PROGRAM, f"http://127.0.0.1:{port}", bench.workspace, _SCREENSHOT)
    require_equal("the file of the command", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    result.works("turn", "command")
    result.lacks("approval", _UNTRIED)
    result.lacks("resume", "Not tried on the page; the agent host beneath it resumes sessions.")


class _Host:
    """The agent host, started as VS Code starts it."""

    def __init__(self, bench, environment):
        self._bench = bench
        vscode = bench.parts.package("code-server", _VERSION, "code-server/lib/vscode")
        port = free_port()
        self._address = f"ws://127.0.0.1:{port}/"
        language = {"userLocale": "en", "osLocale": "en", "resolvedLanguage": "en"}
        language["defaultMessagesFile"] = str(vscode / "out/nls.messages.json")
        own = {
            "VSCODE_ESM_ENTRYPOINT": "vs/platform/agentHost/node/agentHostMain",
            "VSCODE_NLS_CONFIG": json.dumps(language),
            "VSCODE_AGENT_HOST_HOST": "127.0.0.1",
            "VSCODE_AGENT_HOST_PORT": str(port),
        }
        command = [
            *(bench.parts.node, vscode / "out/bootstrap-fork.js", "--type=agentHost"),
            *("--user-data-dir", bench.client_home / "data", "--logsPath", bench.client_home / "logs"),
        ]
        self._service = Service(bench, f"host-{port}", command, environment | own)
        ready = "Agent host server listening on"
        self._service.wait_for(lambda: ready in self._service.log(), "address")

    def run(self, preset, *session):
        """Runs a client of the host with a preset of permissions, and returns what it saw."""
        bench = self._bench
        command = [bench.parts.node, _HOST_PROGRAM, self._address, bench.workspace, preset, *session]
        code, out, _ = run_client(bench, command, bench.environment())
        require_equal("the exit code of the client", code, 0)
        return json.loads(out)

    def stop(self):
        self._service.stop()


def _model(bench):
    model = MockModel(bench, [
        ("makes cloth?", ['text = "from threads", size = 4']),
        ("may I weave?", [beyond("echo woven | tee cloth.txt")]),
        ("woven", says("It is woven.")),
        ("may I dye?", [patches(_PATCH)]),
        ("outside.txt", says("It is dyed.")),
        ("never stop", held("on and on")),
        ("which cloth", says("linen")),
    ])
    model.configure(bench)
    return model


def _environment(bench):
    return bench.environment(
        VSCODE_AGENT_HOST_CODEX_AGENT_ENABLED="true",
        VSCODE_AGENT_HOST_CODEX_SDK_ROOT=str(install_vscode_shim(bench)),
    )


def _ended(text):
    return {"text": text, "approved": [], "end": "chat/turnComplete"}


#: Not in CI: `cargo xtask prove vscode` runs them.
PROOFS = {"vscode-agent-host": agent_host, "vscode-chat-page": chat_page}
