"""`## Install` and `## First answer` of README.md, followed to the letter by a new user.

The user id has no account, an empty home and a folder with the packages. The model is a running llama.cpp
server at the address that README expects. Every command comes from the page.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from harness import Failure, require, require_equal, wait_until
from llama_model import ANSWER, CONTENT, FILE, LlamaModel
from terminal import Terminal

_TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(_TOP / "packages"))

from stranger import Stranger, node_for_strangers

_SECTIONS = ("Install", "First answer")
#: The port of `llamacpp/…`, which is the default of that server.
_PORT = 8080
_PACKAGING_S = 180
#: Timeout of a command; pip and npm are among them.
_BLOCK_S = 900
#: The end of a question: its keys.
_QUESTION = re.compile(r"\[y/.*\bn\b.*\]")


def new_user(bench):
    packages = bench.folder / "packages"
    make = [sys.executable, "-B", _TOP / "packages/package.py", "--raddle", bench.raddle, "--out", packages]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, timeout=_PACKAGING_S)
    LlamaModel(bench, wire="chat", port=_PORT)
    newcomer = Newcomer(bench, packages)
    begun = time.monotonic()
    for number, block in enumerate(_blocks((_TOP / "README.md").read_text())):
        newcomer.pastes(f"block-{number}", block)
    took = time.monotonic() - begun
    # Most of the time is pip, npm and a model: reported, not limited.
    print(f"        README's commands took {took:.0f} s")
    require("raddle doctor" in newcomer.pasted, "README does not mention `raddle doctor`")
    require(ANSWER in newcomer.shown, f"the model's answer was not shown: {newcomer.shown}")
    require(newcomer.agreed, "there was no approval request")
    file = newcomer.folder / FILE
    require_equal("the approved file", file.read_text(), CONTENT)
    require_equal("its owner", file.stat().st_uid, newcomer.user)


class Newcomer:
    """An unprivileged user with a terminal and a folder with the packages."""

    def __init__(self, bench, packages):
        self._bench = bench
        self.pasted = ""
        self.shown = ""
        self.agreed = 0
        for folder in (bench.folder.parent, bench.folder):
            folder.chmod(0o711)
        # The copies must be readable for other users; the rest of these checks is not.
        before = os.umask(0o022)
        node = node_for_strangers(bench.parts.root, bench.folder / "node")
        self._stranger = Stranger(bench.folder / "h", node)
        self.folder = self._stranger.home / "new"
        self._stranger.is_given(packages.iterdir(), self.folder)
        os.umask(before)

    @property
    def user(self):
        return self._stranger.user

    def pastes(self, name, block):
        """Runs the lines in a terminal, and approves every question."""
        # Each block runs in a new shell, so earlier `export` lines are repeated.
        known = "".join(line + "\n" for line in self.pasted.splitlines() if line.startswith("export "))
        self.pasted += block
        # This model writes the file whenever it can.
        (self.folder / FILE).unlink(missing_ok=True)
        command = [*self._stranger.runs, "sh", "-ec", f"cd {self.folder}\n{known}{block}"]
        terminal = Terminal(self._bench, command, self._stranger.environment, name)
        answered = 0

        def ended():
            nonlocal answered
            if terminal.ended():
                return True
            if len(_QUESTION.findall(terminal.screen())) > answered:
                require(not (self.folder / FILE).exists(), "it was done before the approval")
                terminal.press("y", "Enter")
                answered += 1
            return False

        require(wait_until(ended, deadline_s=_BLOCK_S), f"these lines did not end:\n{block}")
        code = terminal.wait_for_end()
        self.agreed += answered
        self.shown += terminal.screen()
        if code != 0:
            raise Failure(f"these lines ended with {code}:\n{block}")


def _blocks(page):
    """Returns the commands of these sections of the page."""
    blocks = []
    for title in _SECTIONS:
        section = re.search(rf"^## {title}\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
        require(section, f"README.md has no section {title!r}")
        found = re.findall(r"^```sh\n(.*?)^```$", section.group(1), re.MULTILINE | re.DOTALL)
        require(found, f"{title!r} has no commands")
        blocks += found
    return blocks


CHECKS = {
    "new-user": new_user,
}
