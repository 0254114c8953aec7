"""VS Code, as code-server: its agent host with a client of its protocol, and its chat page in Chromium.

The agent host looks for `codex` in the folder of an npm package, which `raddle shim install --vscode`
writes. It is 612 MB, so these checks belong to `cargo xtask prove vscode`.

Each check uses all presets of permissions. Those except "Full Access" send a profile that closes the disk
except for the workspace, the temporary folder and the system's programs.
"""

import json
from pathlib import Path

from browser import drive_page
from codex_shim import install_vscode_shim
from harness import free_port, require, require_equal, require_no_panic, run_client, wait_until
from mock_model import MockModel, beyond, calls, held, patches, says
from recorder import CLIENT, SERVER
from results import ClientResult
from services import Service, end_descendants
from stand_in import StandIn

_VERSION = "4.139.1"
_PROOF = "cargo xtask prove vscode"
_HELP = "`raddle shim install --vscode DIR`, and `VSCODE_AGENT_HOST_CODEX_SDK_ROOT=DIR`."
_HOST_PROGRAM = Path(__file__).with_name("vscode_host_program.mjs")
_PAGE_PROGRAM = Path(__file__).with_name("vscode_page_program.mjs")
_SCREENSHOT = Path(__file__).resolve().parents[2] / "docs/images/vscode.png"
_SETTINGS = {
    "chat.agentHost.codexAgent.enabled": True,
    "chat.editor.codex.preferAgentHost": True,
    "chat.agentHost.allowSignedOutWhenUsable": True,
    "workbench.startupEditor": "none",
    "security.workspace.trust.enabled": False,
}

#: A file outside the workspace and the temporary folder.
_CLOSED_FILE = Path(__file__).resolve()
_INSIDE = "*** Begin Patch\n*** Add File: pattern.txt\n+warp\n+weft\n*** End Patch\n"
_OUTSIDE = "*** Begin Patch\n*** Add File: ../outside.txt\n+dyed\n*** End Patch\n"
#: The messages of the user, and the model's last words in the turn of each.
_TEXT = ("what makes cloth?", "from threads")
_COMMAND = ("may I weave?", "It is woven.")
_DECLINED = ("may I cut?", "It stays whole.")
_PATCH = ("may I draw?", "It is drawn.")
_ASKED_PATCH = ("may I dye?", "It is dyed.")
_CLOSED = ("may I read?", "It is read.")
_CANCELLED = "never stop"
_RESUMED = ("which cloth was it?", "linen")
#: What the presets send with each turn: the permission profile, the approval policy, the reviewer.
_DEFAULT = ("vscode-workspace", "on-request", "user")
_AUTO_REVIEW = ("vscode-workspace", "on-request", "auto_review")
_FULL_ACCESS = (":danger-full-access", "never", "user")

_NO_REVIEWER = (
    'There is no reviewing model. With the preset "Auto-Review" the user is asked, as with "Default'
    ' Permissions".'
)
_NO_DIFF = (
    "The question about a change of files has only the server's reason. The page shows the diff of changes"
    " that need no approval."
)
_EARLY = (
    "The page does not show a question that comes within moments of a session's first message. The turn"
    " waits until it is cancelled."
)
_UNUSED = (
    "The page starts threads that it does not use. After a restart it lists them as sessions without a"
    " message."
)


def agent_host(bench):
    result = _result(bench, "VS Code's agent host")
    setting = _Setting(bench)
    host = _Host(bench, setting.environment)

    seen = host.run("default", [
        (_TEXT[0], ""),
        (_COMMAND[0], "approve"),
        (_DECLINED[0], "decline"),
        (_PATCH[0], ""),
        (_ASKED_PATCH[0], "approve"),
        (_CLOSED[0], ""),
        (_CANCELLED, "cancel", setting.model.address),
    ])
    require_equal("the protocol's version", seen["protocolVersion"], "0.9.0")
    text, command, declined, patch, asked_patch, closed, cancelled = seen["turns"]
    _require_ended(text, _TEXT)
    _require_ended(command, _COMMAND, questions=1)
    _require_ended(declined, _DECLINED, questions=1)
    _require_ended(patch, _PATCH)
    require("warp\nweft" in "".join(patch["results"]), f"no diff in {patch['results']}")
    _require_ended(asked_patch, _ASKED_PATCH, questions=1)
    _require_ended(closed, _CLOSED)
    require_equal("the end of the cancelled turn", cancelled["end"], "chat/turnCancelled")
    setting.require_default()
    result.works("turn", "approval", "command", "patch", "cancel")

    host.stop()
    host = _Host(bench, setting.environment)
    again = host.run("default", [(_RESUMED[0], "")], seen["session"])
    _require_ended(again["turns"][0], _RESUMED)
    setting.require_resumed()
    result.works("resume")

    for preset, questions, sent in [("auto-review", 1, _AUTO_REVIEW), ("full-access", 0, _FULL_ACCESS)]:
        (command,) = host.run(preset, [(_COMMAND[0], "approve")])["turns"]
        _require_ended(command, _COMMAND, questions)
        setting.require_preset(sent)
    (closed,) = host.run("full-access", [(_CLOSED[0], "")])["turns"]
    _require_ended(closed, _CLOSED)
    setting.require_open()
    result.works("presets")
    result.lacks("automatic review", _NO_REVIEWER)
    setting.require_clean()


