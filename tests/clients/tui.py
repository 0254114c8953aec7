"""The stock terminal client: `codex --remote`."""

import secrets

from calls import require_calls, require_in_order, require_threads
from daemon import Daemon
from harness import Server, require, require_equal, wait_until
from model_script import ANSWER, MODEL, ModelScript
from recorder import CLIENT, SERVER
from terminal import Terminal
from tui_client import EMPTY_PROMPT, SPARED, recorded, recorded_unix, start_tui
from turns import Told

#: The client ends without a result to each of these.
NEEDED = [
    "initialize",
    "account/read",
    "config/read",
    "account/read",
    "model/list",
    "configRequirements/read",
]

_PROMPT = "what makes cloth?"


def with_a_token(bench):
    script = _script(bench)
    token, server = _server_with_token(bench)
    record, relay = recorded(bench, server)
    terminal = start_tui(bench, f"ws://{relay.address}", token=token)
    _does_a_turn(bench, script, terminal, record, bench.server_folder)
    require(
        f"authorization: bearer {token}".lower() in _head(record, CLIENT).lower(),
        "the client did not send its token",
    )
    server.stop()
    require(token not in server.stderr(), "the token is in the log")


def without_a_token_on_loopback(bench):
    script = _script(bench)
    server = Server(bench, "--listen", "ws://127.0.0.1:0", "--insecure-loopback")
    record, relay = recorded(bench, server)
    terminal = start_tui(bench, f"ws://{relay.address}")
    _does_a_turn(bench, script, terminal, record, bench.server_folder)
    server.stop()


def without_a_relay(bench):
    """Without a relay: the server accepts the client's request unchanged, with its `Host`."""
    script = _script(bench)
    token, server = _server_with_token(bench)
    terminal = start_tui(bench, f"ws://{server.address}", token=token)
    _says(terminal, lambda: len(script.asked()) == 2)
    _asked(script)
    server.stop()
    require_equal("rejected requests", server.refusals(), [])


def over_a_unix_socket(bench):
    script = _script(bench)
    server = Server(bench, "--listen", f"unix://{bench.folder / 'server.sock'}")
    record, relay = recorded_unix(bench, server)
    terminal = start_tui(bench, f"unix://{relay.address}")
    _does_a_turn(bench, script, terminal, record, bench.server_folder)
    server.stop()
    require(not (bench.folder / "server.sock").exists(), "the socket file was left behind")


def over_the_control_socket(bench):
    """The default path of the client's socket."""
    _over_the_control_socket(bench, lambda: start_tui(bench, "unix://"))


def with_a_daemon(bench):
    """A server in the background, at the client's default path, outlives the client."""
    script = _script(bench)
    socket = bench.client_home / "app-server-control" / "app-server-control.sock"
    daemon = Daemon(bench, "--listen", f"unix://{socket}")
    _says(start_tui(bench, "unix://"), lambda: len(script.asked()) == 2)
    _asked(script)
    daemon.require_running()
    daemon.stop()
    require(not socket.exists(), "the socket file was left behind")


