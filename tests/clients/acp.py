"""The stock ACP adapter: acpx drives codex-acp, which drives Raddle."""

import json
import shlex
from concurrent.futures import ThreadPoolExecutor

from calls import require_answered, require_calls, require_threads
from harness import require, require_equal, require_no_panic, run_client, wait_until
from mock_model import MockModel, held, says
from model_script import ANSWER, MODEL, ModelScript
from stand_in import StandIn
from turns import Told

#: The adapter fails without a result to each of these.
NEEDED = ["initialize", "config/read", "account/read", "permissionProfile/list", "config/read"]

#: In a session it also sends this request, and continues after an error.
_SPARED_IN_A_SESSION = ["thread/goal/get"]

_UNSUBSCRIBE = "thread/unsubscribe"
_PROMPT = "what makes cloth?"
#: After the turn the adapter requests a title in a separate thread, always with this model. It does
#: not wait for the title, so a client that disconnects may interrupt it anywhere.
_TITLE_MODEL = "gpt-5.6-luna"


def transcript(bench):
    """Output for programs: one JSON message of ACP per line."""
    stand_in, script, code, out = _drives(bench, "json")
    require_equal("the client's exit code", code, 0)
    messages = [json.loads(line) for line in out.splitlines()]
    answers = _answers(messages)
    require_equal(
        "the responses", list(answers), ["initialize", "session/new", "session/prompt"]
    )
    agent = answers["initialize"]["result"]["agentInfo"]
    require_equal(
        "the agent",
        [agent["name"], agent["version"]],
        ["@agentclientprotocol/codex-acp", "2.6.0"],
    )
    thread = _sent(bench, stand_in, script)
    session = answers["session/new"]["result"]
    require_equal("the session", session["sessionId"], thread)
    require(
        session["models"]["currentModelId"].startswith(f"{MODEL}["),
        f"the model is {session['models']['currentModelId']!r}",
    )
    updates = [it["params"]["update"] for it in messages if it.get("method") == "session/update"]
    chunks = [it for it in updates if it["sessionUpdate"] == "agent_message_chunk"]
    require_equal("the text", "".join(it["content"]["text"] for it in chunks), ANSWER)
    end = answers["session/prompt"]["result"]
    require_equal("why it ended", end["stopReason"], "end_turn")
    usage = [end["usage"][key] for key in ("inputTokens", "outputTokens", "totalTokens")]
    require_equal("the tokens", usage, [7, 3, 10])


def text(bench):
    """Output for users."""
    stand_in, script, code, out = _drives(bench, "text")
    require_equal("the client's exit code", code, 0)
    lines = [line for line in out.splitlines() if line]
    require("[client] session/new (running)" in lines, "no session was requested")
    require_equal("the last lines", lines[-2:], [ANSWER, "[done] end_turn"])
    _sent(bench, stand_in, script)


