"""The stock Python SDK with Raddle as `codex_bin`."""

import json
from pathlib import Path

from calls import require_answered, require_calls
from harness import require, require_equal, require_no_panic, run_client
from mock_model import MockModel, begun, calls, held, says
from model_script import ANSWER, MODEL, PIECES, ModelScript
from recorder import CLIENT
from stand_in import StandIn
from turns import Told

_PROGRAM = Path(__file__).with_name("python_sdk_program.py")
_PROMPTS = ["what makes cloth?", "say that again"]
_THREADS_PROGRAM = Path(__file__).with_name("python_sdk_threads_program.py")
_GOAL_PROGRAM = Path(__file__).with_name("python_sdk_goal_program.py")
_SEEN = {
    "streamed": {
        "methods": [
            "turn/started",
            *("item/started", "item/completed"),
            *("item/started", "item/agentMessage/delta", "item/completed"),
            *("thread/tokenUsage/updated", "turn/completed"),
        ],
        "text": ANSWER,
    },
    "interrupted": {"texts": ["spun "], "status": "interrupted"},
    "steered": {
        "sameTurn": True,
        "texts": ["from flax", "that grows", "from sheep"],
        "status": "completed",
    },
    "compacted": "from worms",
    "forked": "from fields",
    "listed": ["Forked", "Weaving"],
    "listedAfterArchive": ["Weaving"],
    "archived": ["Forked"],
    "sameThread": True,
    "listedAfterUnarchive": ["Forked", "Weaving"],
    "resumed": {
        "answer": "from wool",
        "name": "Weaving",
        "turns": [
            ["completed", ["what makes cloth?", ANSWER]],
            ["interrupted", ["what is yarn?", "spun "]],
            [
                "completed",
                ["what is linen?", "from flax", "and what is wool?", "that grows", "from sheep"],
            ],
            ["completed", []],
            ["completed", ["what is silk?", "from worms"]],
            ["completed", ["what is felt?", "from wool"]],
        ],
    },
}
_TOOLS_PROGRAM = Path(__file__).with_name("python_sdk_tools_program.py")
_PARTS = ["text", "image", "localImage"]
_GIF = b"GIF89a\x01\x00\x01\x00, as far as anyone looks"
_NETWORK_ACCESS = "sandbox_workspace_write.network_access"


def sync_client(bench):
    _drives(bench, "sync")


def async_client(bench):
    _drives(bench, "async")


def _drives(bench, kind):
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    # The model continues only after its first delta is on its way to the client.
    script = ModelScript(bench, pieces_seen=lambda: len(_deltas(stand_in.record())))
    settings = {**script.settings, _NETWORK_ACCESS: "true"}
    overrides = [f"{key}={value}" for key, value in settings.items()]
    command = [
        *(bench.parts.sdk_python, "-B", _PROGRAM, kind, stand_in.program),
        *(json.dumps(_PROMPTS), *overrides),
    ]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    seen = json.loads(out)
    _saw(seen, settings)
    _sent(bench, stand_in, overrides, seen["thread"])
    first, second = _PROMPTS
    script.require_asked([
        (MODEL, [("user", first)]),
        (MODEL, [("user", first), ("assistant", ANSWER), ("user", second)]),
    ])


def threads(bench):
    """Turns that are streamed, interrupted, steered and compacted; threads that are stored."""
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    model = MockModel(bench, [
        ("Sum up", says("We spoke of cloth.")),
        ("cloth", says(ANSWER)),
        ("yarn", begun("spun twice")),
        ("linen", [*says("from flax"), *held("that grows")]),
        ("wool", says("from sheep")),
        ("silk", says("from worms")),
        ("hemp", says("from fields")),
        ("felt", says("from wool")),
    ])
    overrides = [f"{key}={value}" for key, value in model.settings.items()]
    command = [
        *(bench.parts.sdk_python, "-B", _THREADS_PROGRAM),
        *(stand_in.program, model.release_address, *overrides),
    ]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    seen = json.loads(out)
    for name, expected in _SEEN.items():
        require_equal(name, seen[name], expected)
    require_equal("where the fork comes from", seen["forkedFrom"], seen["thread"])
    require_answered(stand_in.record())
    require_equal("the servers' exit codes", stand_in.exits(), [0, 0])
    require_no_panic(stand_in.stderr())
    _knew(model.asked())


