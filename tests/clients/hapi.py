"""HAPI: its hub, its runner, its page in Chromium, and its HTTP API.

The runner starts `codex app-server`. HAPI reads the version of `codex`, so it gets the shim on PATH and in
its documented variable `HAPI_CODEX_APP_SERVER_BIN`.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path

from browser import drive_page
from codex_shim import install_shim
from harness import DEADLINE_S, free_port, require, require_equal, wait_until
from mock_model import MODEL, MockModel, beyond, says
from results import ClientResult
from services import Service, end_descendants

_PAGE = Path(__file__).with_name("hapi_page_program.mjs")
_VERSION = "0.30.7"
_HELP = "`codex` on `PATH` and in `HAPI_CODEX_APP_SERVER_BIN`: `raddle shim install`."
_TOKEN = "a-token-of-the-check"


def hapi(bench):
    result = ClientResult(bench, "hapi", "npm", _VERSION, help=_HELP)
    end_descendants(bench)
    model = MockModel(bench, [
        ("makes cloth?", ['text = "from threads", size = 4']),
        ("may I weave?", [beyond("echo woven | tee cloth.txt")]),
        ("woven", says("It is woven.")),
        ("may I dye?", [beyond("echo dyed | tee cloth.txt")]),
        ("dyed", says("It is dyed.")),
        ("mends cloth?", says("A needle does.")),
    ])
    model.configure(bench)
    hub = Hub(bench)
    session = hub.spawn(bench.workspace)

    drive_page(bench, _PAGE, hub.address, _TOKEN, session)
    require_equal("the file of the command", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    result.works("page", "turn", "approval")

    hub.say(session, "may I dye?")
    hub.approve(session)
    hub.wait_for_text(session, "It is dyed.")
    result.works("HTTP API")

    # HAPI archives the thread of a session that ends, and restores it with the session.
    hub.end(session)
    resumed = hub.reopen(session)
    hub.say(resumed, "what mends cloth?")
    hub.wait_for_text(resumed, "A needle does.")
    result.works("resume")


class Hub:
    """HAPI's hub and a runner on this machine."""

    def __init__(self, bench):
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self._token = None
        codex = install_shim(bench)
        environment = bench.environment()
        environment |= {
            "PATH": f"{codex.parent}:{environment['PATH']}",
            "HAPI_HOME": str(bench.client_home / "hapi"),
            "HAPI_LISTEN_HOST": "127.0.0.1",
            "HAPI_LISTEN_PORT": str(port),
            "HAPI_API_URL": self.address,
            "HAPI_CODEX_APP_SERVER_BIN": str(codex),
            "CLI_API_TOKEN": _TOKEN,
        }
        program = bench.parts.package("hapi", _VERSION, ".bin/hapi")
        hub = Service(bench, "hub", [program, "hub"], environment)
        self._token = hub.wait_for(self._sign_in, "sign-in")
        runner = Service(bench, "runner", [program, "runner", "start-sync"], environment)
        self._machine = runner.wait_for(self._first_machine, "machine")

    def spawn(self, folder):
        """Starts a session, and returns its id."""
        wish = {"directory": str(folder), "agent": "codex", "model": MODEL}
        answer = self.post(f"/api/machines/{self._machine}/spawn", wish)
        require(answer.get("sessionId"), f"no session: {answer!r}")
        return answer["sessionId"]

    def end(self, session):
        """Ends a session, and waits until its agent has ended."""
        self.post(f"/api/sessions/{session}/archive", {})
        require(wait_until(lambda: not self.session(session)["active"]), "the session stays active")

    def reopen(self, session):
        """Continues a session that has ended, and returns its id."""
        answer = self.post(f"/api/sessions/{session}/reopen", {})
        require(answer.get("resumed"), f"it is not resumed: {answer!r}")
        return answer["sessionId"]

    def say(self, session, text):
        self.post(f"/api/sessions/{session}/messages", {"text": text})

    def approve(self, session):
        """Waits for a request for approval, and approves it."""
        requests = wait_until(lambda: (self.session(session).get("agentState") or {}).get("requests"))
        require(requests, "no approval was requested")
        (request,) = requests
        self.post(f"/api/sessions/{session}/permissions/{request}/approve", {})

    def wait_for_text(self, session, text):
        said = lambda: text in json.dumps(self.get(f"/api/sessions/{session}/messages"))
        require(wait_until(said), f"no message {text!r}")

    def session(self, session):
        return self.get(f"/api/sessions/{session}")["session"]

    def get(self, path):
        return self._call(path, None)

    def post(self, path, body):
        return self._call(path, json.dumps(body).encode())

    def _call(self, path, body):
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self.address + path, data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return json.load(answer)

    def _sign_in(self):
        try:
            return self.post("/api/auth", {"accessToken": _TOKEN})["token"]
        except urllib.error.URLError:
            # It does not listen yet.
            return None

    def _first_machine(self):
        machines = self.get("/api/machines")["machines"]
        return machines and machines[0]["id"]


CHECKS = {"hapi": hapi}
