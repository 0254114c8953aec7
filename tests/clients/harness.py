"""Basics of every check: a temporary folder, a server, and assertions."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

#: Timeout. From a slow disk, the three programs of the ACP adapter have taken 20 s to start.
DEADLINE_S = 90
#: An unprivileged user.
_NOBODY = 65534
METHOD_NOT_FOUND = -32601


class Failure(Exception):
    """A failed check. The text has the expected and the actual value."""


def require(true, otherwise):
    if not true:
        raise Failure(otherwise)


def require_equal(what, found, expected):
    require(found == expected, f"{what}: expected {expected!r}, found {found!r}")


def wait_until(found, deadline_s=DEADLINE_S):
    """Polls until `found()` returns a true value, and returns it; None after the timeout."""
    end = time.monotonic() + deadline_s
    while True:
        if value := found():
            return value
        if time.monotonic() > end:
            return None
        time.sleep(0.02)


def free_port():
    """Returns a free port, for servers that need one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Parts:
    """The real clients, as `cargo xtask parts` installs them."""

    def __init__(self, root):
        self.root = root
        self.codex = self._one("codex-0.166.0/node_modules/@openai/codex-*/vendor/*/bin/codex")
        self.sdk_python = self._one("openai-codex-0.163.0/bin/python")
        self.typescript_sdk = self._one(
            "codex-sdk-0.163.0/node_modules/@openai/codex-sdk/dist/index.js"
        )
        self.node = self._one("node-24.19.0/bin/node")
        self.acpx = self._one("acpx-0.19.1/node_modules/.bin/acpx")
        self.llama_python = self._one("llama-2026.10.11549/bin/python")
        self.vendors_python = self._one("vendors-2026.11/bin/python")
        self.aimock = self._one("aimock-1.43.0/node_modules/.bin/llmock")
        self.prometheus_python = self._one("prometheus-client-0.26.0/bin/python")
        self.codex_acp = self._one("acpx-0.19.1/node_modules/.bin/codex-acp")

    def python(self, name, version):
        """Returns the Python of a client from PyPI."""
        return self._one(f"{name}-{version}/bin/python")

    def package(self, name, version, path):
        """Returns a file of a client from npm, by its path below `node_modules`."""
        return self._one(f"{name}-{version}/node_modules/{path}")

    def version(self, name):
        """Returns the version of a part, from the name of its folder."""
        found = [it.name.removeprefix(f"{name}-") for it in self.root.glob(f"{name}-[0-9]*/")]
        require_equal(f"how many versions of {name} there are", len(found), 1)
        return found[0]

    def _one(self, pattern):
        found = sorted(self.root.glob(pattern))
        count = len(found)
        require(count == 1, f"{count} files match {self.root / pattern}; run `cargo xtask parts`")
        return found[0]


