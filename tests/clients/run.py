"""Stock clients and the examples of this repository drive the program under test.

The checks follow README.md, the tutorial and docs/troubleshooting.md to the letter. Each client starts,
starts a thread, runs a turn of text and quits. Then each does what its users do with turns and threads:

- The terminal client over a websocket: Esc, steering by typing, /compact, /review, the title that it
  requests in a hidden thread, /rename, /new, /fork, `resume ID` in another process, the list of
  /resume, /model, /diff, /mcp, /skills, /hooks, /plugins, two clients in one turn, and reconnection after the server was killed during a
  turn and restarted.
  Over a unix socket: a turn, Esc and `resume ID`; and a turn at its default path.
  The agent's work: commands with their output, read-only commands, patches, plans, a question that the
  user answers with the keyboard, Esc while a command runs, a command that still runs at the end of its
  turn, and `!` for the user's own commands. Approval requests for commands, with every key (once, for
  the session, by a rule, no, no and stop), and for changes of files; with two clients at once, and again
  after the server was killed meanwhile.
- The Python SDK: streaming, interrupt, steer, compact, name, fork, list, archive and unarchive, and
  resume in another process; a goal that is reached in two turns, and one that is given up; with its
  low-level client, a tool that the program runs, images, every answer about commands and patches, a
  question, and permissions for a turn.
- The TypeScript SDK, which starts `raddle exec` for each turn: a run, a streamed run with a command, a
  patch and a plan, a resume, a response by a schema, images, a failure, and abort. The same script runs
  with `codex exec` and with `raddle exec`; their lines must be equal, and both are timed in an empty home.
- The ACP adapter: turns in a stored session, cancel, list, close, and resume; permission that acpx
  gives or denies, and each option that a client can choose.
- A new user with only the packages and README.md; network connections before the first turn.
- Monitoring: `/livez`, and `/metrics` as Prometheus parses it.
- The vendors' own clients: the responses of `raddle mock` on every wire.
- MCP servers: the reference servers of npm, the same tools in the real Codex, processes of many servers,
  servers that are hostile, and the scenarios of the official conformance suite.
- Plugins: hostile ones, the messages of two patterns of authors, calls of both sides inside each other, and a
  permission that the user gives in the terminal client.
- `raddle mcp-server`: the official Python SDK, and the scenarios for servers of the conformance suite.
- Third-party clients, unmodified: a turn, an approval and a resume, as far as each has them. They run
  side by side. Their results must be those in results.json, from which docs/clients.md is written.

The model is one of three: a local script with a fixed response; `raddle mock`, whose responses can be
held, so that the check knows what is in progress; or a llama.cpp server with a small generated model that
writes a file. The checks with llama.cpp run the server as the current user and as an unprivileged one, and
use every wire that llama.cpp supports. The checks compare the client's output, every message between
client and server and its order, the requests to the model, and the disk.

Each check names the methods that its client requests and the server does not serve yet. They must fail
with -32601, so that a new one is noticed; at the start of a client, a check also fails if one of them is
served.

Not covered here: questions that time out; queueing; reviews of changes in git; audio and other input;
a model that needs a key. `turn-trials` tests failures of a model, except TLS and proxies, which are
tested here. The Python SDK checks that a client receives text before the model has ended; so does the
terminal client where a response stops halfway.

README.md lists the files of this folder, and how results.json comes about.

Usage: python3 tests/clients/run.py --raddle PROGRAM --parts FOLDER [--only NAME] [--keep]
       [--write-results]
"""

import sys

# Before the imports below: no caches in the source tree.
sys.dont_write_bytecode = True

import argparse
import os
import shutil
import signal
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import acp
import acp_asked
import aimock
import cold
import copies
import examples
import https
import hunks
import llama
import mcp_conformance
import mcp_elicitation
import mcp_hostile
import mcp_hostile_load
import mcp_hostile_oauth
import mcp_http
import mcp_page
import mcp_server_mode
import mcp_servers
import network
import new_user
import npm_clients
import operating
import planted
import plugin_contract
import plugin_hostile
import plugin_hostile_lists
import plugin_hostile_load
import plugin_idle
import plugin_pages
import plugin_provider
import plugin_rounds
import plugin_tutorial
import pypi_clients
import python_sdk
import python_sdk_asked
import readme
import recorder_check
import troubles
import tui
import tui_approvals
import tui_diff
import tui_elicitation
import tui_hands
import tui_plugin_approval
import tui_plugins
import tui_threads
import tui_turns
import tutorial
import typescript_sdk
import vendors
import vendors_switch
import vscode
from harness import Bench, Failure, Parts
from results import Results

