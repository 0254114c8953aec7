"""The delay of others beside hostile MCP servers that are called without pause.

Rounds with hostile servers alternate with rounds in which as many servers that behave are called. So the ratio does
not contain the cost of the calls themselves, and load of the machine falls on both kinds.
"""

import statistics
import time

from harness import require, require_equal
from mcp_client import McpClient, sections
from mcp_hostile import server
from mock_model import MockModel, calls

_KINDS = ["flood", "progress", "stderr", "changes", "garbage", "unknown-ids", "duplicate-ids", "huge-result"]
_GOOD = [f"good{number}" for number in range(len(_KINDS))]
#: Calls of each server in a round: more than a round lasts.
_CALLS = 500
#: Rounds of each kind, and the turns that are measured in one.
_ROUNDS, _TURNS = 7, 100
_RATIO_MAX = 1.5


def others(bench):
    """The median of the 99th percentiles of a turn in another thread, beside hostile servers and beside good ones."""
    bench.has_limit = True
    names = _KINDS + _GOOD
    model = MockModel(bench, [(_order(name), [calls(f"mcp__{name}__act", {})] * _CALLS) for name in names])
    model.configure(bench, sandbox_mode="workspace-write", approval_policy="never")
    with open(bench.server_home / "config.toml", "a", encoding="utf-8") as file:
        file.write(sections({name: server(name) for name in names}))
    client = LoadClient(bench)
    client.wait_until_connected(names)
    client.percentile()
    good, hostile = [], []
    for _ in range(_ROUNDS):
        for names, times in ((_GOOD, good), (_KINDS, hostile)):
            threads = client.start(bench.workspace, names)
            times.append(client.percentile())
            client.end(threads)
    ratio = statistics.median(hostile) / statistics.median(good)
    print(f"figure: p99 of a turn beside hostile servers: {ratio:.2f} of that beside good ones")
    require(ratio <= _RATIO_MAX, f"p99 beside good servers {_shown(good)}, beside hostile ones {_shown(hostile)}")
    client.leave()


def _order(name):
    return f"call {name} again and again"


def _shown(times):
    return f"{', '.join(f'{1000 * it:.0f}' for it in times)} ms"


class LoadClient(McpClient):
    """A client with one thread of its own, beside threads that call servers."""

    def start(self, folder, names):
        """Starts a thread for each server, whose turn calls it many times. The client does not follow them."""
        threads = []
        for name in names:
            thread = self.call("thread/start", {"cwd": str(folder)})["thread"]["id"]
            said = [{"type": "text", "text": _order(name)}]
            self.call("turn/start", {"threadId": thread, "input": said})
            self.call("thread/unsubscribe", {"threadId": thread})
            threads.append(thread)
        return threads

    def end(self, threads):
        """Deletes the threads, which ends their turns."""
        for thread in threads:
            self.call("thread/delete", {"threadId": thread})

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
    "mcp-hostile-load": others,
}
