"""Writes a home with an old binary: a fixture that every later version must open.

Usage: python3 tests/home-fixture/write.py --raddle BINARY --out FOLDER

Writes FOLDER/home.tar.gz and FOLDER/expected.json, which `crates/raddle/tests/it/homes.rs` reads. The
script uses only requests and mock markers that every version since step 8 has. The home is at a fixed
path, so that nothing in it names this machine.
"""

import argparse
import gzip
import io
import json
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

HOME = Path("/tmp/raddle-home")
WORK = HOME / "work"
DEADLINE_S = 90
BYTES_MAX = 200_000
#: Written into the configuration in place of the address of the mock.
MODEL = "http://127.0.0.1:4010/v1"
_FREE = {"approvalPolicy": "never", "sandboxPolicy": {"type": "dangerFullAccess"}}

_CONFIG = f"""\
model = "mock"
model_provider = "mock"
approval_policy = "on-request"
sandbox_mode = "workspace-write"

[model_providers.mock]
base_url = "{MODEL}"
key_file = "{HOME}/key"
"""

_RULES = """\
unattended = "park"

[[rule]]
command = ["git", "push"]
verdict = "deny"
reason = "Pushing is for people."
"""


def main():
    parser = argparse.ArgumentParser(description="Writes a home with an old binary.")
    parser.add_argument("--raddle", type=Path, required=True, help="the old binary")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the fixture")
    arguments = parser.parse_args()
    raddle = arguments.raddle.resolve()
    if HOME.exists():
        sys.exit(f"{HOME} exists; remove it first")
    WORK.mkdir(parents=True)
    try:
        expected = _write(raddle)
        (HOME / "config.toml").write_text(_CONFIG)
        _require_neutral([str(raddle)])
        packed = _packed()
    finally:
        shutil.rmtree(HOME)
    if len(packed) > BYTES_MAX:
        sys.exit(f"the home has {len(packed)} bytes, more than {BYTES_MAX}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "home.tar.gz").write_bytes(packed)
    text = json.dumps(expected, indent=2, ensure_ascii=False)
    (arguments.out / "expected.json").write_text(text + "\n")
    print(f"{len(expected['threads'])} threads in {len(packed)} bytes: {arguments.out}")


def _write(raddle):
    """Writes the threads, kills the server, and returns what the fixture contains."""
    key = HOME / "key"
    key.write_text("a-key-of-no-vendor\n")
    key.chmod(0o600)
    (HOME / "rules.toml").write_text(_RULES)
    with tempfile.TemporaryDirectory() as elsewhere, _Mock(raddle, elsewhere) as mock:
        (HOME / "config.toml").write_text(_CONFIG.replace(MODEL, mock.address))
        with _Server(raddle, elsewhere) as server:
            expected = _threads(server)
            server.kill()
    version = subprocess.run([raddle, "--version"], check=True, stdout=subprocess.PIPE, text=True)
    return {"version": version.stdout.strip(), **expected}


def _threads(server):
    """Writes the threads. The last is left with an open approval request and queued input."""
    threads = []

    def done(thread, **more):
        read = server.call("thread/read", {"threadId": thread, "includeTurns": True})["thread"]
        turns = [_turn(it) for it in read["turns"]]
        threads.append({"id": thread, "name": read["name"], "archived": False, "turns": turns, **more})

    worked = server.start()
    server.turn(worked, 'MOCK call name=exec_command arguments={"cmd": "echo woven; echo cloth > made"}', **_FREE)
    patch = r"*** Begin Patch\n*** Add File: woven\n+cloth\n*** End Patch\n"
    server.turn(worked, f'MOCK call name=apply_patch input="{patch}"', **_FREE)
    server.call("thread/name/set", {"threadId": worked, "name": "A worked thread"})
    done(worked)

    fork = server.call("thread/fork", {"threadId": worked})["thread"]["id"]
    server.turn(fork, "only in the fork")
    done(fork)

    archived = server.start()
    server.turn(archived, "put away")
    done(archived, archived=True)
    server.call("thread/archive", {"threadId": archived})

    compacted = server.start()
    for _ in range(3):
        server.turn(compacted, "MOCK reasoning say=\"let me see\" text n=100 size=16")
    server.call("thread/compact/start", {"threadId": compacted})
    server.until_end(compacted)
    server.turn(compacted, "after the compaction")
    done(compacted)

    repeatable = server.start()
    server.turn(repeatable, "with an idempotency key", clientRequestId="fixture-1")
    server.turn(repeatable, "MOCK refused")
    done(repeatable)

    asking = server.start()
    command = 'MOCK call name=exec_command arguments={"cmd": "touch asked"}'
    turn = server.begin(asking, command, approvalPolicy="untrusted")
    server.until(lambda it: it.get("method") == "item/commandExecution/requestApproval")
    queued = {"threadId": asking, "clientUserMessageId": "mine", "input": _input("after the answer")}
    server.call("thread/queue/add", queued)
    return {"threads": threads, "asking": {"thread": asking, "turn": turn, "queued": "after the answer"}}


def _turn(turn):
    return {"id": turn["id"], "status": turn["status"], "items": [_item(it) for it in turn["items"]]}


def _item(item):
    """Returns the members of an item that every version shows alike."""
    shown = {"id": item["id"], "type": item["type"]}
    for name in ("text", "aggregatedOutput", "exitCode", "status"):
        if name in item:
            shown[name] = item[name]
    if "content" in item and item["type"] == "userMessage":
        shown["text"] = "".join(it.get("text", "") for it in item["content"])
    return shown


def _input(text):
    return [{"type": "text", "text": text}]


class _Mock:
    """The scripted model of the binary."""

    def __init__(self, raddle, folder):
        environment = {"RADDLE_HOME": folder, "PATH": os.environ["PATH"]}
        command = [raddle, "mock", "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.address = self._process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


class _Server:
    """A server on stdio, with one client."""

    def __init__(self, raddle, folder):
        environment = {"RADDLE_HOME": str(HOME), "HOME": str(HOME), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        self._log = Path(folder) / "server.stderr"
        with self._log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [raddle, "app-server"],
                env=environment,
                cwd=WORK,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        # Reading blocks, so the server is killed at the deadline.
        self._watchdog = threading.Timer(DEADLINE_S, self._process.kill)
        self._watchdog.start()
        self._last_id = 0
        extensions = {"raddle/seq": {}, "raddle/idempotency": {}}
        capabilities = {"experimentalApi": True, "extensions": extensions}
        client = {"name": "fixture", "version": "1"}
        self.call("initialize", {"clientInfo": client, "capabilities": capabilities})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._watchdog.cancel()
        self.kill()
        self._process.stdin.close()
        self._process.stdout.close()

    def kill(self):
        """Kills the server, as the system does when memory is short."""
        self._process.kill()
        self._process.wait()

    def start(self):
        """Starts a thread."""
        return self.call("thread/start", {"cwd": str(WORK)})["thread"]["id"]

    def begin(self, thread, text, **more):
        """Starts a turn, and returns its id."""
        return self.call("turn/start", {"threadId": thread, "input": _input(text), **more})["turn"]["id"]

    def turn(self, thread, text, **more):
        """Runs a turn to its end."""
        self.begin(thread, text, **more)
        self.until_end(thread)

    def until_end(self, thread):
        def is_end(message):
            return message.get("method") == "turn/completed" and message["params"]["threadId"] == thread

        self.until(is_end)

    def call(self, method, params):
        """Returns the result of a request."""
        self._last_id += 1
        request = {"id": self._last_id, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request, separators=(",", ":")) + "\n")
        self._process.stdin.flush()
        response = self.until(lambda it: it.get("id") == request["id"] and "method" not in it)
        if "result" not in response:
            sys.exit(f"{method}: {response}")
        return response["result"]

    def until(self, is_it):
        """Returns the next message that fits."""
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if is_it(message):
                return message
        sys.exit(f"the server ended:\n{self._log.read_text(errors='replace')[-4000:]}")


def _files():
    """Returns the files of the home that are packed. Sockets and SQLite's shared memory belong to a process."""
    return sorted(it for it in HOME.rglob("*") if it.is_dir() or _is_packed(it))


def _is_packed(path):
    return stat.S_ISREG(path.lstat().st_mode) and not path.name.endswith("-shm")


def _require_neutral(needles):
    """Exits if a file names this machine or its user."""
    user = pwd.getpwuid(os.getuid())
    needles = [*needles, socket.gethostname()]
    if user.pw_name != "root":
        needles += [user.pw_name, user.pw_dir]
    for path in _files():
        data = b"" if path.is_dir() else path.read_bytes()
        for needle in needles:
            if needle.encode() in data:
                sys.exit(f"{path} contains {needle!r}, a name of this machine")


def _packed():
    """Returns the home as an archive that depends on its content alone."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in _files():
            entry = archive.gettarinfo(path, str(path.relative_to(HOME)))
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            entry.mode &= 0o700
            if path.is_dir():
                archive.addfile(entry)
            else:
                with path.open("rb") as file:
                    archive.addfile(entry, file)
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as zipped:
        zipped.write(tar.getvalue())
    return out.getvalue()


if __name__ == "__main__":
    main()