def session(bench):
    """Turns in a stored session, one of them cancelled; later the session is resumed.

    Each command is a process; the adapter runs on between them, until the session is closed.
    """
    model = MockModel(bench, [
        ("cloth", says(ANSWER)),
        ("yarn", held("spun twice")),
        ("wool", says("from sheep")),
        ("silk", says("from worms")),
    ])
    model.configure(bench)
    stand_in = recorded(bench)

    def acpx(*words):
        code, out, _ = run_acpx(bench, stand_in, "text", *words)
        require_equal(f"the exit code of {words}", code, 0)
        return [line for line in out.splitlines() if line]

    (name,) = acpx("sessions", "new")
    require_equal("the first turn", acpx("prompt", _PROMPT)[-2:], [ANSWER, "[done] end_turn"])
    second = acpx("prompt", "what is wool?")
    require_equal("the second turn", second, ["from sheep", "[done] end_turn"])
    with ThreadPoolExecutor() as pool:
        third = pool.submit(acpx, "prompt", "what is yarn?")
        model.wait_until_held()
        require_equal("the output of cancel", acpx("cancel"), ["cancel requested"])
        require_equal("the third turn", third.result(), ["[done] cancelled"])
    model.wait_until_left()
    (listed,) = acpx("sessions", "list")
    require_equal("the list", listed.split("\t")[:3], [name, _PROMPT, str(bench.workspace)])
    require_equal("what was closed", acpx("sessions", "close"), [name])

    again = acpx("sessions", "new", "--resume-session", name)
    require_equal("the resumed session", again, [name])
    last = acpx("prompt", "what is silk?")
    require_equal("the last turn", last[-2:], ["from worms", "[done] end_turn"])
    acpx("sessions", "close")

    said = [("user", _PROMPT), ("assistant", ANSWER), ("user", "what is wool?")]
    more = [("assistant", "from sheep"), ("user", "what is yarn?"), ("user", "what is silk?")]
    require_equal("the model's input", model.asked()[-1], [*said, *more])
    record = stand_in.record()
    require_answered(record, _SPARED_IN_A_SESSION)
    # It closes a session only when nothing runs in it, and then unsubscribes from the thread.
    left = [call.params["threadId"] for call in record.calls() if call.method == _UNSUBSCRIBE]
    require_equal("the unsubscribed threads", left, [name, name])
    turns = [call.params["threadId"] for call in record.calls() if call.method == "turn/start"]
    require_equal("the thread of each turn", turns, [name] * 4)
    ends = [it for it in Told(record, name).words if it.startswith("turn/completed")]
    require_equal(
        "how the turns ended",
        [end.split()[1] for end in ends],
        ["completed", "completed", "interrupted", "completed"],
    )
    ended = wait_until(lambda: len(stand_in.exits()) == len(stand_in.starts()))
    require(ended, f"of {len(stand_in.starts())} servers {len(stand_in.exits())} have ended")
    require_equal("the servers' exit codes", set(stand_in.exits()), {0})
    require_no_panic(stand_in.stderr())


def _drives(bench, output):
    script = ModelScript(bench)
    script.configure(bench)
    stand_in = recorded(bench)
    code, out, _ = run_acpx(bench, stand_in, output, "exec", _PROMPT)
    return stand_in, script, code, out


def recorded(bench):
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    return stand_in


def run_acpx(bench, stand_in, output, *words):
    command = [
        *(bench.parts.acpx, "--cwd", bench.workspace, "--format", output),
        *("--agent", shlex.quote(str(bench.parts.codex_acp)), *words),
    ]
    environment = bench.environment(CODEX_PATH=str(stand_in.program), NO_BROWSER="1")
    return run_client(bench, command, environment)


def _answers(messages):
    """Returns the responses by their methods."""
    methods = {it["id"]: it["method"] for it in messages if "method" in it and "id" in it}
    answers = [it for it in messages if "method" not in it]
    return {methods[it["id"]]: it for it in answers if it.get("id") in methods}


def _sent(bench, stand_in, script):
    """Checks the messages between the adapter and the server; returns the thread."""
    require_equal("the arguments", stand_in.starts(), [["app-server"]])
    record = stand_in.record()
    calls, before = require_calls(record, NEEDED, cut_after="turn/start")
    require_equal("the home", before[0].result["codexHome"], str(bench.server_home))
    main, title = require_threads(calls)
    thread = main.result["thread"]["id"]
    # Each turn has its own settings: a mode, or the model for titles.
    Told(record, thread).require_turns([_PROMPT], settings_change=True)
    if title.answers:
        told = Told(record, title.result["thread"]["id"])
        told.require_turns([_PROMPT], settings_change=True, cut=True)
    _asked(script)
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())
    return thread


def _asked(script):
    asked = script.asked()
    for model, texts in asked[1:]:
        ((role, said),) = texts
        require_equal("the model and the role for titles", [model, role], [_TITLE_MODEL, "user"])
        require(said.endswith(_PROMPT), f"a title was requested with {said!r}")
    require(len(asked) <= 2, f"the model received {len(asked)} requests")
    script.require_asked([(MODEL, [("user", _PROMPT)]), *asked[1:]])


CHECKS = {
    "acp-json": transcript,
    "acp-text": text,
    "acp-session": session,
}
