"""Fifty planted keys, which only the vendor may receive.

They are in every place of a configuration or an environment that can hold one, and a vendor repeats them in its
errors. Every other key has letters that URLs and JSON can encode in several ways: of those, the check searches for
the part before such letters. It searches the server's home with its journal, its log at the highest level, the
messages to the client, `/metrics`, and the requests that the mock shows.
"""

import itertools
import json
import secrets
import sqlite3
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import DEADLINE_S, Server, free_port, require, require_equal
from mock_model import MODEL, MockModel, calls, says
from socket_client import SocketClient

_WIRES = ["responses", "chat", "messages", "gemini"]
_COUNT = 50
#: A text in the journal, which proves that the search finds texts there.
_PROMPT = "what makes cloth-for-the-journal?"


class Plants:
    """Distinct keys, each with the place where it is planted."""

    def __init__(self):
        self._numbers = itertools.count(1)
        self.all = {}

    def new(self, place):
        number = next(self._numbers)
        key = f"planted-{number:02}-{secrets.token_hex(12)}"
        if number % 2 == 0:
            key += "+b/4=="
        self.all[key] = place
        return key

    def found(self, text):
        """Returns the places of the keys that a text contains."""
        return [place for key, place in self.all.items() if key.partition("+")[0] in text]


class Teller:
    """A vendor that rejects every request and repeats it: instead of a response, or within one."""

    def __init__(self, bench):
        self.heard = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _teller(self.heard))
        bench.serve(self._server)
        self.port = self._server.server_port


def nowhere(bench):
    plants, environment = Plants(), {"RADDLE_LOG": "trace"}
    runs_env = [calls("exec_command", {"cmd": "env"})]
    model = MockModel(bench, [("Process exited", says("So.")), (_PROMPT, runs_env)])
    teller = Teller(bench)
    providers = _providers(plants, environment, model, teller)
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"):
        environment[name] = plants.new(f"{name} of the environment")
    token = plants.new("the file with the token")
    require_equal("how many keys are planted", len(plants.all), _COUNT)
    _configure(bench, providers)
    file = bench.folder / "token"
    file.touch(mode=0o600)
    file.write_text(token)

    auth = ["--ws-auth", "capability-token", "--ws-token-file", str(file)]
    server = Server(bench, "--listen", "ws://127.0.0.1:0", *auth, **environment)
    client = SocketClient(bench, server.port, token)
    for provider in providers:
        client.change_provider(provider)
        turn = client.turn(_PROMPT)
        expected = "completed" if provider.startswith("good") else "failed"
        require_equal(f"how the turn of {provider} ended", turn.status, expected)
    metrics = _metrics(server, token)
    client.leave()
    server.stop()

    # The keys reached the vendor; otherwise it could not repeat them.
    missed = set(plants.all.values()) - set(plants.found(json.dumps(teller.heard)))
    unsent = {place for place in missed if "sent by tells" in place}
    require_equal("the keys that were not sent", unsent, set())
    places = {
        "the log": server.stderr(),
        "the messages to the client": "".join(client.lines),
        "the metrics": metrics,
        "what the mock shows": json.dumps(model.state()),
        "the mock's log": model.stderr(),
        **_home(bench),
    }
    require("cloth-for-the-journal" in places["the journal"], "the search finds nothing in the journal")
    require("raddle_turns_started_total" in metrics, "there are no metrics")
    for place, text in places.items():
        require_equal(f"the keys in {place}", plants.found(text), [])


def _providers(plants, environment, model, teller):
    """Returns every setting of a provider, for one that responds, one that repeats keys, and one that is unreachable."""
    providers = {}
    for wire in _WIRES:
        for name, port in {"good": model.port, "tells": teller.port, "gone": free_port()}.items():
            full = name != "gone" or wire == "responses"
            if not full:
                continue
            place = f"of what is sent by {name}-{wire}"
            variable = f"{name}_{wire}".upper()
            environment[f"{variable}_KEY"] = plants.new(f"env_key {place}")
            environment[f"{variable}_HEADER"] = plants.new(f"env_http_headers {place}")
            query = urllib.parse.quote(plants.new(f"the query of base_url {place}"), safe="")
            providers[f"{name}-{wire}"] = {
                "base_url": f"http://127.0.0.1:{port}/v1?base={query}",
                "wire_api": wire,
                "env_key": f"{variable}_KEY",
                "env_http_headers": {"x-more": f"{variable}_HEADER"},
                "http_headers": {"x-team": plants.new(f"http_headers {place}")},
                "query_params": {"token": plants.new(f"query_params {place}")},
                "request_max_retries": 0,
                "stream_max_retries": 0,
            }
    user = urllib.parse.quote(plants.new("a user in base_url"), safe="")
    providers["odd"] = {"base_url": f"ftp://me:{user}@127.0.0.1/v1"}
    line = plants.new("a header with a line end")
    providers["broken"] = {"base_url": "http://127.0.0.1:9/v1", "http_headers": {"x-a": f"{line}\n"}}
    return providers


def _configure(bench, providers):
    lines = [f'model = "{MODEL}"\nmodel_provider = "good-responses"\n']
    for name, settings in providers.items():
        lines.append(f"[model_providers.{name}]\n")
        for key, value in settings.items():
            if isinstance(value, dict):
                value = ", ".join(f"{it} = {json.dumps(of)}" for it, of in value.items())
                lines.append(f"{key} = {{ {value} }}\n")
            else:
                lines.append(f"{key} = {json.dumps(value)}\n")
    (bench.server_home / "config.toml").write_text("".join(lines))


def _metrics(server, token):
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://{server.address}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        return answer.read().decode()


def _home(bench):
    """Returns the server's files, without the user's. The journal is also read as a database."""
    files = [it for it in bench.server_home.rglob("*") if it.is_file() and it.name != "config.toml"]
    found = {f"the file {it.name}": it.read_bytes().decode(errors="replace") for it in files}
    journal = sqlite3.connect(bench.server_home / "threads" / "journal.sqlite")
    rows = []
    for (table,) in journal.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for row in journal.execute(f'SELECT * FROM "{table}"'):
            rows += [it.decode(errors="replace") if isinstance(it, bytes) else str(it) for it in row]
    journal.close()
    return {**found, "the journal": "\n".join(rows)}


def _teller(heard):
    class Handler(BaseHTTPRequestHandler):
        # The library calls this name.
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            told = f"{self.path} {dict(self.headers)}"
            heard.append(told)
            # Some vendors repeat a key in another encoding.
            headers = str(dict(self.headers))
            told += " " + told.replace("/", "\\/") + " " + urllib.parse.quote(headers, safe="")
            # Within a response, on the wires where an error is an event.
            if "/chat/" in self.path or ":stream" in self.path:
                status, kind, body = 200, "text/event-stream", f"data: {_error(told)}\n\n"
            else:
                status, kind, body = 401, "application/json", _error(told)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            """Logs nothing: the check reads the recorded requests."""

    return Handler


def _error(told):
    return json.dumps({"error": {"message": f"I do not know {told}", "code": 401, "type": "no"}})


CHECKS = {
    "planted-keys": nowhere,
}
