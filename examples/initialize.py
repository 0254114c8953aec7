"""Start `raddle app-server` as a child process and send it three requests over stdio.

Usage: python3 initialize.py [PATH-OF-RADDLE]
"""

import json
import subprocess
import sys


class Server:
    """A server behind two pipes: one JSON object per line in each direction."""

    def __init__(self, binary):
        self.process = subprocess.Popen(
            [binary, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.last_id = 0

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            # Notifications may come first; they have no id.
            if message.get("id") == self.last_id and "method" not in message:
                return message
        raise SystemExit("the server ended without a response")

    def close(self):
        # A stdio server ends when its stdin ends.
        self.process.stdin.close()
        return self.process.wait(timeout=10)


def main():
    server = Server(sys.argv[1] if len(sys.argv) > 1 else "raddle")
    client = {"name": "raddle-example", "version": "1"}
    answers = [("initialize", server.ask("initialize", {"clientInfo": client}))]
    server.send({"method": "initialized"})
    for method in ("config/read", "model/list"):
        answers.append((method, server.ask(method, {})))
    for method, answer in answers:
        print(method, json.dumps(answer, indent=2), sep="\n")
    failed = any("error" in answer for _, answer in answers)
    return server.close() or int(failed)


if __name__ == "__main__":
    sys.exit(main())
