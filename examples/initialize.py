"""Start `raddle app-server` as a child and ask it three things over stdio.

Usage: python3 initialize.py [PATH-OF-RADDLE]
"""

import json
import subprocess
import sys


class Server:
    """A server on the other end of two pipes: one JSON object per line, each way."""

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
            # Notifications may come in between; they have no id.
            if message.get("id") == self.last_id and "method" not in message:
                return message
        raise SystemExit("the server ended without an answer")

    def close(self):
        # The end of its stdin is what tells a stdio server to go.
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