def goal(bench):
    """A goal that is reached in two turns, and one that is cleared."""
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    model = MockModel(bench, [
        ("spin a mile", begun("threads")),
        ("weave a yard", says("half a yard"), 1),
        ("weave a yard", [calls("update_goal", {"status": "complete"})], 1),
        ("how things stand", says("a yard")),
    ])
    overrides = [f"{key}={value}" for key, value in model.settings.items()]
    command = [bench.parts.sdk_python, "-B", _GOAL_PROGRAM, stand_in.program, *overrides]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    seen = json.loads(out)
    reached = {"texts": ["half a yard", "a yard"], "status": "completed"}
    given_up = {"texts": ["threa"], "status": "interrupted"}
    one = {"started": 1, "sameTurn": True}
    require_equal("the goal that was reached", seen["reached"], {**one, **reached})
    require_equal("the goal that was given up", seen["given up"], {**one, **given_up})
    first = ["active", "active", "complete", "complete"]
    second = ["cleared", "active", "paused", "paused"]
    require_equal("the states of the goals", _goals(stand_in.record()), [*first, *second])
    # After the goal is reached, the tool is no longer offered.
    offered = ["update_goal" in tools for tools in model.tools()]
    require_equal("the calls that offered update_goal", offered, [True, True, False, True])
    require_answered(stand_in.record())
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())


def _goals(record):
    """Returns the states of the goals, in order."""
    stood = []
    for message, _ in record.told():
        match message:
            case {"method": "thread/goal/updated", "params": {"goal": {"status": status}}}:
                stood.append(status)
            case {"method": "thread/goal/cleared"}:
                stood.append("cleared")
    return stood


def _knew(asked):
    """Checks the model's input where it differs from the whole conversation."""
    yarn = [("user", "what makes cloth?"), ("assistant", ANSWER), ("user", "what is yarn?")]
    linen = [*yarn, ("assistant", "spun "), ("user", "what is linen?")]
    answered = [*linen, ("assistant", "from flax"), ("assistant", "that grows")]
    wool = [*answered, ("user", "and what is wool?")]
    _, stopped, first, steered, summing, silk, hemp, felt = asked
    require_equal("the input of the interrupted turn", stopped, yarn)
    require_equal("the input after it", first, linen)
    require_equal("the input of the steered turn", steered, wool)
    require_equal("the input of the compaction", summing[:-1], [*wool, ("assistant", "from sheep")])
    summary = [("user", "We spoke of cloth."), ("user", "what is silk?")]
    require_equal("the input after the compaction", silk, summary)
    more = [*summary, ("assistant", "from worms")]
    require_equal("the input of the fork", hemp, [*more, ("user", "what is hemp?")])
    require_equal("what was resumed", felt, [*more, ("user", "what is felt?")])


