"""docs/plugins.md, followed on a terminal by a user who approves and declines as the page shows, and compared with it."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from pathlib import Path

from harness import DEADLINE_S, Failure, free_port, require, require_equal, run_client, wait_until
from page_example import DOCS, environment_of, pattern_of

_PAGE = (DOCS / "plugins.md").read_text()
_PORT = "4020"
_TOKEN = "loom"
#: Wide enough that no line of the output is wrapped.
_COLUMNS = 400
#: The end of a question on the terminal. The page shows the answer behind it.
_PROMPT = re.compile(r"the number of your answer: |\? \[y/n\] ")
_FIRST = {"number": 1, "title": "The loom jams on wet days"}
_SECOND = {"number": 2, "title": "Oil the loom"}
_PERMISSION = "secrets:TRACKER_TOKEN"


def page(bench):
    """Follows the whole page. The tracker says what the plugin did."""
    reader = Reader(bench)
    requests = []
    for kind, text in reader.blocks():
        if kind != "console":
            reader.follow(kind, text)
            continue
        for command, output in _steps(text):
            reader.run(command, output)
            if reader.tracker:
                requests.append((_title(command, output), reader.tracker.new_requests()))
    read, created = ("GET", 200), ("POST", 201)
    expected = [
        ("test", [read]),
        ("add", []),
        ("list_issues", [read]),
        ("create_issue, n", []),
        ("create_issue, y", [created]),
        ("revoke", []),
    ]
    require_equal("the requests to the tracker after each command", requests, expected)
    require_equal("the issues", reader.tracker.issues(), [_FIRST, _SECOND])
    # The page ends without the approval.
    code, out, _ = run_client(bench, ["raddle", "plugin", "list"], reader.environment)
    require_equal("the exit code of the list", code, 0)
    require("local.tracker" in out and _PERMISSION not in out, f"the list is {out!r}")
    logs = ["raddle", "plugin", "logs", "local.tracker"]
    code, out, _ = run_client(bench, logs, reader.environment)
    require_equal("the exit code of the log", code, 0)
    require("host/secret TRACKER_TOKEN: done" in out, f"the log is {out!r}")
    require(_TOKEN not in out, f"the log has the token: {out!r}")


def calls_at_once(bench):
    """The plugin of the page gives each response to its call, and a question delays no other call."""
    reader = Reader(bench)
    for kind, text in reader.blocks():
        if kind != "console":
            reader.follow(kind, text)
    program = reader.home / "plugins/tracker/main.py"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, program], env=bench.environment(), text=True, **pipes)
    # Reading blocks, so a program that waits for ever is killed.
    watch = threading.Timer(DEADLINE_S, process.kill)
    watch.start()

    def send(**message):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()

    def read():
        line = process.stdout.readline()
        require(line, "the program ended")
        return json.loads(line)

    try:
        for name in ("one", "two"):
            send(id=name, method="issues/create", params={"title": name})
        questions = {it["params"]["call_id"]: it for it in (read(), read())}
        for name in ("one", "two"):
            expected = ("host/request_approval", {"permission": _PERMISSION, "call_id": name})
            question = questions[name]
            require_equal("the question", (question["method"], question["params"]), expected)
        send(id="three", method="issues/list", params={})
        require_equal("the list beside questions", read()["result"], {"issues": [_FIRST]})
        send(id=questions["two"]["id"], result={"approved": True})
        secret = read()
        wanted = ("host/secret", {"name": "TRACKER_TOKEN", "call_id": "two"})
        require_equal("the call after the approval", (secret["method"], secret["params"]), wanted)
        send(id=questions["one"]["id"], result={"approved": False})
        declined = read()
        require_equal("the call that was declined", declined["id"], "one")
        require("No issue was created" in declined["error"]["message"], f"it is {declined}")
        send(id=secret["id"], result={"value": _TOKEN})
        created = {"number": 2, "title": "two"}
        expected = {"jsonrpc": "2.0", "id": "two", "result": {"created": created}}
        require_equal("the call that was approved", read(), expected)
        require_equal("the issues", reader.tracker.issues(), [_FIRST, created])
        # A wrong token is an error of the call.
        send(id="four", method="issues/create", params={"title": "four"})
        send(id=read()["id"], result={"approved": True})
        send(id=read()["id"], result={"value": "another"})
        require("401" in read()["error"]["message"], "the wrong token was no error")
        send(id="five", method="plugin/shutdown", params={})
        require_equal("the shutdown", read()["result"], {"ok": True})
        require_equal("the exit code", process.wait(timeout=DEADLINE_S), 0)
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


class Reader:
    """A user with a home of their own, who follows the page with another port for the tracker."""

    def __init__(self, bench):
        self.home = bench.client_home
        self.tracker = None
        self.environment = environment_of(bench)
        # The page names files in the home of the user.
        del self.environment["RADDLE_HOME"]
        self._bench = bench
        self._port = str(free_port())
        self._path = None

    def blocks(self):
        text = _PAGE.replace(_PORT, self._port)
        return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    def follow(self, kind, text):
        """Writes a file, or a further part of the last one, or starts the tracker."""
        if kind == "sh":
            # There is nothing else that runs in a second terminal.
            require_equal("the start of the tracker", text, f"TRACKER_TOKEN={_TOKEN} python3 ~/tracker.py\n")
            self.tracker = Tracker(self._bench, self.environment, text, self._port)
            return
        require(kind in ("toml", "python"), f"unknown kind of block {kind!r}: {text}")
        if named := re.match(r"# ~/(\S+)\n", text):
            self._path = self.home / named.group(1)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(text)
        else:
            require_equal("the suffix of a further part", self._path.suffix, ".py")
            with self._path.open("a") as file:
                file.write(f"\n\n{text}")

    def run(self, command, expected):
        """Runs a command on a terminal, types the answers of the page, and compares the output."""
        terminal = PseudoTerminal(self._bench, ["sh", "-c", command], self.environment)
        for line in expected.splitlines():
            if prompt := _PROMPT.search(line):
                terminal.wait_for(prompt.group())
                terminal.enter(line[prompt.end() :])
        code, out = terminal.wait_for_end()
        require_equal(f"the exit code of {command!r} ({out!r})", code, 0)
        if not re.fullmatch(pattern_of(expected), out):
            raise Failure(f"{command!r} prints {out!r}, not {expected!r}")


class Tracker:
    """The tracker of the page, in a process of its own."""

    def __init__(self, bench, environment, command, port):
        self._address = f"http://127.0.0.1:{port}/issues"
        self._log = bench.folder / "tracker.log"
        self._read = 0
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(["sh", "-c", f"exec env {command}"], env=environment, stderr=log)
        bench.evidence("the log of the tracker", lambda: self._log.read_text().splitlines())
        bench.afterwards(self._end)
        require(wait_until(self._is_ready), "the tracker did not start")
        self.new_requests()

    def new_requests(self):
        """Returns the method and the status of the requests since the last call."""
        lines = self._log.read_text().splitlines()
        new, self._read = lines[self._read :], len(lines)
        found = [re.search(r'"(\w+) /issues HTTP/1\.1" (\d+) ', line) for line in new]
        require(all(found), f"the tracker logged {new}")
        return [(it.group(1), int(it.group(2))) for it in found]

    def issues(self):
        with urllib.request.urlopen(self._address, timeout=DEADLINE_S) as response:
            return json.load(response)

    def _is_ready(self):
        require(self._process.poll() is None, "the tracker ended")
        try:
            return bool(self.issues())
        except OSError:
            return False

    def _end(self):
        self._process.kill()
        self._process.wait()


class PseudoTerminal:
    """A program on a terminal, whose whole output is kept."""

    def __init__(self, bench, command, environment):
        self._output = b""
        #: The number of characters of the output before the last answer.
        self._answered = 0
        self._terminal, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 60, _COLUMNS, 0, 0))
        files = {"stdin": other, "stdout": other, "stderr": other}
        environment = {**environment, "TERM": "xterm-256color"}
        self._process = subprocess.Popen(
            command, env=environment, cwd=bench.workspace, start_new_session=True, **files
        )
        os.close(other)
        bench.evidence("the output on the terminal", lambda: self.output().splitlines())
        bench.afterwards(self._end)

    def output(self):
        """Returns the output as text, without colours and lines that were erased."""
        text = self._output.decode(errors="ignore").replace("\r\n", "\n")
        text = re.sub(r"^.*\r\x1b\[2K", "", text, flags=re.MULTILINE)
        return re.sub(r"\x1b\[[0-9;]*m", "", text)

    def wait_for(self, text):
        """Waits for a text after the last answer."""
        end = time.monotonic() + DEADLINE_S
        while text not in self.output()[self._answered :]:
            require(self._read(end), f"the program did not print {text!r} but {self.output()!r}")

    def enter(self, line):
        self._answered = len(self.output())
        os.write(self._terminal, f"{line}\n".encode())

    def wait_for_end(self):
        """Returns the exit code and the output."""
        end = time.monotonic() + DEADLINE_S
        while self._read(end):
            pass
        try:
            code = self._process.wait(timeout=max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failure(f"the program did not end; it printed {self.output()!r}") from None
        return code, self.output()

    def _read(self, end):
        """Reads more output. Returns false at its end and after the deadline."""
        ready, _, _ = select.select([self._terminal], [], [], max(0, end - time.monotonic()))
        if not ready:
            return False
        try:
            piece = os.read(self._terminal, 1 << 16)
        except OSError:
            # Linux reports the end of a terminal so.
            return False
        self._output += piece
        return bool(piece)

    def _end(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._terminal)


def _steps(block):
    """Returns the commands of a block with their output."""
    steps = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [step.split("\n", 1) for step in steps]


def _title(command, output):
    """Returns the part of a command, and of its answer, that tells it from the others."""
    if call := re.search(r"plugin__local_tracker__(\w+)", command):
        answers = [line[it.end() :] for line in output.splitlines() if (it := _PROMPT.search(line))]
        return ", ".join([call.group(1), *answers])
    return command.split()[2]


CHECKS = {
    "plugins-page": page,
    "plugin-calls-at-once": calls_at_once,
}
