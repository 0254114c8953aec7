"""Every symptom of docs/troubleshooting.md, brought about by the command that the page shows."""

import re
from pathlib import Path

from harness import Failure, require, run_client
from mock_model import MockModel

_TOP = Path(__file__).resolve().parents[2]
_MOCK = "http://127.0.0.1:4010"


def symptoms(bench):
    """Each part of the page begins with a home of its own, in which the blocks before a command are the settings."""
    page = (_TOP / "docs/troubleshooting.md").read_text()
    model = MockModel(bench, [])
    programs = bench.folder / "bin"
    programs.mkdir()
    (programs / "raddle").symlink_to(bench.raddle)
    shown = 0
    for part in page.split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        # Short names: the path of a socket below it may have 107 bytes.
        reader = Reader(bench, bench.folder / f"h{shown}", programs, title)
        for kind, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            match kind:
                case "toml":
                    reader.write(block.replace(_MOCK, model.address))
                case "console":
                    reader.follow(block)
                case _:
                    raise Failure(f"{title}: it is not known what to do with a block of {kind!r}")
        require(reader.commands, f"{title}: no command shows it")
        shown += 1
    require(shown >= 12, f"the page has {shown} symptoms")


class Reader:
    """Someone in an empty folder, with nothing set."""

    def __init__(self, bench, home, programs, title):
        self.commands = 0
        self._bench = bench
        self._title = title
        self._settings = home / ".config/raddle"
        self._settings.mkdir(parents=True)
        # Not the home itself, in which commands of the sandbox can write nothing.
        self._folder = home / "project"
        self._folder.mkdir()
        (self._folder / "examples").symlink_to(_TOP / "examples")
        self._environment = {
            "PATH": f"{programs}:{bench.environment()['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "RADDLE_DUMPABLE": "1",
        }

    def write(self, block):
        """A block that names no file is the configuration."""
        named = re.match(r"# (\w+\.toml)\n", block)
        (self._settings / (named.group(1) if named else "config.toml")).write_text(block)

    def follow(self, block):
        """Runs each command of a console, and sees that it says what the page has it say."""
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            self.commands += 1
            script = f"cd {self._folder}; {command}"
            _, out, err = run_client(self._bench, ["sh", "-c", script], self._environment)
            found = out + err
            pattern = "".join(_pattern(line) for line in expected.splitlines())
            if not re.fullmatch(pattern, found):
                raise Failure(f"{self._title}: {command!r} says {found!r}, not {expected!r}")


def _pattern(line):
    """`…` lets the rest of a line be, and alone the rest of the lines."""
    if line == "…":
        return r"(?:.*\n)*"
    return ".*".join(re.escape(piece) for piece in line.split("…")) + r"\n"


CHECKS = {
    "troubles": symptoms,
}
