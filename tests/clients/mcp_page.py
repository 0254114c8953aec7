"""The example of docs/mcp.md, followed with the mock in place of a model, and compared with the page."""

from harness import require_equal
from mock_model import MockModel
from page_example import MOCK, PageExample, environment_of

#: The program that npm installs.
_PROGRAM = ".bin/mcp-server-filesystem"
_VERSION = "2026.8.31"


def example(bench):
    page = PageExample("mcp.md")
    files = page.named("toml")
    require_equal("the files of the example", sorted(files), ["config.toml", "mock.toml"])
    model = MockModel(bench, script=files["mock.toml"])
    config = bench.server_home / "config.toml"
    config.write_text(files["config.toml"].replace(MOCK, model.address))
    (bench.workspace / "notes.txt").write_text("warp\n")
    server = bench.parts.package("mcp-servers", _VERSION, _PROGRAM)
    page.follow(bench, environment_of(bench, server.parent), count=3)


CHECKS = {
    "mcp-page": example,
}
