"""Tries a binary for another processor in an emulator: its version, a turn, and the stored thread.

The emulator runs one process. A binary that it emulates cannot start itself again, so commands of the
model, the keeper of processes and the sandbox are not tried.

Usage: python3 packages/emulated.py --raddle PROGRAM --emulator QEMU
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

#: Timeout of one process. An emulated program starts slowly.
_DEADLINE_S = 90
_CONFIG = 'model = "mock"\nmodel_provider = "mock"\n'
_MESSAGE = "spun and woven"


class Failure(Exception):
    """A failed check."""


class Server:
    """An emulated server on stdio."""

    def __init__(self, command, home):
        self._ids = 0
        self._process = subprocess.Popen(
            [*command, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(home),
            cwd=home,
            text=True,
        )
        # A server that hangs ends the output, and with it the check.
        self._watchdog = threading.Timer(_DEADLINE_S, self._process.kill)
        self._watchdog.start()
        client = {"name": "emulated", "version": "1"}
        self.request("initialize", {"clientInfo": client})
        self._send({"method": "initialized"})

    def request(self, method, params):
        """Returns the result of a request."""
        self._ids += 1
        identity = self._ids
        self._send({"id": identity, "method": method, "params": params})
        message = self._find(lambda it: it.get("id") == identity and "method" not in it, method)
        if "result" not in message:
            raise Failure(f"{method} failed: {message}")
        return message["result"]

    def notification(self, method):
        """Returns the params of the next notification of this method."""
        return self._find(lambda it: it.get("method") == method, method)["params"]

    def close(self):
        """Ends the server's input, and checks that it ends well."""
        self._process.stdin.close()
        self._process.stdout.read()
        status = self._process.wait()
        self._watchdog.cancel()
        if status != 0:
            raise Failure(f"the server ended with status {status}")

    def kill(self):
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()

    def _send(self, message):
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _find(self, fits, name):
        for line in self._process.stdout:
            message = json.loads(line)
            if fits(message):
                return message
        raise Failure(f"the server ended before {name}, or did not send it in {_DEADLINE_S} s")


def main():
    parser = argparse.ArgumentParser(description="Tries a binary in an emulator.")
    parser.add_argument("--raddle", type=Path, required=True, help="the binary")
    parser.add_argument("--emulator", required=True, help="the emulator, such as qemu-aarch64-static")
    arguments = parser.parse_args()
    command = [arguments.emulator, str(arguments.raddle.resolve())]
    with tempfile.TemporaryDirectory(prefix="raddle-emulated-") as home:
        try:
            print(f"ok: {_version(command, home)}")
            (Path(home) / "config.toml").write_text(_CONFIG)
            thread = _turn(command, home)
            print("ok: a turn")
            _stored(command, home, thread)
            print("ok: the stored thread, read by another process")
        except Failure as failure:
            sys.exit(f"failed: {failure}")


def _version(command, home):
    run = subprocess.run(
        [*command, "--version"],
        capture_output=True,
        env=_environment(home),
        text=True,
        timeout=_DEADLINE_S,
    )
    if run.returncode != 0 or not run.stdout.startswith("raddle "):
        raise Failure(f"--version ended with {run.returncode}: {run.stdout}{run.stderr}")
    return run.stdout.strip()


def _turn(command, home):
    """Runs a turn, in which the mock model repeats the message. Returns the id of the thread."""
    server = Server(command, home)
    try:
        thread = server.request("thread/start", {"cwd": home})["thread"]["id"]
        text = [{"type": "text", "text": _MESSAGE}]
        server.request("turn/start", {"threadId": thread, "input": text})
        turn = server.notification("turn/completed")["turn"]
        if turn["status"] != "completed":
            raise Failure(f"the turn ended as {turn}")
        server.close()
    finally:
        server.kill()
    return thread


def _stored(command, home, thread):
    server = Server(command, home)
    try:
        params = {"threadId": thread, "includeTurns": True}
        turns = server.request("thread/read", params)["thread"]["turns"]
        items = [item for turn in turns for item in turn["items"]]
        answers = [item["text"] for item in items if item["type"] == "agentMessage"]
        if len(answers) != 1 or _MESSAGE not in answers[0]:
            raise Failure(f"the stored thread has the answers {answers}")
        server.close()
    finally:
        server.kill()


def _environment(home):
    return {"HOME": home, "RADDLE_HOME": home, "PATH": os.environ["PATH"]}


main()
