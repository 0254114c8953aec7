"""A program that a client starts in the server's place.

It starts the server with the arguments it was given, copies lines both ways and writes them down.
Signals and exit codes pass through, so the client sees what it would see without it.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

from recorder import CLIENT, SERVER, Record


class StandIn:
    """Makes the program, and reads what it wrote down."""

    def __init__(self, folder, raddle):
        self._log = folder / "stdio.jsonl"
        self._stderr = folder / "server.stderr"
        self.program = folder / "raddle-recorded"
        self.program.write_text(
            f"#!{sys.executable} -B\n"
            "import sys\n"
            f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import stand_in\n"
            f"stand_in.run({str(raddle)!r}, {str(self._log)!r}, {str(self._stderr)!r})\n"
        )
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def starts(self):
        """The arguments of each start."""
        return [entry["arguments"] for entry in self._entries() if "arguments" in entry]

    def exits(self):
        """The server's exit code after each start."""
        return [entry["exit"] for entry in self._entries() if "exit" in entry]

    def record(self):
        """The traffic of all starts, each a connection of its own."""
        record = Record()
        for entry in self._entries():
            if "sender" in entry:
                record.add(entry["sender"], entry["line"], entry["process"])
        return record

    def stderr(self):
        return self._stderr.read_text(errors="replace") if self._stderr.exists() else ""

    def _entries(self):
        if not self._log.exists():
            return []
        # What follows the last line end is half written.
        return [json.loads(line) for line in self._log.read_text().split("\n")[:-1]]


def run(raddle, log_path, stderr_path):
    """What the program does."""
    log = open(log_path, "a", buffering=1)
    lock = threading.Lock()

    def note(entry):
        with lock:
            log.write(json.dumps({"process": os.getpid(), **entry}) + "\n")

    note({"arguments": sys.argv[1:]})
    with open(stderr_path, "ab") as stderr:
        server = subprocess.Popen(
            [raddle, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())

    def copy(source, sink, sender):
        # One side may leave at any time; the other then sees the end of its stream.
        try:
            for line in iter(source.readline, b""):
                # Written down first: when a client has an answer, the record has it too.
                note({"sender": sender, "line": line.decode("utf-8", "replace").rstrip("\n")})
                sink.write(line)
                sink.flush()
            sink.close()
        except OSError:
            pass

    forth = (sys.stdin.buffer, server.stdin, CLIENT)
    threading.Thread(target=copy, args=forth, daemon=True).start()
    copy(server.stdout, sys.stdout.buffer, SERVER)
    code = server.wait()
    note({"exit": code})
    # At once: the other thread may still wait for a client that says nothing more.
    os._exit(code if code >= 0 else 128 - code)
