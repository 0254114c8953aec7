"""A plugin with a reader thread, a queue of requests and a table of pending calls."""

import itertools
import json
import queue
import sys
import threading


class Bridge:
    def __init__(self):
        self.requests = queue.Queue()
        self.pending = {}
        self.lock = threading.Lock()
        self.ids = itertools.count(1)
        threading.Thread(target=self.read, daemon=True).start()

    def write(self, message):
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def read(self):
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message:
                self.requests.put(message)
            else:
                self.pending.pop(message["id"]).put(message)
        self.requests.put(None)

    def call(self, method, params):
        call_id = f"bridge-{next(self.ids)}"
        response = queue.Queue(1)
        self.pending[call_id] = response
        self.write({"id": call_id, "method": method, "params": params})
        message = response.get(timeout=30)
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]


def main():
    bridge = Bridge()
    while (request := bridge.requests.get()) is not None:
        method, request_id = request["method"], request["id"]
        if method == "plugin/health":
            result = {"ok": True, "plugin_id": "org.example", "version": "1.2.3"}
        elif method == "plugin/shutdown":
            bridge.write({"id": request_id, "result": {"ok": True}})
            return
        elif method == "greeting/make":
            event = {"kind": "notification", "method": "item/completed", "params": {}}
            bridge.write({"method": "codex/event", "params": event})
            assert bridge.call("host/ping", {}) == {"pong": True}
            answer = bridge.call("host/request_approval", {"permission": "workspace.read"})
            result = {"text": "Hello, " + request["params"]["name"], **answer}
        else:
            bridge.write({"id": request_id, "error": {"message": "unknown method"}})
            continue
        bridge.write({"id": request_id, "result": result})


main()
