"""The example of a page of the documentation: its blocks, and its commands, whose output is compared with the page."""

import os
import re
from pathlib import Path

from harness import Failure, require_equal, run_client

DOCS = Path(__file__).resolve().parents[2] / "docs"
_TITLE = "## Example\n"
#: The address of the mock in the examples.
MOCK = "http://127.0.0.1:4010"


class PageExample:
    """The section `Example` of a page."""

    def __init__(self, page):
        text = (DOCS / page).read_text()
        section = text[text.index(_TITLE) :].removeprefix(_TITLE).partition("\n## ")[0]
        self._blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)

    def texts(self, kind):
        """Returns the blocks of a kind."""
        return [text for it, text in self._blocks if it == kind]

    def named(self, kind):
        """Returns the blocks of a kind that begin with a comment, by the file name in it."""
        return dict(re.match(r"# (\S+)\n(.*)", it, re.DOTALL).groups() for it in self.texts(kind))

    def follow(self, bench, environment, count):
        """Runs the commands, of which there are `count`."""
        steps = [step for block in self.texts("console") for step in _steps(block)]
        require_equal("the commands of the example", len(steps), count)
        for command, expected in steps:
            code, out, err = run_client(bench, ["sh", "-c", command], environment)
            require_equal(f"the exit code of {command!r}", code, 0)
            if not re.fullmatch(pattern_of(expected), err + out):
                raise Failure(f"{command!r} prints {err + out!r}, not {expected!r}")


def environment_of(bench, *folders):
    """Returns the environment of a user who has installed the program: `raddle` is in the path, before the folders."""
    programs = bench.folder / "bin"
    programs.mkdir()
    (programs / "raddle").symlink_to(bench.raddle)
    path = [str(it) for it in (programs, *folders)]
    path.append(bench.environment()["PATH"])
    return bench.environment(PATH=os.pathsep.join(path), RADDLE_LOG="error")


def _steps(block):
    """Returns the commands of a block with their output, in which a line may show a command of the agent."""
    steps = re.split(r"^\$ (?=raddle )", block, flags=re.MULTILINE)[1:]
    return [step.split("\n", 1) for step in steps]


def pattern_of(output):
    """Returns a regular expression for the output of a command."""
    return "".join(_pattern(line) for line in output.splitlines())


def _pattern(line):
    """Returns a regular expression: `…` matches any part of a line, and alone any lines."""
    if line == "…":
        return r"(?:.*\n)*"
    return ".*".join(re.escape(piece) for piece in line.split("…")) + r"\n"