def tools(bench):
    """A tool that the client defines and runs, and images to and from it."""
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    model = MockModel(bench, [
        ("cloth", [calls("loom__look", {"at": "the cloth"})]),
        ("torn", says("Mend it.")),
    ])
    image = bench.folder / "cloth.gif"
    image.write_bytes(_GIF)
    overrides = [f"{key}={value}" for key, value in model.settings.items()]
    command = [bench.parts.sdk_python, "-B", _TOOLS_PROGRAM, stand_in.program, image, *overrides]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    seen = json.loads(out)
    (method, params), = seen["asked"]
    require_equal("the requests", method, "item/tool/call")
    expected = {"threadId": seen["thread"], "turnId": seen["turn"], "callId": params["callId"]}
    expected |= {"namespace": "loom", "tool": "look", "arguments": {"at": "the cloth"}}
    require_equal("the params of the request", params, expected)
    said, call, answer = seen["items"]
    require_equal("the user's message", [part["type"] for part in said["content"]], _PARTS)
    require_equal("the image", said["content"][1]["url"], seen["url"])
    require_equal("the file", said["content"][2]["path"], str(image))
    ended = [call[key] for key in ("type", "status", "success", "tool", "namespace")]
    require_equal("the call", ended, ["dynamicToolCall", "completed", True, "look", "loom"])
    require_equal("its image", call["contentItems"][1]["imageUrl"], seen["url"])
    require_equal("the answer", [answer["text"], seen["status"]], ["Mend it.", "completed"])
    first, second = model.bodies()
    names = [tool["name"] for tool in first["tools"]]
    require_equal("how often the tool was offered", names.count("loom__look"), 1)
    require_equal("the tools later", second["tools"], first["tools"])
    require_equal("the beginning", second["input"][: len(first["input"])], first["input"])
    look = {"type": "input_image", "image_url": seen["url"], "detail": "auto"}
    require_equal("the images in the model's input", first["input"][-1]["content"][1:], [look, look])
    given = [{"type": "input_text", "text": "it is torn"}, look]
    require_equal("the tool results", second["input"][-1]["output"], given)
    require_answered(stand_in.record())
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())


def _saw(seen, settings):
    """Checks the results that the SDK returns."""
    require_equal("the SDK's version", seen["sdkVersion"], "0.163.0")
    require_equal("the server's name", seen["serverName"], "raddle")
    version = seen["serverVersion"].split()[0]
    require_equal("the server's version", version, "0.166.0")
    require(
        seen["userAgent"].startswith("raddle/0.166.0 (")
        and seen["userAgent"].endswith("(codex_python_sdk; 0.163.0)"),
        f"the user agent is {seen['userAgent']!r}",
    )
    require_equal("the platform", [seen["platformFamily"], seen["platformOs"]], ["unix", "linux"])
    require_equal("whether a login is required", seen["requiresOpenaiAuth"], False)
    require_equal("the models", seen["models"], [[MODEL, True]])
    require_equal("the configured model", seen["configModel"], MODEL)
    require_equal("the configured network access", seen["configNetworkAccess"], True)
    origins = {key: "sessionFlags" for key in settings}
    require_equal("where they come from", seen["configOrigins"], origins)
    turn = {
        "answer": ANSWER,
        "status": "completed",
        "error": None,
        "items": ["userMessage", "agentMessage"],
        "lastTokens": [7, 3, 10],
    }
    totals = [[7, 3, 10], [14, 6, 20]]
    require_equal("the turns", seen["turns"], [{**turn, "totalTokens": it} for it in totals])


def _sent(bench, stand_in, overrides, thread):
    """Checks the messages between the SDK and the server."""
    flags = [word for override in overrides for word in ("--config", override)]
    expected = [*flags, "app-server", "--listen", "stdio://"]
    require_equal("the arguments", stand_in.starts(), [expected])
    record = stand_in.record()
    calls, before = require_calls(
        record, ["initialize", "account/read", "model/list", "config/read"]
    )
    require_equal(
        "the requests since",
        [call.method for call in calls[len(before) :]],
        ["thread/start", *("turn/start" for _ in _PROMPTS)],
    )
    require_equal("the home", before[0].result["codexHome"], str(bench.server_home))
    begun = calls[len(before)].result
    require_equal("the thread", begun["thread"]["id"], thread)
    # The client names no folder, so the server uses its working folder.
    require_equal("the thread's folder", begun["cwd"], str(bench.workspace))
    Told(record, thread).require_turns(_PROMPTS)
    pieces = [delta for delta in _deltas(record) if delta == PIECES[0]]
    require_equal("the first deltas that came alone", len(pieces), len(_PROMPTS))
    require_equal("the client's notifications", record.notified(CLIENT), ["initialized"])
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())


def _deltas(record):
    told = [message for message, _ in record.told()]
    found = [message for message in told if message.get("method") == "item/agentMessage/delta"]
    return [message["params"]["delta"] for message in found]


CHECKS = {
    "python-sdk": sync_client,
    "python-sdk-async": async_client,
    "python-sdk-threads": threads,
    "python-sdk-goal": goal,
    "python-sdk-tools": tools,
}
