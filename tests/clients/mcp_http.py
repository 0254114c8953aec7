"""A FastMCP server over streamable HTTP on loopback, with a bearer token and with OAuth."""

import json
import secrets
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import DEADLINE_S, free_port, require, require_equal, wait_until
from mcp_client import APPROVED, McpClient, configure, text_of
from services import Service

_PROGRAM = Path(__file__).with_name("mcp_http_program.py")
_VERSION = "4.1.2"
_VARIABLE = "LOOM_TOKEN"
#: Threads with the same token, and how often it expires.
_THREADS, _ROUNDS = 50, 2


def _start(bench, *tokens):
    """Starts the server, and returns its address."""
    port = free_port()
    command = [bench.parts.python("fastmcp", _VERSION), _PROGRAM, port, *tokens]
    service = Service(bench, "loom", command, bench.environment())
    service.wait_for(lambda: "running on" in service.log(), "listener")
    return f"http://127.0.0.1:{port}/mcp"


def with_a_token(bench):
    token = secrets.token_hex(16)
    url = _start(bench, token)
    keys = {"url": url, **APPROVED}
    servers = {
        "loom": {**keys, "bearer_token_env_var": _VARIABLE},
        "stranger": {**keys, "http_headers": {"authorization": "Bearer another"}},
        "absent": {"url": f"http://127.0.0.1:{free_port()}/mcp"},
    }
    configure(bench, servers)
    client = McpClient(bench, **{_VARIABLE: token})
    states = client.wait_until_connected(["loom"])
    require_equal("the tools", list(states["loom"]["tools"]), ["weave"])
    require_equal("how it is signed in", states["loom"]["authStatus"], "bearerToken")
    require_equal("tools without the token", states["stranger"]["tools"], {})
    error = wait_until(lambda: client.states()["absent"]["toolsError"])
    is_plain = error and "cannot reach the MCP server at http://127.0.0.1:" in error and "::" not in error
    require(is_plain, f"the error of a server that does not run is {error!r}")
    _require_woven(client)
    require(token not in json.dumps(client.lines) + client.stderr(), "the token is in a message or the log")
    client.leave()


def with_a_login(bench):
    url = _start(bench)
    configure(bench, {"loom": {"url": url, **APPROVED}})
    client = McpClient(bench)
    states = client.states()
    require_equal("how it is signed in", states["loom"]["authStatus"], "notLoggedIn")
    require_equal("tools without a login", states["loom"]["tools"], {})

    states = _log_in(client)
    require_equal("how it is signed in", states["loom"]["authStatus"], "oAuth")
    messages = [json.loads(it) for it in client.lines]
    ended = [it["params"] for it in messages if it.get("method") == "mcpServer/oauthLogin/completed"]
    require_equal("the ends of the login", [(it["name"], it["success"]) for it in ended], [("loom", True)])
    _require_woven(client)
    client.leave()

    # The login is stored.
    client = McpClient(bench)
    client.wait_until_connected(["loom"])
    _require_woven(client)
    client.leave()


def one_refresh(bench):
    """Threads of two processes whose access token has expired: one refresh for all, and no failed call."""
    url = _start(bench)
    configure(bench, {"loom": {"url": url, **APPROVED}})
    clients = [McpClient(bench)]
    _log_in(clients[0])
    clients.append(McpClient(bench))
    start = {"cwd": str(bench.workspace)}
    threads = []
    for client in clients:
        client.wait_until_connected(["loom"])
        started = [client.call("thread/start", start) for _ in range(_THREADS // len(clients))]
        threads.append([it["thread"]["id"] for it in started])
    base = url.removesuffix("/mcp")
    for number in range(1, _ROUNDS + 1):
        _ask(f"{base}/expire", b"")
        with ThreadPoolExecutor() as beside:
            text = 'MOCK call name=mcp__loom__weave arguments={"threads": 3}'
            ended = beside.map(lambda client, of_it: client.turns(of_it, text), clients, threads)
            turns = [turn for of_it in ended for turn in of_it]
        items = [it for turn in turns for it in turn.items if it["type"] == "mcpToolCall"]
        results = [(it["status"], text_of(it)) for it in items]
        require_equal("the calls", results, [("completed", "a cloth of 3 threads")] * _THREADS)
        require_equal(f"the refreshes after {number} expiries", _ask(f"{base}/refreshes"), number)
    for client in clients:
        client.leave()


def _ask(url, data=None):
    with urllib.request.urlopen(url, data, timeout=DEADLINE_S) as answer:
        return json.load(answer)


def _log_in(client):
    """Logs in with a browser, and returns the states of the servers."""
    login = client.call("mcpServer/oauth/login", {"name": "loom"})
    # The server redirects the browser of a user who is signed in.
    with urllib.request.urlopen(login["authorizationUrl"], timeout=DEADLINE_S) as page:
        require_equal("the status of the page", page.status, 200)
    return client.wait_until_connected(["loom"])


def _require_woven(client):
    _, item = client.call_tool("loom", "weave", {"threads": 3})
    require_equal("the call", (item["status"], text_of(item)), ("completed", "a cloth of 3 threads"))


CHECKS = {
    "mcp-http": with_a_token,
    "mcp-oauth": with_a_login,
    "mcp-one-refresh": one_refresh,
}
