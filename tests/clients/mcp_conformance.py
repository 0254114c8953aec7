"""The official conformance suite of MCP, with the program under test as the client."""

import sys
from pathlib import Path

from harness import require, run_client

_HERE = Path(__file__).parent
_VERSION = "0.1.16"
_SUITE = "@modelcontextprotocol/conformance/dist/index.js"


def as_a_client(bench):
    suite = bench.parts.package("mcp-conformance", _VERSION, _SUITE)
    program = f"{sys.executable} {_HERE / 'mcp_conformance_program.py'} {bench.raddle}"
    known = ["--expected-failures", _HERE / "mcp_conformance.yml"]
    command = [bench.parts.node, suite, "client", "--command", program, "--suite", "all", *known]
    code, out, _ = run_client(bench, command, bench.environment())
    require(code == 0, f"the suite failed: {out[-2000:]}")


CHECKS = {
    "mcp-conformance": as_a_client,
}
