"""A plugin for Raddle: JSON-RPC 2.0 on stdin and stdout, one object per line."""

import json
import sys
from collections import deque

waiting = deque()  # Messages that arrived while the plugin waited for the host.
calls = 0


def log(text):
    """Writes to the log. Stdout carries the protocol only."""
    print(text, file=sys.stderr, flush=True)


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def read():
    """Returns the next message, or None when the host is gone."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def host_call(method, params):
    """Calls the host and waits for its response. Other messages wait meanwhile."""
    global calls
    calls += 1
    call_id = f"call-{calls}"
    send({"id": call_id, "method": method, "params": params})
    while True:
        message = read()
        if message is None:
            sys.exit(1)
        if message.get("id") != call_id or "method" in message:
            waiting.append(message)
        elif "error" in message:
            raise RuntimeError(message["error"]["message"])
        else:
            return message["result"]


def make_greeting(params, call_id):
    question = {"permission": "workspace.read", "call_id": call_id}
    answer = host_call("host/request_approval", question)
    log(f"the permission is {'approved' if answer['approved'] else 'denied'}")
    return {"text": f"Hello, {params['name']}!", "approved": answer["approved"]}


METHODS = {
    "plugin/health": lambda *_: {"ok": True, "plugin_id": "PLUGIN_ID", "version": "0.1.0"},
    "plugin/shutdown": lambda *_: {"ok": True},
    "greeting/make": make_greeting,
}


def main():
    while (message := waiting.popleft() if waiting else read()) is not None:
        if "id" not in message or "method" not in message:
            continue
        try:
            method = METHODS[message["method"]]
            result = method(message.get("params") or {}, message["id"])
            send({"id": message["id"], "result": result})
        except Exception as error:
            send({"id": message["id"], "error": {"message": repr(error)}})
        if message["method"] == "plugin/shutdown":
            return


main()
