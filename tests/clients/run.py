"""Stock clients, as others ship them, and our own examples drive the program under test.

What README.md has its readers embed is done to the letter, and so is the tutorial, and what
docs/troubleshooting.md shows. Each client starts up, starts a thread,
has a turn of text and leaves; then each does what its users do with turns and threads:

- the terminal client over a websocket: Esc, steering by typing, /compact, /review, the name that it
  asks for in a hidden thread, /rename, /new, /fork, `resume ID` in another process, the list of
  /resume, /model, /diff, two clients in one turn, and coming back by itself when the server was killed in
  a turn and started again.
  Over a unix socket: a turn, Esc and `resume ID`; and a turn at the path where it looks by itself.
  What the agent does: commands with their output, those that only look, patches, plans, a question that
  is answered with the keyboard, Esc while a command runs, one that is still running at the end of its turn,
  and `!` for the user's own. What the user is asked before a command runs, by every key (once, for the
  session, by a rule, no, no and stop), and before files change; by two clients at once, and again when the
  server was killed meanwhile;
- the Python SDK: streaming, interrupt, steer, compact, name, fork, list, archive and unarchive, and
  resume in another process; a goal that is reached in two turns, and one that is given up; with its
  low-level client, a tool that the program runs, images, every answer about commands and patches, a
  question, and rights for a turn;
- the TypeScript SDK, which starts `raddle exec` for each turn: a run, a streamed one with a command, a patch and
  a plan, resuming, an answer by a schema, images, a failure, and abort; and the same script played to `codex exec`
  and to `raddle exec`, whose lines are the same, and how long both take in an empty home;
- the ACP adapter: turns in a session that is kept, cancel, list, close, and taking it up again; permission
  that acpx gives or denies, and each option that a client can choose;
- someone who has just come, with the packages and README.md alone; what is called before there is anything to ask;
- those who watch: `/livez`, and `/metrics` as Prometheus reads it;
- the vendors' own clients: what `raddle mock` says to them on every wire.

The model is a script on this machine that says the same to everyone, or `raddle mock`, whose
answers can be held so that it is certain what is under way, or a llama.cpp server with a small model
that is made for it, and that writes a file: with its server run by whoever runs this, and by nobody; and on
every wire that llama.cpp speaks. What is looked at: what the client shows, every message between client and server and its order, what the model was
asked, and the disk.

A method that a client asks for and that is not served yet is named in its check, and must be
answered with -32601, so that a new one is noticed; when a client starts up, so is one that is
served since then.

Not exercised here: requests of MCP servers; questions that nobody answers in time;
queueing; reviews of what is in git; sounds and other input; a model that needs a key. How a
model fails is tried by `turn-trials`, but for TLS and proxies, which are tried here. That a client gets text before
the model has ended is checked with the Python SDK, and with the terminal client where an answer stops
halfway.

Usage: python3 tests/clients/run.py --raddle PROGRAM --parts FOLDER [--only NAME] [--keep]
"""

import sys

# Before the imports below: no caches in the source tree.
sys.dont_write_bytecode = True

import argparse
import os
import shutil
import signal
import tempfile
import time
import traceback
from pathlib import Path

import acp
import acp_asked
import aimock
import cold
import examples
import https
import llama
import network
import new_user
import operating
import planted
import python_sdk
import python_sdk_asked
import readme
import recorder_check
import troubles
import tui
import tui_approvals
import tui_diff
import tui_hands
import tui_threads
import tui_turns
import tutorial
import typescript_sdk
import vendors
import vendors_switch
from harness import Bench, Failure, Parts

CHECKS = {
    **recorder_check.CHECKS,
    **examples.CHECKS,
    **readme.CHECKS,
    **new_user.CHECKS,
    **tutorial.CHECKS,
    **troubles.CHECKS,
    **tui.CHECKS,
    **tui_turns.CHECKS,
    **tui_threads.CHECKS,
    **tui_approvals.CHECKS,
    **tui_hands.CHECKS,
    **tui_diff.CHECKS,
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
}


#: How often a check that depends on time is run before its failure counts.
_TRIES = 3


def main():
    arguments = _arguments()
    # The server refuses a socket in a folder that others may enter.
    os.umask(0o077)
    # A stopped run cleans up like any other.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = [name for name in CHECKS if arguments.only in (None, name)]
    if not names:
        sys.exit(f"no check {arguments.only!r}; there are {', '.join(CHECKS)}")
    try:
        parts = Parts(arguments.parts.resolve())
    except Failure as failure:
        sys.exit(str(failure))
    root = Path(tempfile.mkdtemp(prefix="raddle-clients-"))
    try:
        raddle = arguments.raddle.resolve()
        passed = [_run(name, root / name, raddle, parts) for name in names]
    finally:
        if arguments.keep:
            print(f"kept: {root}")
        else:
            shutil.rmtree(root)
    failed = passed.count(False)
    print(f"{len(passed) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def _arguments():
    parser = argparse.ArgumentParser(description="Stock clients drive the program under test.")
    parser.add_argument("--raddle", type=Path, required=True, help="the program under test")
    parser.add_argument("--parts", type=Path, required=True, help="where the clients are installed")
    parser.add_argument("--only", metavar="NAME", help="run this check alone")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    return parser.parse_args()


def _run(name, folder, raddle, parts):
    """Runs a check. One that depends on time is run up to three times, and is unsteady if the first try failed."""
    for attempt in range(1, _TRIES + 1):
        where = folder if attempt == 1 else folder.with_name(f"{name}-{attempt}")
        passed, depends_on_time = _try(name, where, raddle, parts)
        if passed or not depends_on_time:
            break
    if passed and attempt > 1:
        print(f"unsteady {name} passed only in try {attempt} of {_TRIES}", flush=True)
    return passed


def _try(name, folder, raddle, parts):
    """Whether the check passed, and whether it looked at a screen or had a limit in seconds."""
    bench = Bench(folder, raddle, parts)
    begun = time.monotonic()
    problem = None
    try:
        problem = _problem(lambda: CHECKS[name](bench))
    finally:
        # What is left behind counts, but the first problem is the one to tell.
        problem = _problem(bench.close, problem)
    seconds = time.monotonic() - begun
    print(f"{'failed' if problem else 'ok':<7} {name:<22} {seconds:5.1f} s", flush=True)
    if problem:
        print(f"    {problem}")
        bench.show()
    return problem is None, bench.on_screen or bench.has_limit


def _problem(act, before=None):
    try:
        act()
    except Failure as failure:
        return before or str(failure)
    except Exception:
        return before or traceback.format_exc()
    return before


main()
