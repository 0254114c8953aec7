"""Starts `codex --remote`, and records the messages between it and the server."""

from recorder import Record, Relay
from terminal import Terminal

EMPTY_PROMPT = "Ask Codex to do anything"
#: It sends this request at the start, and continues after an error.
SPARED = ["account/bedrock/checkGovCloudRequirements"]

_TOKEN_VARIABLE = "REMOTE_TOKEN"


def recorded(bench, server):
    """A record, and the relay that fills it, in front of a server on TCP."""
    record = _record(bench)
    relay = Relay.tcp(record, server.port)
    bench.afterwards(relay.close)
    return record, relay


def recorded_unix(bench, server, name="relay"):
    record = _record(bench)
    relay = Relay.unix(record, server.address, bench.folder / f"{name}.sock")
    bench.afterwards(relay.close)
    return record, relay


def start_tui(bench, remote, *arguments, token=None, name="client", folder=None):
    environment = bench.environment()
    words = [bench.parts.codex, "--remote", remote, *arguments]
    if token:
        environment[_TOKEN_VARIABLE] = token
        words += ["--remote-auth-token-env", _TOKEN_VARIABLE]
    return Terminal(bench, words, environment, name, folder)


def _record(bench):
    record = Record()
    bench.evidence("the last messages", record.tail)
    return record
