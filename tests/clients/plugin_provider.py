"""A model provider that is a plugin, behind the stock Python SDK."""

import json
import shutil
from pathlib import Path

from harness import require, require_equal, run_client
from stand_in import StandIn

_PLUGIN = Path(__file__).with_name("plugin_provider_plugin.py")
_PROGRAM = Path(__file__).with_name("plugin_provider_program.py")
_MANIFEST = """
id = "org.parrot"
version = "1"
entrypoint = ["python3", "main.py"]
[contributions.model_provider]
method = "model/answer"
"""


def turns(bench):
    # The folders of threads are below the folder of the check, and no plugin may lie in one.
    folder = bench.folder / "parrot"
    folder.mkdir()
    (folder / "plugin.toml").write_text(_MANIFEST)
    shutil.copy(_PLUGIN, folder / "main.py")
    (bench.server_home / "config.toml").write_text('model_provider = "org.parrot"\n')
    add = [bench.raddle, "plugin", "add", folder]
    code, _, err = run_client(bench, add, bench.environment())
    require_equal(f"the exit code of the installation ({err})", code, 0)
    stand_in = StandIn(bench.folder, bench.raddle)
    bench.evidence("the last messages", lambda: stand_in.record().tail())
    bench.evidence("the server's stderr", lambda: stand_in.stderr().splitlines()[-40:])
    program = [bench.parts.sdk_python, "-B", _PROGRAM, stand_in.program]
    code, out, _ = run_client(bench, [*program, "parrot-1", "parrot-9"], bench.environment())
    require_equal("the program's exit code", code, 0)
    good, bad = json.loads(out)
    require_equal("the end of the turn", (good["status"], good["error"]), ("completed", None))
    kinds = [item["type"] for item in good["items"]]
    expected = ["userMessage", "reasoning", "commandExecution", "agentMessage"]
    require_equal("the items", kinds, expected)
    command, message = good["items"][2:]
    require_equal("the output of the tool", command["aggregatedOutput"], "flax\n")
    require_equal("the answer", message["text"], "It says: flax")
    counts = good["usage"]["inputTokens"], good["usage"]["outputTokens"]
    require_equal("the usage of two calls", counts, (14, 6))
    require_equal("the end for an unknown model", bad["status"], "failed")
    reason = "there is no such model; use parrot-1"
    require(reason in bad["error"]["message"], f"the error is {bad['error']}")


CHECKS = {"python-sdk-plugin-provider": turns}