def without_arguments(bench):
    """The client connects there by default, if its own settings need no login."""
    (bench.client_home / "config.toml").write_text(
        'model_provider = "nobody"\n'
        '[model_providers.nobody]\nname = "nobody"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    plain = [bench.parts.codex]
    _over_the_control_socket(bench, lambda: Terminal(bench, plain, bench.environment()))


def _over_the_control_socket(bench, start):
    script = _script(bench)
    folder = bench.client_home / "app-server-control"
    folder.mkdir()
    server = Server(bench, "--listen", f"unix://{folder / 'app-server-control.sock'}")
    terminal = start()
    _says(terminal, lambda: len(script.asked()) == 2)
    _asked(script)
    server.stop()


def trusting_a_folder(bench):
    """With `--cd` the client first asks whether to trust the folder, and the server stores the answer."""
    script = _script(bench)
    server = Server(bench, "--listen", "ws://127.0.0.1:0", "--insecure-loopback")
    record, relay = recorded(bench, server)
    terminal = start_tui(bench, f"ws://{relay.address}", "--cd", bench.workspace)
    terminal.answer("Trust this folder?", "Enter")
    calls, before = _does_a_turn(bench, script, terminal, record, bench.workspace)
    methods = [call.method for call in before]
    require_in_order(methods, ["config/read", "config/batchWrite", "config/read"])
    written = before[methods.index("config/batchWrite")]
    require_equal("the result of the write", written.result.get("status"), "ok")
    last_read = [call for call in before if call.method == "config/read"][-1]
    require_equal(
        "the projects that were read after the write",
        last_read.result["config"].get("projects"),
        {str(bench.workspace): {"trust_level": "trusted"}},
    )
    kept = (bench.server_home / "config.toml").read_text()
    require(str(bench.workspace) in kept, f"the file does not hold the folder: {kept!r}")
    for key, value in script.settings.items():
        require(f"{key} = {value}\n" in kept, f"the file lost {key}: {kept!r}")
    asked, _ = require_threads(calls)
    require_equal("the folder of thread/start", asked.params.get("cwd"), str(bench.workspace))
    server.stop()


def a_wrong_token_is_refused(bench):
    _is_refused(bench, token=secrets.token_hex(16), says="invalid websocket bearer token")


def no_token_is_refused(bench):
    _is_refused(bench, token=None, says="missing websocket bearer token")


def _is_refused(bench, token, says):
    right, server = _server_with_token(bench)
    record, relay = recorded(bench, server)
    terminal = start_tui(bench, f"ws://{relay.address}", token=token)
    terminal.wait_for("HTTP error: 401 Unauthorized")
    require_equal("the client's exit code", terminal.wait_for_end(), 1)
    require_equal("the client's messages", record.messages(), [])
    require_equal("the status", _head(record, SERVER).split(" ")[1], "401")
    require(wait_until(lambda: record.refusal == says), f"the reason is {record.refusal!r}")
    server.stop()
    require_equal("rejected requests in the log", server.refusals(), [401])
    for secret in filter(None, (token, right)):
        require(secret not in server.stderr(), "a token is in the log")


def _script(bench):
    script = ModelScript(bench)
    script.configure(bench)
    return script


def _server_with_token(bench):
    token = secrets.token_hex(16)
    file = bench.folder / "token"
    file.touch(mode=0o600)
    file.write_text(f"{token}\n")
    auth = ["--ws-auth", "capability-token", "--ws-token-file", str(file)]
    return token, Server(bench, "--listen", "ws://127.0.0.1:0", *auth)


def _says(terminal, settled):
    """The user sends a prompt, sees the response, and quits when all is `settled`."""
    terminal.wait_for(EMPTY_PROMPT)
    # The client accepts input before the thread starts; it shows this afterwards.
    terminal.wait_for(f"{MODEL} default")
    terminal.enter(_PROMPT)
    terminal.wait_for(ANSWER)
    require(wait_until(settled), "the client still has open requests")
    terminal.enter("/quit")
    require_equal("the client's exit code", terminal.wait_for_end(), 0)
    terminal.wait_for("Token usage so far: total=10 input=7 output=3")


def _does_a_turn(bench, script, terminal, record, folder):
    """Returns all calls, and those before the first thread."""
    _says(terminal, lambda: _is_at_rest(record))
    # The client sends the last one while it quits.
    require(wait_until(lambda: all(it.answers for it in record.calls())), "the last response is missing")
    calls, before = require_calls(record, NEEDED, SPARED)
    require("initialized" in record.notified(CLIENT), "the client never sent `initialized`")
    hello = before[0]
    require_equal("the client", hello.params["clientInfo"]["name"], "codex-tui")
    require_equal("the home", hello.result["codexHome"], str(bench.server_home))
    models = [call for call in before if call.method == "model/list"]
    require(models[-1].result["data"], "the list of models is empty")

    main, title = require_threads(calls)
    require_equal("the thread's folder", main.result["cwd"], str(folder))
    thread = main.result["thread"]["id"]
    Told(record, thread).require_turns([_PROMPT])
    terminal.wait_for(f"resume {thread}")
    # The client's prompt for a title ends with the user's input.
    titled = _asked(script)
    Told(record, title.result["thread"]["id"]).require_turns([titled])
    return calls, before


def _is_at_rest(record):
    """Returns whether the title has arrived, its thread is unsubscribed, and no request is open."""
    calls = record.calls()
    let_go = any(call.method == "thread/unsubscribe" for call in calls)
    return let_go and all(call.answers for call in calls)


def _asked(script):
    """Checks the model's two requests, the user's and the one for a title; returns the latter's prompt."""
    # They belong to different threads, so either may come first.
    own = (MODEL, [("user", _PROMPT)])
    asked = sorted(script.asked(), key=lambda it: it != own)
    (_, titled) = asked[-1]
    ((_, prompt),) = titled
    require(prompt.endswith(f"\n{_PROMPT}"), f"the prompt for a title is {prompt!r}")
    require_equal("the requests to the model", asked, [own, (MODEL, [("user", prompt)])])
    script.require_well_formed()
    return prompt


def _head(record, sender):
    heads = [head for who, head in record.heads if who == sender]
    require_equal(f"how many HTTP heads the {sender} sent", len(heads), 1)
    return heads[0]


CHECKS = {
    "tui-token": with_a_token,
    "tui-insecure-loopback": without_a_token_on_loopback,
    "tui-no-relay": without_a_relay,
    "tui-unix": over_a_unix_socket,
    "tui-control-socket": over_the_control_socket,
    "tui-daemon": with_a_daemon,
    "tui-no-arguments": without_arguments,
    "tui-trust": trusting_a_folder,
    "tui-wrong-token": a_wrong_token_is_refused,
    "tui-missing-token": no_token_is_refused,
}