#: Third-party clients, which wait more than they compute.
SIDE_BY_SIDE = {
    **pypi_clients.CHECKS,
    **npm_clients.CHECKS,
}
CHECKS = {
    **recorder_check.CHECKS,
    **examples.CHECKS,
    **hunks.CHECKS,
    **copies.CHECKS,
    **readme.CHECKS,
    **new_user.CHECKS,
    **tutorial.CHECKS,
    **troubles.CHECKS,
    **tui.CHECKS,
    **tui_turns.CHECKS,
    **tui_threads.CHECKS,
    **tui_approvals.CHECKS,
    **tui_elicitation.CHECKS,
    **tui_hands.CHECKS,
    **tui_diff.CHECKS,
    **tui_plugins.CHECKS,
    **tui_plugin_approval.CHECKS,
    **python_sdk.CHECKS,
    **python_sdk_asked.CHECKS,
    **typescript_sdk.CHECKS,
    **cold.CHECKS,
    **acp.CHECKS,
    **acp_asked.CHECKS,
    **llama.CHECKS,
    **https.CHECKS,
    **operating.CHECKS,
    **network.CHECKS,
    **vendors.CHECKS,
    **vendors_switch.CHECKS,
    **aimock.CHECKS,
    **planted.CHECKS,
    **mcp_servers.CHECKS,
    **mcp_conformance.CHECKS,
    **mcp_elicitation.CHECKS,
    **mcp_http.CHECKS,
    **mcp_page.CHECKS,
    **plugin_pages.CHECKS,
    **plugin_tutorial.CHECKS,
    **plugin_provider.CHECKS,
    **plugin_contract.CHECKS,
    **plugin_rounds.CHECKS,
    **plugin_idle.CHECKS,
    **plugin_hostile.CHECKS,
    **plugin_hostile_lists.CHECKS,
    **mcp_server_mode.CHECKS,
    **mcp_hostile.CHECKS,
    **mcp_hostile_oauth.CHECKS,
    **SIDE_BY_SIDE,
}
#: Checks that are too large for CI. They run only by name, for `cargo xtask prove`.
PROOFS = {
    **vscode.PROOFS,
    **mcp_servers.PROOFS,
    **mcp_hostile.PROOFS,
    **mcp_hostile_load.PROOFS,
    **plugin_pages.PROOFS,
    **plugin_hostile.PROOFS,
    **plugin_hostile_load.PROOFS,
    **plugin_rounds.PROOFS,
}

#: The attempts of a check that depends on time.
_TRIES = 3
#: Third-party clients at a time.
_BESIDE = 3
#: Held while the result of a check is printed.
_OUTPUT = threading.Lock()


def main():
    arguments = _arguments()
    # The server rejects a socket in a folder that other users may enter.
    os.umask(0o077)
    # An interrupted run cleans up too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    every = CHECKS | PROOFS
    names = list(CHECKS) if arguments.only is None else [it for it in every if it == arguments.only]
    if not names:
        sys.exit(f"no check {arguments.only!r}; there are {', '.join(every)}")
    try:
        parts = Parts(arguments.parts.resolve())
    except Failure as failure:
        sys.exit(str(failure))
    root = Path(tempfile.mkdtemp(prefix="raddle-clients-"))
    try:
        results = Results()
        run = Run(root, arguments.raddle.resolve(), parts, results, arguments.write_results)
        passed = run.checks(names)
    finally:
        if arguments.keep:
            print(f"kept: {root}")
        else:
            shutil.rmtree(root)
    failed = passed.count(False)
    is_whole = arguments.only is None
    if failed:
        # A failed check has no row, so nothing follows from missing ones.
        pass
    elif arguments.write_results:
        results.write(is_whole)
    elif is_whole and (unchecked := results.unchecked()):
        sys.exit(f"results.json has rows of clients without a check: {', '.join(unchecked)}")
    # Again at the end, because the output above is long.
    for name, problem in run.problems:
        # A failed attempt of a check that passed later is printed above only.
        if name not in run.unsteady:
            print(f"failed  {name}\n    {problem}")
    print(f"{len(passed) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def _arguments():
    parser = argparse.ArgumentParser(description="Stock clients drive the program under test.")
    parser.add_argument("--raddle", type=Path, required=True, help="the program under test")
    parser.add_argument("--parts", type=Path, required=True, help="where the clients are installed")
    parser.add_argument("--only", metavar="NAME", help="run this check alone")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    parser.add_argument(
        "--write-results", action="store_true", help="write the rows of third-party clients"
    )
    return parser.parse_args()


class Run:
    """A run of checks with one program under test."""

    def __init__(self, root, raddle, parts, results, writes_results):
        self._root = root
        self._raddle = raddle
        self._parts = parts
        self._results = results
        self._writes_results = writes_results
        #: Names of failed attempts, with what was wrong.
        self.problems = []
        #: Names of checks that passed only in a later attempt.
        self.unsteady = set()

    def checks(self, names):
        """Returns whether each check passed. Third-party clients come last."""
        passed = [self._check(name) for name in names if name not in SIDE_BY_SIDE]
        with ThreadPoolExecutor(_BESIDE) as beside:
            passed += beside.map(self._check, [name for name in names if name in SIDE_BY_SIDE])
        return passed

    def _check(self, name):
        """Runs a check. One that depends on time runs up to three times, and is unsteady if the first attempt failed."""
        for attempt in range(1, _TRIES + 1):
            folder = self._root / (name if attempt == 1 else f"{name}-{attempt}")
            passed, depends_on_time = self._try(name, folder)
            if passed or not depends_on_time:
                break
        if passed and attempt > 1:
            self.unsteady.add(name)
            print(f"unsteady {name} passed only in try {attempt} of {_TRIES}", flush=True)
        return passed

    def _try(self, name, folder):
        """Returns whether the check passed, and whether it read a screen or had a deadline in seconds."""
        bench = Bench(folder, self._raddle, self._parts)
        begun = time.monotonic()
        problem = None
        try:
            problem = _problem(lambda: (CHECKS | PROOFS)[name](bench))
        finally:
            # Leftover processes fail the check too, but the first problem is reported.
            problem = _problem(bench.close, problem)
        if not problem:
            problem = _problem(lambda: self._add(bench.results))
        seconds = time.monotonic() - begun
        with _OUTPUT:
            print(f"{'failed' if problem else 'ok':<7} {name:<22} {seconds:5.1f} s", flush=True)
            if problem:
                self.problems.append((name, problem))
                print(f"    {problem}")
                bench.show()
        return problem is None, bench.on_screen or bench.has_limit

    def _add(self, rows):
        self._results.add(rows)
        if not self._writes_results:
            self._results.require_committed(rows)


def _problem(act, before=None):
    try:
        act()
    except Failure as failure:
        return before or str(failure)
    except Exception:
        return before or traceback.format_exc()
    return before


main()
