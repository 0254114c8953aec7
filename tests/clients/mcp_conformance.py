"""The official conformance suite of the Model Context Protocol, with the program under test as the client.

The suite starts a server for each scenario and runs `mcp_conformance_program.py` with its URL.
"""

import shlex
import sys
from pathlib import Path

from mcp_suite import Suite

_PROGRAM = Path(__file__).with_name("mcp_conformance_program.py")
#: Scenarios that fail, each with its reason.
_EXPECTED = Path(__file__).with_name("mcp_conformance_failures.json")
#: Time of a scenario, for the suite.
_SCENARIO_MS = 60_000


def client_suite(bench):
    """Every scenario for clients passes, or fails as expected."""
    # One scenario measures the time of a reconnection.
    bench.has_limit = True
    # A script, because the suite splits its command at spaces.
    client = bench.folder / "client"
    words = [sys.executable, _PROGRAM, bench.folder / "scenarios", bench.raddle, bench.parts.root]
    client.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
    client.chmod(0o755)
    suite = Suite(bench, "client", "--command", client, "--timeout", _SCENARIO_MS)
    suite.require_expected(_EXPECTED)


CHECKS = {
    "mcp-conformance": client_suite,
}
