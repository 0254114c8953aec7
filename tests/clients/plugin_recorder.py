"""Runs a plugin, and writes all messages of both directions to stderr: the entrypoint of a recorded plugin.

Usage: plugin_recorder.py PROGRAM

Each line has the direction and the message; the last one has the exit status of the program. A line is written before
the message is passed on, so the order is that of the conversation.
"""

import os
import subprocess
import sys
import threading

process = subprocess.Popen([sys.executable, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def record(direction, line):
    # In one piece, which a pipe keeps together.
    os.write(2, direction + b" " + line)


def requests():
    for line in sys.stdin.buffer:
        record(b"-->", line)
        process.stdin.write(line)
        process.stdin.flush()
    process.stdin.close()


threading.Thread(target=requests, daemon=True).start()
for line in process.stdout:
    record(b"<--", line)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
code = process.wait()
record(b"exit", f"{code}\n".encode())
os._exit(code)
