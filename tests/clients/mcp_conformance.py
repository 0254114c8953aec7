"""The official conformance suite of the Model Context Protocol, with the program under test as the client.

The suite starts a server for each scenario and runs `mcp_conformance_program.py` with its URL.
"""

import json
import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import Failure, require, require_equal, run_client

_PROGRAM = Path(__file__).with_name("mcp_conformance_program.py")
#: Keeps the servers of the suite on the loopback address.
_LOOPBACK = Path(__file__).with_name("mcp_loopback.cjs")
#: Scenarios that fail, each with its reason.
_EXPECTED = Path(__file__).with_name("mcp_conformance_failures.json")
_VERSION = "0.1.16"
_PACKAGE = "@modelcontextprotocol/conformance/dist/index.js"
#: Time of a scenario, for the suite.
_SCENARIO_MS = 60_000
#: Scenarios at a time: they wait more than they compute.
_BESIDE = 3


class Suite:
    """The suite, as npm installs it."""

    def __init__(self, bench):
        self._bench = bench
        program = bench.parts.package("mcp-conformance", _VERSION, _PACKAGE)
        self._command = [bench.parts.node, "--require", _LOOPBACK, program]
        # A script, because the suite splits its command at spaces.
        self._client = bench.folder / "client"
        words = [sys.executable, _PROGRAM, bench.folder / "scenarios", bench.raddle, bench.parts.root]
        self._client.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
        self._client.chmod(0o755)

    def scenarios(self):
        """Returns the names of the scenarios for clients."""
        _, out, _ = self._run("list", "--client")
        names = re.findall(r"^\s+- (\S+)", out, re.MULTILINE)
        require(len(names) > 20, f"the suite lists {out!r}")
        return names

    def problems(self, scenario):
        """Runs a scenario, and returns the failed checks."""
        results = self._bench.folder / "results" / scenario
        results.mkdir(parents=True)
        words = ("--command", self._client, "--scenario", scenario, "--timeout", _SCENARIO_MS)
        code, _, _ = self._run("client", *words, "--output-dir", results)
        (checks,) = results.rglob("checks.json")
        client_error = checks.with_name("stderr.txt").read_text().strip()
        checks = json.loads(checks.read_text())
        failed = [it for it in checks if it["status"] in ("FAILURE", "WARNING")]
        problems = [it.get("errorMessage") or it["description"] for it in failed]
        if not any(it["status"] == "SUCCESS" for it in checks):
            problems.append("the suite checked nothing")
        # The suite knows which scenarios end with an error of the client.
        if code:
            problems.append(client_error or "the client reported no error")
        return problems

    def _run(self, *words):
        return run_client(self._bench, [*self._command, *words], self._bench.environment())


def client_suite(bench):
    """Every scenario passes, or fails as expected."""
    # One scenario measures the time of a reconnection.
    bench.has_limit = True
    suite = Suite(bench)
    expected = json.loads(_EXPECTED.read_text())["client"]
    scenarios = suite.scenarios()
    require_equal("expected failures of unknown scenarios", set(expected) - set(scenarios), set())
    wrong = []
    with ThreadPoolExecutor(_BESIDE) as beside:
        found = dict(zip(scenarios, beside.map(suite.problems, scenarios)))
    for scenario, problems in found.items():
        if problems and scenario not in expected:
            wrong.append(f"{scenario} fails: {'; '.join(problems)}")
        if not problems and scenario in expected:
            wrong.append(f"{scenario} passes: remove it from {_EXPECTED.name}")
    if wrong:
        raise Failure("\n    ".join(wrong))


CHECKS = {
    "mcp-conformance": client_suite,
}
