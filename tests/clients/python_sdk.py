"""The stock Python SDK, given our program as `codex_bin`."""

import json
from pathlib import Path

from harness import require, require_equal, require_no_panic, run_client
from recorder import CLIENT
from stand_in import StandIn
from start_up import require_start_up

_PROGRAM = Path(__file__).with_name("python_sdk_program.py")
_OVERRIDES = ['model="loom"', "sandbox_workspace_write.network_access=true"]


def sync_client(bench):
    _drives(bench, "sync")


def async_client(bench):
    _drives(bench, "async")


def _drives(bench, kind):
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    command = [bench.parts.sdk_python, "-B", _PROGRAM, kind, stand_in.program, *_OVERRIDES]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    _saw(json.loads(out))
    _sent(bench, stand_in)


def _saw(seen):
    """What a user of the SDK gets to see."""
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
    require_equal("whether a login is needed", seen["requiresOpenaiAuth"], False)
    require_equal("the models", seen["models"], [["loom", True]])
    require_equal("the configured model", seen["configModel"], "loom")
    require_equal("the configured network access", seen["configNetworkAccess"], True)
    require_equal(
        "where they come from",
        seen["configOrigins"],
        {"model": "sessionFlags", "sandbox_workspace_write.network_access": "sessionFlags"},
    )
    require_equal(
        "what thread_start raised",
        seen["threadStart"],
        {
            "class": "MethodNotFoundError",
            "code": -32601,
            "message": "method not found: thread/start",
        },
    )


def _sent(bench, stand_in):
    """What passed between the two."""
    flags = [word for override in _OVERRIDES for word in ("--config", override)]
    expected = [*flags, "app-server", "--listen", "stdio://"]
    require_equal("the arguments", stand_in.starts(), [expected])
    record = stand_in.record()
    before = require_start_up(record, ["initialize", "account/read", "model/list", "config/read"])
    require_equal("the home", before[0].result["codexHome"], str(bench.server_home))
    require_equal("the client's notifications", record.notified(CLIENT), ["initialized"])
    require_equal("the server's exit code", stand_in.exits(), [0])
    require_no_panic(stand_in.stderr())


CHECKS = {
    "python-sdk": sync_client,
    "python-sdk-async": async_client,
}
