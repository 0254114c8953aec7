"""Rounds in which the server and a plugin call each other in the middle of calls, with full pipes."""

from pathlib import Path

from harness import require, require_equal
from plugin_client import PluginClient, add, configure, text_of, tool_name, write_plugin

_PROGRAM = Path(__file__).with_name("plugin_rounds_plugin.py")
_PLUGIN = "org.rounds"
#: Calls at a time: fewer than a client may have open. Together they are longer than a pipe holds.
_AT_ONCE, _PAD = 10, "x" * 8000
_ROUNDS, _ROUNDS_OF_PROOF = 200, 10_000


def rounds(bench):
    _rounds(bench, _ROUNDS)


def rounds_at_full_size(bench):
    _rounds(bench, _ROUNDS_OF_PROOF)


def _rounds(bench, count):
    """Every call has one response, which is its own; then the plugin serves a turn, and the server ends."""
    configure(bench)
    add(bench, write_plugin(bench.folder / "plugin", _PLUGIN, _PROGRAM))
    client = PluginClient(bench)
    for first in range(0, count, _AT_ONCE):
        sent = {}
        for number in range(first, first + _AT_ONCE):
            params = {"number": number, "pad": _PAD, "batch": first}
            call = {"pluginId": _PLUGIN, "method": "act", "params": params}
            sent[client._send("plugin/call", call)] = number
        for message in client._messages():
            number = sent.pop(message.get("id"), None)
            if number is not None:
                result = message.get("result")
                require(result == {"result": {"number": number}}, f"the response to call {number} is {message}")
            if not sent:
                break
        require(not sent, f"the server ended before {len(sent)} calls")
    item = client.call_tool(tool_name(_PLUGIN), {"number": 7, "batch": 0})
    require_equal("the call in a turn", (item["status"], text_of(item)), ("completed", '{"number":7}'))
    print(f"figure: {count} rounds of calls inside calls, and every call ended")
    client.leave()


CHECKS = {
    "plugin-rounds": rounds,
}
#: With 10,000 rounds.
PROOFS = {
    "plugin-rounds-full": rounds_at_full_size,
}
