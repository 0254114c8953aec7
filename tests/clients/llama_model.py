"""A llama.cpp server as the model: real tokens out of a real engine, the same each time."""

import json
import re
import subprocess
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness import DEADLINE_S, free_port, require, run_client, wait_until

#: What the model says to everything, once it has written this file if it can.
ANSWER = "All checks passed and the change is ready."
FILE, CONTENT = "echo raddle", "echo raddle"
#: Its tokens, the last of which ends it.
ANSWER_TOKENS = 10
MODEL = "bigram"

_FOLDER = Path(__file__).with_name("llama")


class LlamaModel:
    """A process of its own, with a model that is made for it. What it is asked is kept on the way.

    `wire`: how it is spoken to, as the configuration has it. `port`: where, or anywhere.
    """

    def __init__(self, bench, wire="responses", port=0):
        self._wire = wire
        file = bench.folder / "bigram.gguf"
        python = bench.parts.llama_python
        make = [python, "-B", _FOLDER / "make_model.py", file, _FOLDER / "template.jinja"]
        code, _, err = run_client(bench, make, bench.environment())
        require(code == 0, f"the model was not made: {err}")
        self._log = bench.folder / "llama.log"
        bench.evidence("llama.cpp's log", lambda: self._log.read_text().splitlines()[-20:])
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [python, "-B", _FOLDER / "serve.py", file, str(free_port())],
                env=bench.environment(),
                cwd=bench.server_folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        bench.afterwards(self._end)
        found = re.fullmatch(r"(http://\S+)\n", self._process.stdout.readline())
        require(found, "llama.cpp did not say where it listens")
        self.address = found.group(1)
        self.asked = []
        self._keeper = ThreadingHTTPServer(("127.0.0.1", port), _keeper(self.address, self.asked))
        bench.serve(self._keeper)

    @property
    def settings(self):
        """What a server must be told to use it: keys, and their values in TOML."""
        return {
            "model": f'"{MODEL}"',
            "model_provider": '"llama"',
            "model_providers.llama.base_url": f'"http://127.0.0.1:{self._keeper.server_port}/v1"',
            "model_providers.llama.wire_api": f'"{self._wire}"',
        }

    def told(self):
        """Of the one call in the last thing it was asked: its tool, its arguments, and what came of it."""
        return _TOLD[self._wire](self.asked[-1])

    def configure(self, bench):
        """Writes the settings into the server's home."""
        lines = [f"{key} = {value}\n" for key, value in self.settings.items()]
        (bench.server_home / "config.toml").write_text("".join(lines))

    def generated(self):
        """How many tokens it has made, by its own count."""
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=DEADLINE_S) as answer:
            page = answer.read().decode()
        found = re.search(r"^llamacpp:tokens_predicted_total (\d+)", page, re.MULTILINE)
        require(found, f"llama.cpp counts no tokens: {page}")
        return int(found.group(1))

    def require_generated(self, least):
        found = wait_until(lambda: self.generated() >= least)
        require(found, f"llama.cpp made {self.generated()} tokens, not {least}")

    def _end(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def _told_on_responses(asked):
    call, output = (it for it in asked["input"] if it["type"] != "message")
    require(output["call_id"] == call["call_id"], f"the output is of another call: {output}")
    return call["name"], json.loads(call["arguments"]), output["output"]


def _told_on_chat(asked):
    (calls,) = (it["tool_calls"] for it in asked["messages"] if it.get("tool_calls"))
    (output,) = (it for it in asked["messages"] if it["role"] == "tool")
    (call,) = calls
    require(output["tool_call_id"] == call["id"], f"the output is of another call: {output}")
    function = call["function"]
    return function["name"], json.loads(function["arguments"]), output["content"]


def _told_on_messages(asked):
    blocks = [block for message in asked["messages"] for block in message["content"]]
    (call,) = (it for it in blocks if it["type"] == "tool_use")
    (output,) = (it for it in blocks if it["type"] == "tool_result")
    require(output["tool_use_id"] == call["id"], f"the output is of another call: {output}")
    return call["name"], call["input"], "".join(it["text"] for it in output["content"])


_TOLD = {
    "responses": _told_on_responses,
    "chat": _told_on_chat,
    "messages": _told_on_messages,
}


def _keeper(address, asked):
    """Hands requests on to llama.cpp, and keeps what was asked."""

    class Handler(BaseHTTPRequestHandler):
        # The library looks for this name.
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append(json.loads(body))
            kind = {"content-type": self.headers["content-type"]}
            request = urllib.request.Request(f"{address}{self.path}", data=body, headers=kind)
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers["content-type"])
                self.end_headers()
                while piece := answer.read1():
                    self.wfile.write(piece)
                    self.wfile.flush()

        def log_message(self, *_):
            """Nothing: llama.cpp has a log."""

    return Handler
