"""A small ACP client: turns in which the adapter requests permission, and the client allows or denies it.

Usage: acp_asked_program.py ADAPTER FOLDER TURNS

TURNS is a list of turns: each is the user's input and a list of the options to choose, one per
permission request. Prints what it received, as JSON.
"""

import json
import subprocess
import sys


class Adapter:
    def __init__(self, program):
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._count = 0
        self.options = []
        self.asked = []
        self.updates = []

    def call(self, method, params):
        """Returns the result. Stores earlier messages, and answers permission requests with the next options."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        for line in self._process.stdout:
            message = json.loads(line)
            match message:
                case {"method": "session/request_permission", "id": asked, "params": params}:
                    self.asked.append(params)
                    outcome = {"outcome": "selected", "optionId": self.options.pop(0)}
                    self._send({"id": asked, "result": {"outcome": outcome}})
                case {"method": "session/update", "params": {"update": update}}:
                    self.updates.append(update)
                case {"result": result, "id": self._count}:
                    return result
                case {"error": error}:
                    sys.exit(f"the response to {method} was {error}")
        sys.exit(f"the adapter ended before its response to {method}")

    def close(self):
        self._process.stdin.close()
        return self._process.wait()

    def _send(self, message):
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


def main():
    program, folder, turns = sys.argv[1:]
    adapter = Adapter(program)
    adapter.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session = adapter.call("session/new", {"cwd": folder, "mcpServers": []})["sessionId"]
    seen = []
    for said, options in json.loads(turns):
        adapter.asked, adapter.updates, adapter.options = [], [], list(options)
        prompt = [{"type": "text", "text": said}]
        end = adapter.call("session/prompt", {"sessionId": session, "prompt": prompt})
        seen.append({
            "asked": adapter.asked,
            "updates": adapter.updates,
            "stopReason": end["stopReason"],
        })
    print(json.dumps({"session": session, "turns": seen, "exit": adapter.close()}))


main()
