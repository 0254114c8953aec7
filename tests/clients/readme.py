"""`## Embed it` of README.md, followed to the letter by a new user with the mock."""

import re
import shlex
from pathlib import Path

from harness import Failure, require, require_equal, run_client
from mock_model import MockModel
from terminal import Terminal
from tui_client import EMPTY_PROMPT

_README = Path(__file__).resolve().parents[2] / "README.md"
_PROMPT, _ANSWER = "hello", "You said: hello"
_LINES_MAX = 5
#: Install commands, and the parts that replace them here.
_INSTALLS = {
    "npm install -g @openai/codex@VERSION": "codex",
    "python3 -m venv .venv && .venv/bin/pip install openai-codex==VERSION": "openai-codex",
}


def embed_it(bench):
    reader = Reader(bench)
    for kind, text in _blocks(_README.read_text()):
        reader.follow(kind, text)
    # Every block was run, and none is missing.
    require_equal(
        "the steps of the page",
        reader.done,
        [*("install", "python", "hello.py"), *("start", "install", "codex", "stop")],
    )


class Reader:
    """A user with an own folder, with Raddle and with the mock as the model."""

    def __init__(self, bench):
        self.done = []
        self._bench = bench
        programs = bench.folder / "bin"
        programs.mkdir()
        # A short name: the path of a socket in it has at most 107 bytes.
        home = bench.folder / "h"
        settings = home / ".config/raddle"
        settings.mkdir(parents=True)
        model = MockModel(bench, [])
        lines = [f"{key} = {value}\n" for key, value in model.settings.items()]
        (settings / "config.toml").write_text("".join(lines))
        (programs / "codex").symlink_to(bench.parts.codex)
        (programs / "raddle").symlink_to(bench.raddle)
        self._environment = {
            "PATH": f"{programs}:{bench.environment()['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "RADDLE_DUMPABLE": "1",
        }
        (bench.workspace / ".venv").symlink_to(bench.parts.sdk_python.parents[1])

    def follow(self, kind, text):
        """Runs a block."""
        match (kind, shlex.split(text)):
            case ("sh", ["npm" | "python3", *_]):
                self.done.append("install")
                _require_pinned(self._bench, text.strip())
            case ("sh", ["raddle", "daemon", word]):
                self.done.append(word)
                self._run(text)
                if word == "start":
                    self._bench.afterwards(lambda: self._run("raddle daemon stop --now"))
            case ("sh", ["codex", *_]):
                self.done.append("codex")
                self._talk(text)
            case ("sh", [".venv/bin/python", program]):
                self.done.append(program)
                out = self._run(text)
                require(out.startswith("You said: Say hello.\n"), f"it printed {out!r}")
            case ("python", _):
                self.done.append("python")
                lines = [line for line in text.splitlines() if line]
                require(len(lines) <= _LINES_MAX, f"it has {len(lines)} lines")
                (self._bench.workspace / "hello.py").write_text(text)
            case _:
                raise Failure(f"unknown kind of block {kind!r}: {text}")

    def _run(self, text):
        code, out, _ = run_client(self._bench, ["sh", "-c", text], self._environment)
        require_equal("the exit code", code, 0)
        return out

    def _talk(self, text):
        terminal = Terminal(self._bench, ["sh", "-c", text], self._environment)
        terminal.wait_for(EMPTY_PROMPT)
        # The client accepts input before the thread starts; it shows this afterwards.
        terminal.wait_for("mock default")
        terminal.enter(_PROMPT)
        terminal.wait_for(f"• {_ANSWER}")
        terminal.wait_for(EMPTY_PROMPT)
        terminal.enter("/quit")
        require_equal("the client's exit code", terminal.wait_for_end(), 0)


def _blocks(page):
    """Returns the blocks of the section, each with its language."""
    section = re.search(r"^## Embed it\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    require(section, "README.md has no section on embedding")
    require(f"`{_PROMPT}`" in section.group(1), f"it does not mention {_PROMPT!r}")
    return re.findall(r"^```(\w+)\n(.*?)^```$", section.group(1), re.MULTILINE | re.DOTALL)


def _require_pinned(bench, line):
    """Checks that it installs the versions of these checks."""
    for install, part in _INSTALLS.items():
        before, _, _ = install.partition("VERSION")
        if not line.startswith(before):
            continue
        version = line.removeprefix(before)
        require_equal(f"the version in {line!r}", version, bench.parts.version(part))
        return
    raise Failure(f"{line!r} installs a package that these checks do not know")


CHECKS = {
    "readme": embed_it,
}
