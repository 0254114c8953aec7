"""A small client on stdio, for checks in which the client is not what is looked at."""

import json
import subprocess
import threading

from harness import DEADLINE_S, Failure, require, require_equal, require_no_panic

#: A turn on a busy machine, with commands in it.
_PATIENCE_S = 2 * DEADLINE_S
_FREE = {"approvalPolicy": "never", "sandboxPolicy": {"type": "dangerFullAccess"}}


class Turn:
    """One turn, as it was told."""

    def __init__(self):
        self.items = []
        self.retries = 0
        self.status = None
        self.error = None

    def hear(self, message):
        """Gives whether it has ended."""
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
        """What the model said last."""
        *_, last = (it["text"] for it in self.items if it["type"] == "agentMessage")
        return last


class Client:
    """Speaks on what a subclass writes to and reads from, and has one thread in which everything is allowed."""

    def __init__(self, cwd):
        self._asked = 0
        #: All that the server said.
        self.lines = []
        self.call("initialize", {"clientInfo": {"name": "check", "version": "1"}})
        started = self.call("thread/start", {"cwd": str(cwd)})
        self.thread = started["thread"]["id"]

    def call(self, method, params):
        """Gives the result."""
        number = self._send(method, params)
        for message in self._messages():
            if message.get("id") == number:
                require("result" in message, f"{method} was answered with {message}")
                return message["result"]
        raise Failure(f"the server ended before {method} was answered")

    def turn(self, text, **more):
        """Says something, and hears the turn to its end."""
        said = [{"type": "text", "text": text}, *more.pop("images", [])]
        asked = {"threadId": self.thread, "input": said, **_FREE, **more}
        return self._turn("turn/start", asked)

    def compact(self):
        return self._turn("thread/compact/start", {"threadId": self.thread})

    def change_provider(self, name):
        """Comes back to the thread, which nobody looks at meanwhile, with another provider."""
        self.call("thread/unsubscribe", {"threadId": self.thread})
        self.call("thread/resume", {"threadId": self.thread, "modelProvider": name})

    def _turn(self, method, params):
        number = self._send(method, params)
        turn = Turn()
        for message in self._messages():
            if message.get("id") == number:
                require("result" in message, f"{method} was answered with {message}")
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
    """With a server of its own."""

    def __init__(self, bench, settings=None, **environment):
        overrides = (settings or {}).items()
        words = [word for key, value in overrides for word in ("-c", f"{key}={value}")]
        self._log = bench.folder / "stdio.stderr"
        bench.evidence("the server's stderr", lambda: self.stderr().splitlines()[-20:])
        with open(self._log, "wb") as stderr:
            self._server = subprocess.Popen(
                [bench.raddle, "app-server", *words],
                env=bench.environment(**environment),
                cwd=bench.server_folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        # Reading waits, so whoever is read ends when it takes too long.
        self._watch = threading.Timer(_PATIENCE_S, self._server.kill)
        self._watch.start()
        bench.afterwards(self._end)
        super().__init__(bench.workspace)

    def leave(self):
        """The server ends by itself when nobody talks to it."""
        self._server.stdin.close()
        require_equal("the server's exit code", self._server.wait(timeout=DEADLINE_S), 0)
        require_no_panic(self.stderr())

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
