"""`/livez` and `/metrics` of a server with stock clients, parsed by Prometheus' own library."""

import json
import secrets
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path

from harness import DEADLINE_S, Server, require, require_equal, run_client, wait_until
from mock_model import MODEL, MockModel, says, title
from tui_client import EMPTY_PROMPT, start_tui

_PROGRAM = Path(__file__).with_name("prometheus_program.py")


def watched(bench):
    """A turn changes the counters. A request without the token is rejected."""
    model = MockModel(bench, [title("Weave cloth"), ("cloth", says("warp and weft"))])
    model.configure(bench)
    token = secrets.token_hex(16)
    file = bench.folder / "token"
    file.touch(mode=0o600)
    file.write_text(token)
    auth = ["--ws-auth", "capability-token", "--ws-token-file", str(file)]
    server = Server(bench, "--listen", "ws://127.0.0.1:0", *auth)
    require_equal("/metrics without a token", _get(server, "/metrics")[0], 401)
    well = {"status": "ok", "parts": {"loop": "ok", "store": "ok"}}
    status, page = _get(server, "/livez")
    require_equal("/livez", (status, json.loads(page)), (200, well))
    before = _metrics(bench, server, token)
    require_equal("turns before", before["raddle_turns_started_total"], 0)

    terminal = start_tui(bench, f"ws://{server.address}", token=token)
    terminal.wait_for(EMPTY_PROMPT)
    terminal.wait_for(f"{MODEL} default")
    terminal.enter("what makes cloth?")
    terminal.wait_for("• warp and weft")
    # The client requests a title in another thread.
    terminal.wait_for("· Weave cloth")
    named = wait_until(lambda: _metrics(bench, server, token).get(_ENDED) == 2)
    require(named, "the turns did not end")
    during = _metrics(bench, server, token)
    for name, expected in _DURING.items():
        require_equal(name, during.get(name), expected)
    tokens = during['raddle_model_tokens_total{kind="output"}']
    require(tokens > 0, f"{tokens} tokens were counted")
    memory = during["process_resident_memory_bytes"]
    require(1 << 20 < memory < 1 << 30, f"the memory is {memory}")
    terminal.enter("/quit")
    require_equal("the client's exit code", terminal.wait_for_end(), 0)

    gone = 'raddle_connections_open{transport="websocket"}'
    left = wait_until(lambda: _metrics(bench, server, token)[gone] == 0)
    require(left, "the client is still counted")
    server.stop()
    require(token not in server.stderr(), "the token is in the log")


def stuck(bench):
    """Another process holds the journal's lock and does not give it back."""
    bench.has_limit = True
    server = Server(bench, "--listen", "ws://127.0.0.1:0", "--insecure-loopback")
    require_equal("/livez", _health(server), (200, "ok", "ok"))
    journal = bench.server_home / "threads" / "journal.sqlite"
    holder = sqlite3.connect(journal, isolation_level=None)
    bench.afterwards(holder.close)
    holder.execute("BEGIN IMMEDIATE")
    # An earlier result is cached for a second.
    seen = (503, "ok", "stuck")
    require(wait_until(lambda: _health(server) == seen, deadline_s=5), "/livez does not report it within 5 s")
    holder.execute("ROLLBACK")
    require(wait_until(lambda: _health(server) == (200, "ok", "ok")), "it does not recover")
    server.stop()


def _health(server):
    """Returns the status, and the states of the loop and the store."""
    status, page = _get(server, "/livez")
    parts = json.loads(page)["parts"]
    return status, parts["loop"], parts["store"]


_ENDED = 'raddle_turns_ended_total{reason="completed"}'
_DURING = {
    "raddle_turns_started_total": 2,
    'raddle_connections_open{transport="websocket"}': 1,
    'raddle_requests_total{method="turn/start",outcome="ok"}': 2,
    'raddle_model_calls_total{outcome="done"}': 2,
    "raddle_model_retries_total": 0,
    "raddle_store_appends_waiting": 0,
}


def _metrics(bench, server, token):
    """Returns each sample by its name and labels, as Prometheus parses them."""
    status, page = _get(server, "/metrics", token)
    require_equal("/metrics", status, 200)
    file = bench.folder / "metrics.txt"
    file.write_text(page)
    command = [bench.parts.prometheus_python, "-B", _PROGRAM, file]
    code, out, err = run_client(bench, command, bench.environment())
    require(code == 0, f"Prometheus cannot read the page: {err}")
    return json.loads(out)


def _get(server, path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://{server.address}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


CHECKS = {
    "watched": watched,
    "watched-stuck": stuck,
}
