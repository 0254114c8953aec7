"""The first five minutes of README.md, done to the letter by someone who has just come."""

import re
import shlex
import signal
import subprocess
from pathlib import Path

from harness import DEADLINE_S, Failure, require, require_equal, run_client, wait_until
from terminal import Terminal
from tui_client import EMPTY_PROMPT

_README = Path(__file__).resolve().parents[2] / "README.md"
_PROMPT, _ANSWER = "hello", "You said: hello"
#: What is installed, by the words it is installed with, and the part that stands for it here.
_INSTALLS = {
    "cargo build --release -p raddle": None,
    "npm install -g @openai/codex@VERSION": "codex",
    "python3 -m venv .venv && .venv/bin/pip install openai-codex==VERSION": "openai-codex",
}


def five_minutes(bench):
    reader = Reader(bench)
    for kind, text in _blocks(_README.read_text()):
        reader.follow(kind, text)
    reader.stop()
    # Nothing was passed over, and nothing of it is gone.
    require_equal(
        "what the page has one do",
        reader.done,
        [
            *("install", "sh", "mock", "app-server"),
            *("install", "codex", "install", "python", "hello.py", "text"),
        ],
    )


class Reader:
    """Someone at the top of the repository, with a home of their own and nothing set."""

    def __init__(self, bench):
        self.done = []
        self._servers = {}
        self._bench = bench
        self._printed = None
        programs = bench.folder / "bin"
        programs.mkdir()
        # A short name: the path of a socket below it may have 107 bytes.
        home = bench.folder / "h"
        home.mkdir()
        (programs / "codex").symlink_to(bench.parts.codex)
        self._environment = {
            "PATH": f"{programs}:{bench.environment()['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
        }
        top = bench.workspace
        (top / "target/release").mkdir(parents=True)
        (top / "target/release/raddle").symlink_to(bench.raddle)
        (top / ".venv").symlink_to(bench.parts.sdk_python.parents[1])

    def follow(self, kind, text):
        """Does what a block says."""
        words = shlex.split(text)
        match (kind, words):
            case ("sh", ["cargo" | "npm" | "python3", *_]):
                self.done.append("install")
                _require_pinned(self._bench, text.strip())
            case ("sh", ["target/release/raddle", "mock"]):
                self.done.append("mock")
                self._serve("mock", text, r"http://127\.0\.0\.1:4010/v1\n")
            case ("sh", ["target/release/raddle", "app-server", *_]):
                self.done.append("app-server")
                self._serve("app-server", text, r"raddle: listening on unix://\S+\n")
            case ("sh", ["codex", *_]):
                self.done.append("codex")
                self._talk(text)
            case ("sh", [".venv/bin/python", program]):
                self.done.append(program)
                self._printed = self._run(text)
            case ("sh", _):
                self.done.append("sh")
                self._run(text)
            case ("python", _):
                self.done.append("python")
                lines = [line for line in text.splitlines() if line]
                require(len(lines) <= 10, f"it has {len(lines)} lines, not ten")
                (self._bench.workspace / "hello.py").write_text(text)
            case ("text", _):
                self.done.append("text")
                require_equal("what the program printed", self._printed, text)
            case _:
                raise Failure(f"it is not known what to do with a block of {kind!r}")

    def stop(self):
        """Ends what was started, and sees that it ends well."""
        for name, process in self._servers.items():
            process.send_signal(signal.SIGINT)
            require_equal(f"how {name} ended", process.wait(timeout=DEADLINE_S), 0)

    def _run(self, text):
        code, out, _ = run_client(self._bench, ["sh", "-c", text], self._environment)
        require_equal("the exit code", code, 0)
        return out

    def _serve(self, name, text, ready):
        """Starts what goes on until it is ended, and waits until it can be used."""
        log = self._bench.folder / f"{name}.log"
        self._bench.evidence(f"what {name} says", lambda: log.read_text().splitlines()[-40:])
        with open(log, "wb") as out:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {text}"],
                env=self._environment,
                cwd=self._bench.workspace,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self._servers[name] = process
        self._bench.afterwards(process.wait)
        self._bench.afterwards(process.kill)
        listens = wait_until(lambda: re.search(ready, log.read_text()) or process.poll() is not None)
        require(listens and process.poll() is None, f"{name} does not listen")

    def _talk(self, text):
        terminal = Terminal(self._bench, ["sh", "-c", text], self._environment)
        terminal.wait_for(EMPTY_PROMPT)
        # The line can be typed before there is a thread; this is shown when there is one.
        terminal.wait_for("mock default")
        terminal.enter(_PROMPT)
        terminal.wait_for(f"• {_ANSWER}")
        terminal.wait_for(EMPTY_PROMPT)
        terminal.enter("/quit")
        require_equal("the client's exit code", terminal.wait_for_end(), 0)


def _blocks(page):
    """The blocks of the section, each with its kind."""
    section = re.search(r"^## Five minutes\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    require(section, "README.md has no five minutes")
    for said in (_PROMPT, _ANSWER):
        require(f"`{said}`" in section.group(1), f"it does not mention {said!r}")
    return re.findall(r"^```(\w+)\n(.*?)^```$", section.group(1), re.MULTILINE | re.DOTALL)


def _require_pinned(bench, line):
    """It installs what these checks are run with."""
    for install, part in _INSTALLS.items():
        before, _, _ = install.partition("VERSION")
        if not line.startswith(before):
            continue
        version = line.removeprefix(before)
        expected = bench.parts.version(part) if part else ""
        require_equal(f"the version in {line!r}", version, expected)
        return
    raise Failure(f"{line!r} installs what these checks do not know")


CHECKS = {
    "readme": five_minutes,
}
