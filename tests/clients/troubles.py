"""Every symptom of docs/troubleshooting.md, produced by the command on the page."""

import re
from pathlib import Path

from harness import Failure, require, run_client
from mock_model import MockModel

_TOP = Path(__file__).resolve().parents[2]
_MOCK = "http://127.0.0.1:4010"
# The log line of a failed turn, which the page leaves out. It may come before or after the client's output.
_LOG = re.compile(r"^\S+ +WARN raddle_agent::task::turn_log: .*\n", re.MULTILINE)


def symptoms(bench):
    """Each section of the page starts with a new home, in which the blocks before a command are the settings."""
    page = (_TOP / "docs/troubleshooting.md").read_text()
    model = MockModel(bench, [])
    programs = bench.folder / "bin"
    programs.mkdir()
    (programs / "raddle").symlink_to(bench.raddle)
    shown = 0
    for part in page.split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        # Short names: the path of a socket in it has at most 107 bytes.
        reader = Reader(bench, bench.folder / f"h{shown}", programs, title)
        for kind, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            match kind:
                case "toml":
                    reader.write(block.replace(_MOCK, model.address))
                case "console":
                    reader.follow(block)
                case _:
                    raise Failure(f"{title}: unknown kind of block {kind!r}")
        require(reader.commands, f"{title}: no command shows it")
        shown += 1
    require(shown >= 12, f"the page has {shown} symptoms")


class Reader:
    """A user in an empty folder, without settings."""

    def __init__(self, bench, home, programs, title):
        self.commands = 0
        self._bench = bench
        self._title = title
        self._settings = home / ".config/raddle"
        self._settings.mkdir(parents=True)
        # Not the home itself, in which sandboxed commands cannot write.
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
        """Writes a block to its file; without a file name it is the configuration."""
        named = re.match(r"# (\w+\.toml)\n", block)
        (self._settings / (named.group(1) if named else "config.toml")).write_text(block)

    def follow(self, block):
        """Runs each command of a console block, and checks that its output is the page's."""
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            self.commands += 1
            script = f"cd {self._folder}; {command}"
            _, out, err = run_client(self._bench, ["sh", "-c", script], self._environment)
            found = _LOG.sub("", out + err)
            pattern = "".join(_pattern(line) for line in expected.splitlines())
            if not re.fullmatch(pattern, found):
                raise Failure(f"{self._title}: {command!r} prints {found!r}, not {expected!r}")


def _pattern(line):
    """Returns a regular expression: `…` matches any part of a line, and alone any lines."""
    if line == "…":
        return r"(?:.*\n)*"
    return ".*".join(re.escape(piece) for piece in line.split("…")) + r"\n"


CHECKS = {
    "troubles": symptoms,
}
