"""A llama.cpp server as the model: real tokens of a real engine, the same each time."""

import json
import re
import subprocess
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness import DEADLINE_S, free_port, require, run_client, wait_until

#: The model's response to every input, after it has written this file if it has tools.
ANSWER = "All checks passed and the change is ready."
FILE, CONTENT = "echo raddle", "echo raddle"
#: Its number of tokens, including the end token.
ANSWER_TOKENS = 10
MODEL = "bigram"

_FOLDER = Path(__file__).with_name("llama")


class LlamaModel:
    """A separate process with a generated model. A proxy in front of it records the requests.

    `wire`: its wire, as in the configuration. `port`: its port, or any.
    """

    def __init__(self, bench, wire="responses", port=0):
        self._wire = wire
        file = bench.folder / "bigram.gguf"
        python = bench.parts.llama_python
        make = [python, "-B", _FOLDER / "make_model.py", file, _FOLDER / "template.jinja"]
        code, _, err = run_client(bench, make, bench.environment())
        require(code == 0, f"the model was not generated: {err}")
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
        require(found, "llama.cpp did not print its address")
        self.address = found.group(1)
        self.asked = []
        self._keeper = ThreadingHTTPServer(("127.0.0.1", port), _keeper(self.address, self.asked))
        bench.serve(self._keeper)

    @property
    def settings(self):
        """Returns the settings of a server that uses it: keys, and their values in TOML."""
        return {
            "model": f'"{MODEL}"',
            "model_provider": '"llama"',
            "model_providers.llama.base_url": f'"http://127.0.0.1:{self._keeper.server_port}/v1"',
            "model_providers.llama.wire_api": f'"{self._wire}"',
        }

    def told(self):
        """Returns the only call in the last request: its tool, its arguments and its result."""
        return _TOLD[self._wire](self.asked[-1])

    def configure(self, bench):
        """Writes the settings into the server's home."""
        lines = [f"{key} = {value}\n" for key, value in self.settings.items()]
        (bench.server_home / "config.toml").write_text("".join(lines))

    def generated(self):
        """Returns the number of generated tokens, by its own count."""
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=DEADLINE_S) as answer:
            page = answer.read().decode()
        found = re.search(r"^llamacpp:tokens_predicted_total (\d+)", page, re.MULTILINE)
        require(found, f"llama.cpp counts no tokens: {page}")
        return int(found.group(1))

    def require_generated(self, least):
        found = wait_until(lambda: self.generated() >= least)
        require(found, f"llama.cpp generated {self.generated()} tokens, not {least}")

    def _end(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def _told_on_responses(asked):
    call, output = (it for it in asked["input"] if it["type"] != "message")
    require(output["call_id"] == call["call_id"], f"the output belongs to another call: {output}")
    return call["name"], json.loads(call["arguments"]), output["output"]


def _told_on_chat(asked):
    (calls,) = (it["tool_calls"] for it in asked["messages"] if it.get("tool_calls"))
    (output,) = (it for it in asked["messages"] if it["role"] == "tool")
    (call,) = calls
    require(output["tool_call_id"] == call["id"], f"the output belongs to another call: {output}")
    function = call["function"]
    return function["name"], json.loads(function["arguments"]), output["content"]


def _told_on_messages(asked):
    blocks = [block for message in asked["messages"] for block in message["content"]]
    (call,) = (it for it in blocks if it["type"] == "tool_use")
    (output,) = (it for it in blocks if it["type"] == "tool_result")
    require(output["tool_use_id"] == call["id"], f"the output belongs to another call: {output}")
    return call["name"], call["input"], "".join(it["text"] for it in output["content"])


_TOLD = {
    "responses": _told_on_responses,
    "chat": _told_on_chat,
    "messages": _told_on_messages,
}


def _keeper(address, asked):
    """Forwards requests to llama.cpp, and records them."""

    class Handler(BaseHTTPRequestHandler):
        # The library calls this name.
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
            """Logs nothing: llama.cpp has a log."""

    return Handler
