"""The programs of docs/tutorial.md, run as the page says, and compared with the page."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness import DEADLINE_S, Failure, require, require_equal, run_client, wait_until

_TOP = Path(__file__).resolve().parents[2]
_PAGE = (_TOP / "docs/tutorial.md").read_text()
_LINES_MAX = 60
#: The page's configuration, and its prompt: a command that writes a file.
_INIT = ["init", "--model", "mock/mock", "--yes"]
_COMMAND = 'MOCK call name=exec_command arguments={"cmd": "touch woven"}'
_QUESTION = "/bin/bash -c 'touch woven'? [y/N] "
_PATCH = r'MOCK call name=apply_patch input="*** Begin Patch\n*** Add File: woven\n+cloth\n*** End Patch\n"'
_STORY = "warp and weft"
#: The first five letters, and then nothing for longer than any timeout.
_LONG_STORY = f'MOCK text say="{_STORY}" size=5 gap_ms=600000'


def in_python(bench):
    _tutorial(bench, "python", "tutorial.py", [sys.executable])


def in_typescript(bench):
    _tutorial(bench, "ts", "tutorial.ts", [bench.parts.node])


def _tutorial(bench, language, name, runner):
    program = _TOP / "examples" / name
    _require_shown(language, program)
    code, _, _ = run_client(bench, [bench.raddle, *_INIT], bench.environment())
    require_equal("the exit code of `raddle init`", code, 0)
    woven = bench.workspace / "woven"

    def asked(prompt, *shown):
        run = Run(bench, [*runner, program], prompt)
        for text in shown:
            run.wait_for(text)
        require(not woven.exists(), "it was done before the approval request")
        return run

    run = asked(_COMMAND, _QUESTION)
    run.say("y\n")
    run.wait_for_end(0)
    require(woven.exists(), "the command did not run")
    require("The tool said: " in run.out, "the model did not read the result")
    woven.unlink()

    run = asked(_COMMAND, _QUESTION)
    run.say("n\n")
    run.wait_for_end(0)
    require(not woven.exists(), "the command ran although the answer was no")

    run = asked(_PATCH, f"{woven}\n", "cloth\n", "item/fileChange/requestApproval? [y/N] ")
    run.say("y\n")
    run.wait_for_end(0)
    require_equal("what was written", woven.read_text(), "cloth\n")
    woven.unlink()

    # The server dies before the answer: the answer does not go to the next server's request.
    run = asked(_COMMAND, _QUESTION)
    run.kill_server()
    run.say("y\n")
    run.wait_for_end(1)
    require(not woven.exists(), "the command ran although no server had the answer")

    # The server dies during a message: nothing is printed twice, and the turn has ended.
    run = asked(_LONG_STORY, _STORY[:5])
    run.kill_server()
    run.wait_for_end(1)
    require_equal("what was printed", run.out, f"{_STORY[:5]}\n")
    require(re.search("^interrupted", run.err, re.MULTILINE), f"the program printed {run.err!r}")


class Run:
    """A program with a user who answers its questions."""

    def __init__(self, bench, command, prompt):
        self.out = ""
        self.err = ""
        self._bench = bench
        self._process = subprocess.Popen(
            [str(word) for word in (*command, bench.raddle, prompt)],
            env=bench.environment(),
            cwd=bench.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        bench.afterwards(self._end)
        bench.evidence("what the program printed", lambda: [*self.out.splitlines(), *self.err.splitlines()])

    def wait_for(self, text):
        end = time.monotonic() + DEADLINE_S
        while text not in self.out:
            ready, _, _ = select.select([self._process.stdout], [], [], end - time.monotonic())
            piece = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            require(piece, f"it did not print {text!r}")
            self.out += piece.decode()

    def say(self, text):
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def kill_server(self):
        """Kills the program's server, the only one of this check."""
        (pid,) = (pid for pid, _ in self._bench.processes() if _is_server(pid))
        os.kill(pid, signal.SIGKILL)
        require(wait_until(lambda: not _is_server(pid)), "the server did not die")

    def wait_for_end(self, code):
        try:
            out, err = self._process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise Failure("the program did not end") from None
        self.out += out.decode()
        self.err += err.decode()
        require_equal("the exit code", self._process.returncode, code)
        gone = wait_until(lambda: not any(_is_server(pid) for pid, _ in self._bench.processes()))
        require(gone, "its server was left behind")

    def _end(self):
        self._process.kill()
        self._process.communicate()


def _is_server(pid):
    try:
        return b"\0app-server\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _require_shown(language, program):
    """Checks that the page's blocks, joined, are the program, and that it has at most as many lines as the page says."""
    text = program.read_text()
    count = len(text.splitlines())
    require(count <= _LINES_MAX, f"{program.name} has {count} lines, not {_LINES_MAX}")
    shown = [line for block in _blocks(language) for line in block.splitlines() if line]
    require_equal("the page", shown, [line for line in text.splitlines() if line])
    for said in (f"raddle {' '.join(_INIT)}\n", _COMMAND, f"{_QUESTION}y\n"):
        require(said in _PAGE, f"{said!r} is missing on the page")


def _blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)


CHECKS = {
    "tutorial-python": in_python,
    "tutorial-typescript": in_typescript,
}