class Bench:
    """The environment of one check. It is deleted when the check ends."""

    def __init__(self, folder, raddle, parts):
        self.folder = folder
        self.raddle = raddle
        self.parts = parts
        self.server_home = self._made("server-home")
        self.client_home = self._made("client-home")
        self.workspace = self._made("workspace")
        #: The working folder of a server on a socket. A client starts a server on stdio itself.
        self.server_folder = self._made("server-folder")
        #: The user that runs the server.
        self.server_user = os.geteuid()
        #: Whether it reads a terminal, whose timing the check then depends on.
        self.on_screen = False
        #: Whether it checks a deadline in seconds.
        self.has_limit = False
        #: The rows of results.json that the check has, if it is of a third-party client.
        self.results = []
        self._endings = []
        self._evidence = []

    def _made(self, name):
        folder = self.folder / name
        folder.mkdir(parents=True)
        return folder

    def have_no_rights(self):
        """Runs the server as an unprivileged user from now on, also if root runs the checks."""
        if os.geteuid() != 0:
            return
        for folder in (self.folder.parent, self.folder):
            folder.chmod(0o711)
        for folder in (self.server_home, self.client_home, self.workspace, self.server_folder):
            for path in (folder, *folder.rglob("*")):
                os.chown(path, _NOBODY, _NOBODY)
        self.server_user = _NOBODY
        # Other users may have no access to its folder.
        program = shutil.copy(self.raddle, self.folder / "raddle")
        os.chmod(program, 0o755)
        self.raddle = self.folder / "raddle-of-nobody"
        self.raddle.write_text(
            "#!/bin/sh\n"
            f"exec setpriv --reuid {_NOBODY} --regid {_NOBODY} --clear-groups -- {program} \"$@\"\n"
        )
        self.raddle.chmod(0o755)

    def environment(self, **more):
        """Returns an environment without the caller's variables: no keys, no proxies, no settings of another Codex."""
        programs = [str(self.parts.node.parent), "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            "PATH": os.pathsep.join(programs),
            "HOME": str(self.client_home),
            "CODEX_HOME": str(self.client_home),
            "RADDLE_HOME": str(self.server_home),
            # Leftover processes are found by their environment, so it must stay readable.
            "RADDLE_DUMPABLE": "1",
            "RADDLE_LOG": "info",
            "RADDLE_LOG_FORMAT": "json",
            "LANG": "C.UTF-8",
            **more,
        }

    def afterwards(self, end):
        """Registers a cleanup for the end of the check; the last one runs first."""
        self._endings.append(end)

    def serve(self, server):
        """Runs a server of the module `socketserver` until the check ends."""
        # Closing waits for this poll interval.
        serve = {"poll_interval": 0.02}
        threading.Thread(target=server.serve_forever, kwargs=serve, daemon=True).start()
        self.afterwards(server.server_close)
        self.afterwards(server.shutdown)

    def evidence(self, title, lines):
        """Registers output for a failed check; `lines()` is called only then."""
        self._evidence.append((title, lines))

    def show(self):
        for title, lines in self._evidence:
            print(f"    {title}:")
            for line in lines():
                print(f"      | {line}")

    def close(self):
        while self._endings:
            self._endings.pop()()
        if not wait_until(lambda: not self.processes(), deadline_s=30):
            names = []
            for pid, name in self.processes():
                names.append(f"{name} ({pid})")
                _kill(pid)
            raise Failure(f"processes were left behind: {', '.join(names)}")

    def processes(self):
        """Returns the processes of this check: those with its folder in their environment."""
        mark = os.fsencode(str(self.folder)) + b"/"
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append((int(entry.name), (entry / "comm").read_text().strip()))
            except OSError:
                # It has ended, or it belongs to another user.
                continue
        return found


class Server:
    """`raddle app-server` on a socket."""

    def __init__(self, bench, *arguments, **environment):
        self._log = bench.folder / "server.stderr"
        bench.evidence("the server's stderr", lambda: self.stderr().splitlines()[-40:])
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [bench.raddle, "app-server", *arguments],
                env=bench.environment(**environment),
                cwd=bench.server_folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        bench.afterwards(self._end)
        self.address = wait_until(self._announced)
        require(self.address, "the server did not print its address")

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def stderr(self):
        return self._log.read_text(errors="replace")

    def refusals(self):
        """Returns the status of each HTTP request that the server logged as rejected."""
        entries = [json.loads(line) for line in self.stderr().splitlines() if line.startswith("{")]
        statuses = [entry.get("fields", {}).get("status") for entry in entries]
        return [status for status in statuses if status is not None]

    def _announced(self):
        require(self._process.poll() is None, "the server ended at once")
        found = re.search(r"listening on (?:ws|unix)://(\S+)\s", self.stderr())
        return found and found.group(1)

    def stop(self):
        """Ends the server, and checks its exit code and its output."""
        self._process.send_signal(signal.SIGTERM)
        try:
            out, _ = self._process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise Failure("the server did not end on SIGTERM") from None
        require_equal("the server's exit code", self._process.returncode, 0)
        require_equal("the server's stdout", out, b"")
        require_no_panic(self.stderr())

    def kill(self):
        """Kills the server without warning."""
        self._process.kill()
        self._process.wait()

    def _end(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def require_no_panic(stderr):
    require("panicked" not in stderr, "the server panicked")


def run_client(bench, command, environment, deadline_s=DEADLINE_S):
    """Runs a client to its end; returns its exit code, stdout and stderr."""
    process = subprocess.Popen(
        [str(word) for word in command],
        env=environment,
        cwd=bench.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Its own process group, so that its children end with it.
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        bench.evidence("the client's stdout", out.splitlines)
        bench.evidence("the client's stderr", err.splitlines)
        raise Failure(f"the client did not end within {deadline_s} s") from None
    bench.evidence("the client's stdout", out.splitlines)
    bench.evidence("the client's stderr", err.splitlines)
    return process.returncode, out, err


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