def chat_page(bench):
    result = _result(bench, "VS Code's chat page")
    setting = _Setting(bench)
    data = bench.client_home / "data"
    settings = data / "User/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(_SETTINGS))
    server = _Page(bench, setting.environment, data)

    server.drive([
        ("agent", "Codex"),
        ("preset", "Default Permissions"),
        *_page_turn(_TEXT),
        *_page_turn(_PATCH),
        ("press", "add: .*pattern.txt"),
        ("see", "warp"),
        ("say", _COMMAND[0]),
        ("press", "Allow"),
        ("see", _COMMAND[1]),
        ("say", _DECLINED[0]),
        ("find", "Proceed without"),
        ("picture", str(_SCREENSHOT)),
        ("press", "Proceed without"),
        ("see", _DECLINED[1]),
        ("say", _ASKED_PATCH[0]),
        ("press", "Allow"),
        ("see", _ASKED_PATCH[1]),
        *_page_turn(_CLOSED),
        ("say", _CANCELLED),
        ("held", setting.model.address),
        ("press", "Cancel"),
        ("gone", "Cancel"),
    ])
    setting.require_default()
    result.works("turn", "approval", "command", "patch", "cancel")

    server.stop()
    server = _Page(bench, setting.environment, data)
    server.drive([
        ("open", _TEXT[0]),
        ("see", _CANCELLED),
        ("see", f"add: {bench.folder}/outside.txt"),
        *_page_turn(_RESUMED),
    ])
    setting.require_resumed()
    result.works("resume")

    for preset, answer, sent in [
        ("Auto-Review", [("press", "Allow")], _AUTO_REVIEW),
        ("Full Access", [], _FULL_ACCESS),
    ]:
        server.drive([
            ("agent", "Codex"),
            ("preset", preset),
            *_page_turn(_TEXT),
            ("say", _COMMAND[0]),
            *answer,
            ("see", _COMMAND[1]),
        ])
        setting.require_preset(sent)
    result.works("presets")
    result.lacks("automatic review", _NO_REVIEWER)
    result.lacks("diff in the question", _NO_DIFF)
    result.lacks("question at once", _EARLY)
    result.lacks("tidy list of sessions", _UNUSED)
    setting.require_clean()


def _result(bench, client):
    version = f"code-server {_VERSION}"
    return ClientResult(bench, client, "npm", version, help=_HELP, checked_by=_PROOF)


def _require_ended(turn, said, questions=0):
    require_equal(f"the end of {said[0]!r}", (turn["text"], turn["end"]), (said[1], "chat/turnComplete"))
    require_equal(f"the number of questions of {said[0]!r}", len(turn["asked"]), questions)


def _page_turn(said):
    return [("say", said[0]), ("see", said[1])]


