"""The example of docs/mcp.md, followed with the mock in place of a model, and compared with the page."""

import os
import re
from pathlib import Path

from harness import Failure, require_equal, run_client
from mock_model import MockModel

_PAGE = Path(__file__).resolve().parents[2] / "docs/mcp.md"
_MOCK = "http://127.0.0.1:4010"
#: The program that npm installs.
_PROGRAM = ".bin/mcp-server-filesystem"
_VERSION = "2026.8.31"
_TITLE = "## Example\n"


def example(bench):
    text = _PAGE.read_text()
    example = text[text.index(_TITLE) :].removeprefix(_TITLE).partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", example, re.MULTILINE | re.DOTALL)
    files = dict(re.match(r"# (\S+)\n(.*)", it, re.DOTALL).groups() for kind, it in blocks if kind == "toml")
    require_equal("the files of the example", sorted(files), ["config.toml", "mock.toml"])

    model = MockModel(bench, script=files["mock.toml"])
    config = bench.server_home / "config.toml"
    config.write_text(files["config.toml"].replace(_MOCK, model.address))
    programs = bench.folder / "bin"
    programs.mkdir()
    (programs / "raddle").symlink_to(bench.raddle)
    server = bench.parts.package("mcp-servers", _VERSION, _PROGRAM)
    (bench.workspace / "notes.txt").write_text("warp\n")
    path = [str(programs), str(server.parent), bench.environment()["PATH"]]
    environment = bench.environment(PATH=os.pathsep.join(path), RADDLE_LOG="error")

    steps = [step for kind, block in blocks if kind == "console" for step in block.split("$ ")[1:]]
    for step in steps:
        command, _, expected = step.partition("\n")
        code, out, err = run_client(bench, ["sh", "-c", command], environment)
        require_equal(f"the exit code of {command!r}", code, 0)
        pattern = "".join(_pattern(line) for line in expected.splitlines())
        if not re.fullmatch(pattern, err + out):
            raise Failure(f"{command!r} prints {err + out!r}, not {expected!r}")
    require_equal("the commands of the example", len(steps), 3)


def _pattern(line):
    """Returns a regular expression: `…` matches any part of a line, and alone any lines."""
    if line == "…":
        return r"(?:.*\n)*"
    return ".*".join(re.escape(piece) for piece in line.split("…")) + r"\n"


CHECKS = {
    "mcp-page": example,
}
