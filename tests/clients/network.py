"""Nobody is called before there is something to ask: what strace sees of the network."""

import shlex
import shutil

from harness import require, require_equal, run_client
from mock_model import MockModel, says
from stdio_client import StdioClient

#: Families of sockets that lead away from this machine, or that could.
_AWAY = ("AF_INET", "AF_NETLINK", "AF_PACKET")


def at_start(bench):
    """A vendor, its key and a proxy are named, all of which could be called; the first turn calls the model alone."""
    model = MockModel(bench, [("hello", says("hello"))])
    (bench.server_home / "config.toml").write_text('model = "openai/gpt-5"\n')
    named = {"OPENAI_API_KEY": "k", "HTTPS_PROXY": "http://192.0.2.1:3128"}
    traced = _Traced(bench)
    for word in ("--version", "--help"):
        code, out, _ = run_client(bench, [bench.raddle, word], bench.environment(**named))
        require(code == 0 and out, f"`raddle {word}` ended with {code} and wrote {out!r}")
        require_equal(f"what `raddle {word}` called", traced.seen(), [])
    # The first of all starts also tries the fence: whether a command inside it reaches a listener of this machine.
    code, _, _ = run_client(bench, [bench.raddle, "doctor"], bench.environment(**named))
    require_equal("how `raddle doctor` ended", code, 0)
    called = [line for line in traced.seen() if "connect(" in line]
    away = [line for line in called if 'inet_addr("127.0.0.1")' not in line]
    require_equal("what trying the fence called", away, [])
    StdioClient(bench, **named).leave()
    require_equal("what a server with a new thread called", traced.seen(), [])

    # Without this, to have seen nothing would mean nothing.
    client = StdioClient(bench, model.settings, **named)
    require_equal("the answer", client.turn("hello").text, "hello")
    client.leave()
    seen = traced.seen()
    connected = [line for line in seen if "connect(" in line]
    away = [line for line in connected if f"htons({model.port})" not in line]
    require(connected, f"the model was asked, and not seen to be: {seen}")
    require_equal("who else was called", away, [])


class _Traced:
    """From now on, the program of the bench is watched."""

    def __init__(self, bench):
        self._trace = bench.folder / "trace"
        strace = shutil.which("strace")
        require(strace, "there is no strace; run `cargo xtask parts debian`")
        options = ["-f", "-qq", "-e", "trace=socket,connect", "-o", str(self._trace)]
        watched = shlex.join([strace, *options, str(bench.raddle)])
        bench.raddle = bench.folder / "raddle-watched"
        bench.raddle.write_text(f'#!/bin/sh\nexec {watched} "$@"\n')
        bench.raddle.chmod(0o755)

    def seen(self):
        """What the last run did that leads away. Each begins anew."""
        lines = self._trace.read_text().splitlines()
        return [line for line in lines if any(family in line for family in _AWAY)]


CHECKS = {
    "network-at-start": at_start,
}