class _Setting:
    """The model, the program with its recorder, and what both and the disk have seen."""

    def __init__(self, bench):
        self._bench = bench
        end_descendants(bench)
        self.model = MockModel(bench, [
            (_TEXT[0], ['text = "from threads", size = 4']),
            (_COMMAND[0], [beyond("echo woven | tee -a ../cloth.txt")]),
            (_DECLINED[0], [beyond("echo shorn | tee ../cut.txt")]),
            (_PATCH[0], [patches(_INSIDE)]),
            (_ASKED_PATCH[0], [patches(_OUTSIDE)]),
            (_CLOSED[0], [calls("exec_command", {"cmd": f"head -c 20 {_CLOSED_FILE}; echo over"})]),
            (_CANCELLED, held("on and on")),
            (_RESUMED[0], says(_RESUMED[1])),
            ("woven", says(_COMMAND[1])),
            ("user declined", says(_DECLINED[1])),
            ("pattern.txt", says(_PATCH[1])),
            ("outside.txt", says(_ASKED_PATCH[1])),
            ("over", says(_CLOSED[1])),
        ])
        self.model.configure(bench)
        self._stand_in = StandIn(bench.folder, bench.raddle)
        bench.evidence("the last messages", lambda: self._stand_in.record().tail())
        bench.evidence("the server's stderr", lambda: self._stand_in.stderr().splitlines()[-40:])
        self.environment = bench.environment(
            VSCODE_AGENT_HOST_CODEX_AGENT_ENABLED="true",
            VSCODE_AGENT_HOST_CODEX_SDK_ROOT=str(install_vscode_shim(bench, self._stand_in.program)),
        )

    def require_default(self):
        """Checks the conversation with the preset "Default"."""
        bench = self._bench
        self.require_preset(_DEFAULT)
        self.model.wait_until_left()
        asked = self._stand_in.record().calls(by=SERVER)
        command, change = (f"item/{it}/requestApproval" for it in ("commandExecution", "fileChange"))
        require_equal(
            "the approval requests and the decisions",
            [(it.method, it.result["decision"]) for it in asked],
            [(command, "accept"), (command, "decline"), (change, "accept")],
        )
        wait_until(lambda: len(self._told("turn/completed")) == 7)
        ends = [it["turn"]["status"] for it in self._told("turn/completed")]
        require_equal("the ends of the turns", ends, ["completed"] * 6 + ["interrupted"])
        require_equal("the file of the command", (bench.folder / "cloth.txt").read_text(), "woven\n")
        require(not (bench.folder / "cut.txt").exists(), "the declined command ran")
        require_equal("the patch", (bench.workspace / "pattern.txt").read_text(), "warp\nweft\n")
        require_equal("the approved patch", (bench.folder / "outside.txt").read_text(), "dyed\n")
        output = self._last_output()
        require("No such file" in output, f"a closed file was found: {output!r}")

    def require_resumed(self):
        require(len(self._stand_in.starts()) > 1, "the client started only one server")
        read = json.dumps(self.model.bodies()[-1])
        for text, _ in (_TEXT, _COMMAND, _ASKED_PATCH):
            require(text in read, f"the model did not read {text!r}")

    def require_preset(self, sent):
        """Checks what the last turn was started with."""
        calls = self._stand_in.record().calls(by=CLIENT)
        *_, last = (call.params for call in calls if call.method == "turn/start")
        found = tuple(last[it] for it in ("permissions", "approvalPolicy", "approvalsReviewer"))
        require_equal("the permissions of the turn", found, sent)

    def require_open(self):
        expected = f"{_CLOSED_FILE.read_text()[:20]}over\n"
        require_equal("the output of the last command", self._last_output(), expected)

    def require_clean(self):
        """Checks that no server panicked, and that every preset ran its command once."""
        written = (self._bench.folder / "cloth.txt").read_text()
        require_equal("the file of the commands", written, "woven\n" * 3)
        require_no_panic(self._stand_in.stderr())

    def _last_output(self):
        items = [it["item"] for it in self._told("item/completed")]
        *_, last = (it for it in items if it["type"] == "commandExecution")
        return last["aggregatedOutput"]

    def _told(self, method):
        messages = self._stand_in.record().messages()
        return [it["params"] for who, it in messages if who == SERVER and it.get("method") == method]


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

    def run(self, preset, turns, *session):
        """Runs a client of the host with a preset of permissions, and returns what it saw.

        `turns` have a message each, and the user's act: `approve`, `decline`, `cancel` or nothing.
        """
        bench = self._bench
        command = [bench.parts.node, _HOST_PROGRAM, self._address, bench.workspace, preset]
        code, out, _ = run_client(bench, [*command, json.dumps(turns), *session], bench.environment())
        require_equal("the exit code of the client", code, 0)
        return json.loads(out)

    def stop(self):
        self._service.stop()


class _Page:
    """code-server, which serves VS Code's page and starts the agent host."""

    def __init__(self, bench, environment, data):
        self._bench = bench
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        program = bench.parts.package("code-server", _VERSION, "code-server/out/node/entry.js")
        command = [
            *(bench.parts.node, program, "--auth", "none", "--bind-addr", f"127.0.0.1:{port}"),
            *("--user-data-dir", data, "--disable-telemetry", "--disable-update-check", bench.workspace),
        ]
        self._service = Service(bench, f"code-server-{port}", command, environment)
        ready = "HTTP server listening on"
        self._service.wait_for(lambda: ready in self._service.log(), "address")

    def drive(self, steps):
        """Opens the page in a new browser, and does what the steps say."""
        bench = self._bench
        drive_page(bench, _PAGE_PROGRAM, self._address, bench.workspace, json.dumps(steps))

    def stop(self):
        self._service.stop()


#: Not in CI: `cargo xtask prove vscode` runs them.
PROOFS = {"vscode-agent-host": agent_host, "vscode-chat-page": chat_page}
