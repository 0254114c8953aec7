"""What plugins cost a server that has none, as strace shows."""

from harness import require, require_equal
from network import Traced
from plugin_client import PluginClient, add, configure, text_of, tool_name, write_plugin
from plugin_hostile_cases import PROGRAM

_PLUGIN = "org.hostile.idle"


def nothing(bench):
    """Without plugins, turns open none of their files and start no process. With one, the trace shows both."""
    configure(bench)
    folder = write_plugin(bench.folder / "idle", _PLUGIN, PROGRAM, ["idle"])
    raddle, traced = bench.raddle, Traced(bench, "%file")
    marks = ("/plugin.toml", f"{bench.server_home}/plugins")

    def trace(client):
        for _ in range(3):
            require_equal("how a turn ended", client.turn("hello").status, "completed")
        client.leave()
        lines = traced.lines()
        return [it for it in lines if any(mark in it for mark in marks)], [it for it in lines if "main.py" in it]

    require_equal("what the server does without plugins", trace(PluginClient(bench)), ([], []))
    bench.raddle, watched = raddle, bench.raddle
    add(bench, folder)
    bench.raddle = watched
    client = PluginClient(bench)
    item = client.call_tool(tool_name(_PLUGIN))
    require_equal("the call", (item["status"], text_of(item)), ("completed", "done"))
    files, programs = trace(client)
    require(files and programs, "the trace does not show a plugin")


CHECKS = {
    "idle-without-plugins": nothing,
}
