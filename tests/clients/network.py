"""Network connections, as strace shows: none before the first turn, and none of the demo to other machines."""

import shlex
import shutil
import time

from harness import require, require_equal, run_client
from mock_model import MockModel, says
from stdio_client import StdioClient

#: Socket families that can reach other machines.
_AWAY = ("AF_INET", "AF_NETLINK", "AF_PACKET")
#: Calls that name a peer, and the families of peers on a network.
_CALLS_WITH_PEER = "connect,sendto,sendmsg,sendmmsg"
_NETWORK = ("sa_family=AF_INET", "sa_family=AF_PACKET")
#: The demo takes less than a second.
_DEMO_S_MAX = 10


def at_start(bench):
    """The settings name a vendor, its key and a proxy; the first turn connects only to the model."""
    model = MockModel(bench, [("hello", says("hello"))])
    (bench.server_home / "config.toml").write_text('model = "openai/gpt-5"\n')
    named = {"OPENAI_API_KEY": "k", "HTTPS_PROXY": "http://192.0.2.1:3128"}
    traced = Traced(bench)
    for word in ("--version", "--help"):
        code, out, _ = run_client(bench, [bench.raddle, word], bench.environment(**named))
        require(code == 0 and out, f"`raddle {word}` ended with {code} and wrote {out!r}")
        require_equal(f"the connections of `raddle {word}`", traced.seen(), [])
    # The first start also tests the sandbox: whether a sandboxed command reaches a local listener.
    code, _, _ = run_client(bench, [bench.raddle, "doctor"], bench.environment(**named))
    require_equal("the exit code of `raddle doctor`", code, 0)
    called = [line for line in traced.seen() if "connect(" in line]
    away = [line for line in called if 'inet_addr("127.0.0.1")' not in line]
    require_equal("the connections of the sandbox test", away, [])
    StdioClient(bench, **named).leave()
    require_equal("the connections of a server with a new thread", traced.seen(), [])

    # Proves that the trace records connections at all.
    client = StdioClient(bench, model.settings, **named)
    require_equal("the answer", client.turn("hello").text, "hello")
    client.leave()
    seen = traced.seen()
    connected = [line for line in seen if "connect(" in line]
    away = [line for line in connected if f"htons({model.port})" not in line]
    require(connected, f"the trace has no connection to the model: {seen}")
    require_equal("other connections", away, [])


def demo(bench):
    """`raddle demo` in an empty home reaches nothing but this machine, leaves nothing behind, and is fast."""
    home, temporary = bench.folder / "empty-home", bench.folder / "temporary"
    folders = {"HOME": str(home), "RADDLE_HOME": str(home / "raddle"), "TMPDIR": str(temporary)}
    # The default level. At a lower one, the demo logs that the server it killed reads no more.
    folders["RADDLE_LOG"] = "warn"
    for folder in (home, temporary):
        folder.mkdir()

    def seconds():
        begun = time.monotonic()
        code, out, err = run_client(bench, [bench.raddle, "demo"], bench.environment(**folders))
        taken = time.monotonic() - begun
        require_equal("the exit code and the errors of the demo", (code, err), (0, ""))
        require("The turn ends: completed" in out, f"the demo does not complete its turn: {out}")
        left = [*home.iterdir(), *temporary.iterdir()]
        require_equal("the files that the demo leaves", left, [])
        return taken

    taken = seconds()
    traced = Traced(bench, _CALLS_WITH_PEER)
    seconds()
    called = [line for line in traced.lines() if any(family in line for family in _NETWORK)]
    away = [line for line in called if 'inet_addr("127.0.0.1")' not in line]
    # The servers connect to the model inside the demo, so the trace records connections.
    require(called, "the trace has no connection to the model of the demo")
    require_equal("the connections of the demo to other machines", away, [])
    print(f"        demo: {taken:.1f} s")
    # Only the limit of time is tried again.
    bench.has_limit = True
    require(taken < _DEMO_S_MAX, f"the demo takes {taken:.1f} s, the limit is {_DEMO_S_MAX} s")


class Traced:
    """Traces the program of the bench from now on."""

    def __init__(self, bench, calls="socket,connect"):
        self._trace = bench.folder / "trace"
        strace = shutil.which("strace")
        require(strace, "there is no strace; run `cargo xtask parts debian`")
        options = ["-f", "-qq", "-e", f"trace={calls}", "-o", str(self._trace)]
        watched = shlex.join([strace, *options, str(bench.raddle)])
        bench.raddle = bench.folder / "raddle-watched"
        bench.raddle.write_text(f'#!/bin/sh\nexec {watched} "$@"\n')
        bench.raddle.chmod(0o755)

    def seen(self):
        """Returns the network calls of the last run. Each run starts a new trace."""
        return [line for line in self.lines() if any(family in line for family in _AWAY)]

    def lines(self):
        """Returns all traced calls of the last run."""
        return self._trace.read_text().splitlines()


CHECKS = {
    "network-at-start": at_start,
    "demo-offline": demo,
}
