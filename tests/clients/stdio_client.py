"""A small client on stdio, for checks that do not test the client."""

import json
import subprocess
import threading
from pathlib import Path

from harness import DEADLINE_S, Failure, require, require_equal, require_no_panic

#: Timeout of a turn with commands on a busy machine.
_PATIENCE_S = 2 * DEADLINE_S
_FREE = {"approvalPolicy": "never", "sandboxPolicy": {"type": "dangerFullAccess"}}


class Turn:
    """One turn, from its notifications."""

    def __init__(self):
        self.items = []
        self.retries = 0
        self.status = None
        self.error = None

    def hear(self, message):
        """Returns whether it has ended."""
        params = message.get("params", {})
        match message.get("method"):
            case "item/completed":
                self.items.append(params["item"])
            case "error" if params["willRetry"]:
                self.retries += 1
            case "turn/completed":
                self.status = params["turn"]["status"]
                self.error = params["turn"]["error"]
                return True
        return False

    @property
    def kinds(self):
        return [it["type"] for it in self.items]

    @property
    def text(self):
        """Returns the model's last message."""
        *_, last = (it["text"] for it in self.items if it["type"] == "agentMessage")
        return last


class Client:
    """A client over the transport of a subclass, with one thread in which everything is allowed."""

    #: Settings of each turn.
    settings_of_turns = _FREE
    capabilities = None

    def __init__(self, cwd):
        self._asked = 0
        #: All messages of the server.
        self.lines = []
        about = {"name": "check", "version": "1"}
        self.call("initialize", {"clientInfo": about, "capabilities": self.capabilities})
        started = self.call("thread/start", {"cwd": str(cwd)})
        self.thread = started["thread"]["id"]

    def call(self, method, params):
        """Returns the result."""
        return self._response(method, params, "result")

    def error(self, method, params):
        """Returns the error of a request that fails."""
        return self._response(method, params, "error")

    def _response(self, method, params, member):
        number = self._send(method, params)
        for message in self._messages():
            if message.get("id") == number:
                require(member in message, f"the response to {method} was {message}")
                return message[member]
        raise Failure(f"the server ended before its response to {method}")

    def turn(self, text, **more):
        """Starts a turn, and reads it to its end."""
        said = [{"type": "text", "text": text}, *more.pop("images", [])]
        asked = {"threadId": self.thread, "input": said, **self.settings_of_turns, **more}
        return self._turn("turn/start", asked)

    def compact(self):
        return self._turn("thread/compact/start", {"threadId": self.thread})

    def change_provider(self, name):
        """Resumes the thread, which has no other subscriber, with another provider."""
        self.call("thread/unsubscribe", {"threadId": self.thread})
        self.call("thread/resume", {"threadId": self.thread, "modelProvider": name})

    def _turn(self, method, params):
        number = self._send(method, params)
        turn = Turn()
        for message in self._messages():
            if message.get("id") == number:
                require("result" in message, f"the response to {method} was {message}")
            if turn.hear(message):
                return turn
        raise Failure("the server ended before the turn did")

    def _send(self, method, params):
        self._asked += 1
        self._write({"id": self._asked, "method": method, "params": params})
        return self._asked

    def _messages(self):
        while line := self._read():
            self.lines.append(line)
            yield json.loads(line)


class StdioClient(Client):
    """A client with its own server process."""

    def __init__(self, bench, settings=None, cwd=None, arguments=(), **environment):
        overrides = (settings or {}).items()
        words = [word for key, value in overrides for word in ("-c", f"{key}={value}")]
        self._log = bench.folder / "stdio.stderr"
        bench.evidence("the server's stderr", lambda: self.stderr().splitlines()[-20:])
        with open(self._log, "wb") as stderr:
            self._server = subprocess.Popen(
                [bench.raddle, "app-server", *arguments, *words],
                env=bench.environment(**environment),
                cwd=bench.server_folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        # Reading blocks, so the server is killed after the timeout.
        self._watch = threading.Timer(_PATIENCE_S, self._server.kill)
        self._watch.start()
        bench.afterwards(self._end)
        super().__init__(cwd or bench.workspace)

    def leave(self):
        """Closes stdin, which ends the server."""
        self._server.stdin.close()
        require_equal("the server's exit code", self._server.wait(timeout=DEADLINE_S), 0)
        require_no_panic(self.stderr())

    def kill(self):
        """Kills the server without warning."""
        self._server.kill()
        self._server.wait()

    def peak_memory_kib(self):
        """Returns the largest resident size of the server so far."""
        return self._status("VmHWM:")

    def memory_kib(self):
        """Returns the resident size of the server."""
        return self._status("VmRSS:")

    def descriptors(self):
        """Returns the number of the server's open descriptors."""
        return len(list(Path(f"/proc/{self._server.pid}/fd").iterdir()))

    def _status(self, key):
        lines = Path(f"/proc/{self._server.pid}/status").read_text().splitlines()
        (value,) = (it.split()[1] for it in lines if it.startswith(key))
        return int(value)

    def stderr(self):
        return self._log.read_text(errors="replace")

    def _write(self, message):
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()

    def _read(self):
        return self._server.stdout.readline()

    def _end(self):
        self._watch.cancel()
        if self._server.poll() is None:
            self._server.kill()
        self._server.wait()
        for pipe in (self._server.stdin, self._server.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass
