"""The programs in `examples/`, run as their README says."""

import os
import secrets
import sys
from pathlib import Path

from harness import Server, require, require_equal, run_client

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_LINES_MAX = 40
_QUESTION = "/bin/bash -c 'touch woven'? [y/N] "


def in_40_lines(bench):
    program = _EXAMPLES / "client.py"
    count = len(program.read_text().splitlines())
    require(count <= _LINES_MAX, f"client.py has {count} lines, not {_LINES_MAX}")
    woven = bench.workspace / "woven"
    for answer, is_woven in (("n", False), ("y", True)):
        command = ["sh", "-c", 'echo "$0" | "$@"', answer, sys.executable, program, bench.raddle]
        code, out, _ = run_client(bench, command, bench.environment())
        require_equal("the exit code", code, 0)
        require(out.startswith("woven thread, "), "the text was not printed")
        require_equal("questions", out.count(_QUESTION), 1)
        require(out.endswith("\ncompleted\n"), f"it printed {out!r}")
        require_equal(f"whether the command ran after {answer!r}", woven.exists(), is_woven)


def over_stdio(bench):
    program = _EXAMPLES / "initialize.py"
    code, out, _ = run_client(bench, [sys.executable, program, bench.raddle], bench.environment())
    require_equal("the exit code", code, 0)
    for method in ("initialize", "config/read", "model/list"):
        require(f"{method}\n{{" in out, f"no response to {method} was printed")


def coming_back(bench):
    program = _EXAMPLES / "rejoin.py"
    code, out, _ = run_client(bench, [sys.executable, program, bench.raddle], bench.environment())
    require_equal("the exit code", code, 0)
    require("the turn was interrupted" in out, "the turn was not interrupted")
    require("letters, as the server has them" in out, "notifications were missed")


def over_a_websocket(bench):
    token = bench.folder / "token"
    token.write_text(secrets.token_hex(32))
    os.chmod(token, 0o600)
    listen = ["--listen", "ws://127.0.0.1:0"]
    server = Server(bench, *listen, "--ws-auth", "capability-token", "--ws-token-file", token)
    address = f"ws://{server.address}"

    code, out, _ = _websocket(bench, address, token)
    require_equal("the exit code", code, 0)
    require_equal("the first word", out.split(" ")[0], "connected")
    require("\nmodels [" in out, "no models were printed")
    require_equal("rejected requests", server.refusals(), [])

    code, _, err = _websocket(bench, address)
    require_equal("the exit code without a token", code, 1)
    require("is the token right?" in err, "the error does not name the cause")
    # Node retries once.
    require_equal("rejected requests", set(server.refusals()), {401})
    server.stop()


def _websocket(bench, *words):
    program = [bench.parts.node, _EXAMPLES / "websocket.mjs"]
    return run_client(bench, [*program, *words], bench.environment())


CHECKS = {
    "example-client": in_40_lines,
    "example-stdio": over_stdio,
    "example-rejoin": coming_back,
    "example-websocket": over_a_websocket,
}
