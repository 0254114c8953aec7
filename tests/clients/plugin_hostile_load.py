"""The delay of others beside hostile plugins that are called without pause.

Rounds with hostile plugins alternate with rounds in which as many plugins that behave are called. So the ratio does
not contain the cost of the calls themselves, and load of the machine falls on both kinds.
"""

import statistics
import time

from harness import require, require_equal
from mock_model import calls
from plugin_client import PluginClient, add, configure, tool_name, write_plugin
from plugin_hostile_cases import PROGRAM

_KINDS = ["flood", "huge-events", "stderr", "imitations", "garbage", "unknown-ids", "duplicate-ids", "huge-result"]
_GOOD = [f"good{number}" for number in range(len(_KINDS))]
#: Calls of each plugin in a round: more than a round lasts.
_CALLS = 500
#: Rounds of each kind, and the turns that are measured in one.
_ROUNDS, _TURNS = 7, 100
_RATIO_MAX = 1.5


def others(bench):
    """The median of the 99th percentiles of a turn in another thread, beside hostile plugins and beside good ones."""
    bench.has_limit = True
    names = _KINDS + _GOOD
    configure(bench, [(_order(name), [calls(tool_name(_id(name)), {})] * _CALLS) for name in names])
    for name in names:
        words = [name, 1] if name == "stderr" else [name]
        add(bench, write_plugin(bench.folder / "plugins" / name, _id(name), PROGRAM, words))
    client = LoadClient(bench)
    # The processes are started, and the turns call what they should.
    threads = client.start(bench.workspace, names, is_followed=True)
    client.require_called(threads)
    client.end_threads(threads)
    client.percentile()
    good, hostile = [], []
    for _ in range(_ROUNDS):
        for names, times in ((_GOOD, good), (_KINDS, hostile)):
            threads = client.start(bench.workspace, names)
            times.append(client.percentile())
            client.end_threads(threads)
    ratio = statistics.median(hostile) / statistics.median(good)
    print(f"figure: p99 of a turn beside hostile plugins: {ratio:.2f} of that beside good ones")
    require(ratio <= _RATIO_MAX, f"p99 beside good plugins {_shown(good)}, beside hostile ones {_shown(hostile)}")
    client.leave()


def _id(name):
    return f"org.hostile.{name}"


def _order(name):
    return f"call {name} again and again"


def _shown(times):
    return f"{', '.join(f'{1000 * it:.0f}' for it in times)} ms"


class LoadClient(PluginClient):
    """A client with one thread of its own, beside threads that call plugins."""

    # Their events would be a part of the delay.
    capabilities = None

    def start(self, folder, names, is_followed=False):
        """Starts a thread for each plugin, whose turn calls it many times. Its messages would be a part of the delay."""
        threads = []
        for name in names:
            thread = self.call("thread/start", {"cwd": str(folder)})["thread"]["id"]
            said = [{"type": "text", "text": _order(name)}]
            self.call("turn/start", {"threadId": thread, "input": said})
            if not is_followed:
                self.call("thread/unsubscribe", {"threadId": thread})
            threads.append(thread)
        return threads

    def end_threads(self, threads):
        """Deletes the threads, which ends their turns."""
        for thread in threads:
            self.call("thread/delete", {"threadId": thread})

    def require_called(self, threads):
        """Waits until a call of each thread has ended, and follows them no longer."""
        waiting = set(threads)
        while waiting:
            params = self.until("item/completed")["params"]
            if params["item"]["type"] == "mcpToolCall" and params["item"]["status"] == "completed":
                waiting.discard(params["threadId"])
        for thread in threads:
            self.call("thread/unsubscribe", {"threadId": thread})

    def percentile(self):
        """Returns the 99th percentile of the duration of a turn, in seconds."""
        times = []
        for _ in range(_TURNS):
            begun = time.monotonic()
            require_equal("how a turn ended", self.turn("hello").status, "completed")
            times.append(time.monotonic() - begun)
        return sorted(times)[_TURNS * 99 // 100 - 1]


#: Too sensitive to the load of the machine for CI.
PROOFS = {
    "plugin-hostile-load": others,
}
