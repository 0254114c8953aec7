"""Turns with aimock as the vendor: an independent implementation of every wire of Raddle.

It rejects returned reasoning as the vendors do, and responds only to requests that a fixture matches.
"""

import json
import os
import signal
import subprocess
import urllib.request

from harness import DEADLINE_S, free_port, require, require_equal, wait_until
from stdio_client import StdioClient

WIRES = ["responses", "chat", "messages", "gemini"]
#: Models for which aimock enables reasoning, by wire; it decides by the name.
_MODELS = {
    "responses": "o3",
    "chat": "deepseek-reasoner",
    "messages": "claude-sonnet-4-6",
    "gemini": "gemini-3-pro-preview",
}
_FILE, _CONTENT = "loom.txt", "warp"
_PATCH = f"*** Begin Patch\n*** Add File: {_FILE}\n+{_CONTENT}\n*** End Patch\n"
_THOUGHT, _SAID = "A file, then.", "It is written."
_FIXTURES = [
    {
        "match": {"userMessage": "write it", "hasToolResult": False},
        "response": {
            "reasoning": _THOUGHT,
            "content": "I write.",
            "toolCalls": [
                {"name": "apply_patch", "arguments": json.dumps({"input": _PATCH})},
                {"name": "exec_command", "arguments": json.dumps({"cmd": "echo woven"})},
            ],
        },
    },
    {"match": {"hasToolResult": True}, "response": {"content": _SAID}},
    {
        "match": {"userMessage": "hurry", "sequenceIndex": 0},
        "response": {"error": {"message": "Too many requests."}, "status": 429, "retryAfter": 0},
    },
    {"match": {"userMessage": "hurry"}, "response": {"content": "Done. 🧵"}},
]


class AiMock:
    """A process with these fixtures. `letters`: the letters per chunk."""

    def __init__(self, bench, fixtures, letters=5):
        file = bench.folder / "fixtures.json"
        file.write_text(json.dumps({"fixtures": fixtures}))
        self._log = bench.folder / "aimock.log"
        bench.evidence("aimock's log", lambda: self._log.read_text().splitlines()[-20:])
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [bench.parts.aimock, "-p", str(port), "-f", file, "--strict", "-c", str(letters)],
                env=bench.environment(),
                cwd=bench.server_folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # This Node is a wrapper that starts another process.
                start_new_session=True,
            )
        bench.afterwards(self._end)
        require(wait_until(self._listens), "aimock does not listen")

    def base_url(self, wire):
        return f"{self.address}/{'v1beta' if wire == 'gemini' else 'v1'}"

    def journal(self):
        """Returns its requests and responses: bodies and statuses."""
        with urllib.request.urlopen(f"{self.address}/v1/_requests", timeout=DEADLINE_S) as answer:
            return json.load(answer)

    def _listens(self):
        require(self._process.poll() is None, "aimock ended at once")
        try:
            with urllib.request.urlopen(f"{self.address}/health", timeout=DEADLINE_S):
                return True
        except OSError:
            return False

    def _end(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _turns(wire):
    def check(bench):
        vendor = AiMock(bench, _FIXTURES)
        settings = {
            "model": json.dumps(_MODELS[wire]),
            "model_provider": '"aimock"',
            "model_providers.aimock.base_url": json.dumps(vendor.base_url(wire)),
            "model_providers.aimock.wire_api": json.dumps(wire),
        }
        client = StdioClient(bench, settings)
        turn = client.turn("write it", effort="medium")
        require_equal("how it ended", [turn.status, turn.error], ["completed", None])
        kinds = ["userMessage", "reasoning", "agentMessage", "fileChange", "commandExecution"]
        # On Responses aimock sends reasoning even without a fixture for it.
        again = ["reasoning"] if wire == "responses" else []
        require_equal("the items", turn.kinds, [*kinds, *again, "agentMessage"])
        thinking = turn.items[1]
        thought = "".join(thinking["summary"] + thinking["content"])
        require_equal("its reasoning", thought, _THOUGHT)
        require_equal("its message", turn.text, _SAID)
        require_equal("the file", (bench.workspace / _FILE).read_text(), f"{_CONTENT}\n")
        # Its reasoning and its calls come back to it.
        turn = client.turn("hurry", effort="medium")
        found = [turn.status, turn.retries, turn.text]
        require_equal("its continuation", found, ["completed", 1, "Done. 🧵"])
        client.leave()
        statuses = [it["response"]["status"] for it in vendor.journal()]
        require_equal("aimock's responses", statuses, [200, 200, 429, 200])

    return check


CHECKS = {f"aimock-{wire}": _turns(wire) for wire in WIRES}
