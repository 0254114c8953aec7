"""A program that a client starts instead of the server.

It starts the server with its own arguments, copies lines in both directions and records them. It
forwards signals and exit codes, so the client notices no difference.
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
    """Writes the program, and reads its records."""

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
        """Returns the arguments of each start."""
        return [entry["arguments"] for entry in self._entries() if "arguments" in entry]

    def exits(self):
        """Returns the server's exit code after each start."""
        return [entry["exit"] for entry in self._entries() if "exit" in entry]

    def record(self):
        """Returns the traffic of all starts, each as a separate connection."""
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
        # Data after the last newline is incomplete.
        return [json.loads(line) for line in self._log.read_text().split("\n")[:-1]]


def run(raddle, log_path, stderr_path):
    """The main function of the program."""
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
        # One side may disconnect at any time; the other then reads the end of its stream.
        try:
            for line in iter(source.readline, b""):
                # Recorded first: when a client has a response, the record has it too.
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
    # At once: the other thread may still wait for a client that sends nothing more.
    os._exit(code if code >= 0 else 128 - code)
