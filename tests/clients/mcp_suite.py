"""The official conformance suite of the Model Context Protocol, and the comparison with expected failures."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import Failure, require, require_equal, run_client

#: Keeps the servers of the suite on the loopback address.
_LOOPBACK = Path(__file__).with_name("mcp_loopback.cjs")
_VERSION = "0.1.16"
_PACKAGE = "@modelcontextprotocol/conformance/dist/index.js"
#: Scenarios at a time: they wait more than they compute.
_BESIDE = 3


class Suite:
    """The scenarios of the suite for one side, `client` or `server`, as npm installs it."""

    def __init__(self, bench, side, *options):
        self._bench = bench
        self._side = side
        self._options = options
        program = bench.parts.package("mcp-conformance", _VERSION, _PACKAGE)
        self._command = [bench.parts.node, "--require", _LOOPBACK, program]

    def require_expected(self, failures):
        """Every scenario passes, or fails as this file expects: it has the reason for each scenario, and a part of
        each of its problems, so that a crash is not an expected failure."""
        expected = {name: it["problems"] for name, it in json.loads(failures.read_text()).items()}
        scenarios = self._scenarios()
        require_equal("expected failures of unknown scenarios", set(expected) - set(scenarios), set())
        with ThreadPoolExecutor(_BESIDE) as beside:
            found = dict(zip(scenarios, beside.map(self._problems, scenarios)))
        wrong = []
        for scenario, problems in found.items():
            if problems and scenario not in expected:
                wrong.append(f"{scenario} fails: {'; '.join(problems)}")
            elif scenario in expected and not problems:
                wrong.append(f"{scenario} passes: remove it from {failures.name}")
            elif problems and not _are_expected(problems, expected[scenario]):
                wrong.append(f"{scenario} fails otherwise than {failures.name} expects: {'; '.join(problems)}")
        if wrong:
            raise Failure("\n    ".join(wrong))

    def _scenarios(self):
        """Returns the names of the scenarios."""
        _, out, _ = self._run("list", f"--{self._side}")
        names = re.findall(r"^\s+- (\S+)", out, re.MULTILINE)
        require(len(names) > 20, f"the suite lists {out!r}")
        return names

    def _problems(self, scenario):
        """Runs a scenario, and returns the failed checks."""
        results = self._bench.folder / "results" / scenario
        results.mkdir(parents=True)
        words = ("--scenario", scenario, "--output-dir", results)
        code, _, _ = self._run(self._side, *self._options, *words)
        (file,) = results.rglob("checks.json")
        checks = json.loads(file.read_text())
        failed = [it for it in checks if it["status"] in ("FAILURE", "WARNING")]
        problems = [it.get("errorMessage") or it["description"] for it in failed]
        if not problems and not any(it["status"] == "SUCCESS" for it in checks):
            problems.append("the suite checked nothing")
        # The suite knows which scenarios end with an error of the client.
        if self._side == "client" and code:
            client_error = file.with_name("stderr.txt").read_text().strip()
            problems.append(client_error or "the client reported no error")
        return problems

    def _run(self, *words):
        return run_client(self._bench, [*self._command, *words], self._bench.environment())


def _are_expected(problems, parts):
    """Whether each problem has its own part, in any order."""
    return len(problems) == len(parts) and all(any(part in it for it in problems) for part in parts)
