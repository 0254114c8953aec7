"""Kill the server during a response, start another, and resume after the last `seq`.

Usage: python3 rejoin.py [PATH-OF-RADDLE]
"""

import json
import os
import subprocess
import sys
import tempfile


class Server:
    """A server behind two pipes, which numbers its notifications."""

    def __init__(self, binary, model):
        options = ["model=mock", "model_provider=mock", f"model_providers.mock.base_url={model}"]
        self.process = subprocess.Popen(
            [binary, "app-server", *(word for option in options for word in ("-c", option))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.early = []
        self.last_id = 0
        client = {"name": "raddle-example", "version": "1"}
        wishes = {"extensions": {"raddle/seq": {}}}
        self.ask("initialize", {"clientInfo": client, "capabilities": wishes})

    def ask(self, method, params):
        self.last_id += 1
        request = {"id": self.last_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self.early.append(message)
        raise SystemExit("the server ended without a response")

    def told(self):
        """Yields the notifications, in order."""
        while self.early:
            yield self.early.pop(0)
        for line in self.process.stdout:
            yield json.loads(line)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Thread:
    """The client's state of a thread: its items, and the `seq` of the last record it received."""

    def __init__(self, id):
        self.id = id
        self.items = {}
        self.seq = 0

    def take(self, message):
        params = message["params"]
        if params.get("threadId") != self.id:
            return
        match message["method"]:
            case "item/started":
                # Also when the server sends it again.
                self.items[params["item"]["id"]] = params["item"] | {"text": ""}
            case "item/agentMessage/delta":
                self.items[params["itemId"]]["text"] += params["delta"]
            case "item/completed":
                self.items[params["item"]["id"]] = params["item"]
        # Only the last notification of a record has its `seq`.
        self.seq = message.get("seq", self.seq)

    def answer(self):
        return "".join(it["text"] for it in self.items.values() if it["type"] == "agentMessage")


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "raddle"
    os.environ.setdefault("RADDLE_HOME", tempfile.mkdtemp())
    mock = subprocess.Popen(
        [binary, "mock", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, encoding="utf-8"
    )
    model = mock.stdout.readline().strip()

    server = Server(binary, model)
    thread = Thread(server.ask("thread/start", {})["thread"]["id"])
    text = {"type": "text", "text": "MOCK text n=2000 gap_ms=2"}
    server.ask("turn/start", {"threadId": thread.id, "input": [text]})
    for message in server.told():
        thread.take(message)
        if len(thread.answer()) > 200:
            break
    server.kill()
    print(f"lost after {len(thread.answer())} letters, at seq {thread.seq}")

    server = Server(binary, model)
    server.ask("thread/resume", {"threadId": thread.id, "afterSeq": thread.seq})
    for message in server.told():
        thread.take(message)
        if message["method"] == "turn/completed":
            break
    print(f"the turn was {message['params']['turn']['status']}")

    shown = server.ask("thread/read", {"threadId": thread.id, "includeTurns": True})
    items = [item for turn in shown["thread"]["turns"] for item in turn["items"]]
    is_same = items == list(thread.items.values())
    print(f"{len(thread.answer())} letters, {'as' if is_same else 'not as'} the server has them")
    server.kill()
    mock.kill()
    return int(not is_same)


if __name__ == "__main__":
    sys.exit(main())
