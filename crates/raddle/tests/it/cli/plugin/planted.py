"""A plugin that violates the contract in one way, named by its argument."""

import json
import os
import sys
import time

FAULT = sys.argv[1]


def send(**message):
    if FAULT != "no version":
        message["jsonrpc"] = "2.0"
    print(json.dumps(message), flush=True)


def host_call(method, params):
    send(id="call", method=method, params=params)
    while (response := json.loads(sys.stdin.readline())).get("id") != "call":
        pass
    return response.get("result")


def greet():
    if FAULT == "death in a call":
        os._exit(7)
    if FAULT == "long line":
        print(json.dumps("x" * (5 << 20)), flush=True)
    if FAULT == "permission not declared":
        host_call("host/request_approval", {"permission": "command.run"})
    if FAULT == "approval of nothing":
        host_call("host/request_approval", {})
    if FAULT == "unknown method of the host":
        host_call("host/format_disk", {})
    if FAULT == "permission not asked":
        host_call("host/workspace_read", {"path": "README.md"})
    if FAULT == "undeclared permission used":
        host_call("host/command_run", {"command": "ls"})
    if FAULT == "params of the host":
        host_call("host/state_get", {"name": "seen"})
    if FAULT == "event of no call":
        send(method="codex/event", params={"call_id": "raddle-99"})
    if FAULT == "malformed request":
        send(id="malformed", method=7)
    return {"text": "Hello"}


if FAULT == "banner":
    print("ready")
for line in sys.stdin:
    request = json.loads(line)
    if "method" not in request:
        continue
    answer = {"id": request["id"]}
    method = request["method"]
    if method == "plugin/health":
        plugin_id = "org.other" if FAULT == "other id" else "org.example"
        ok = FAULT != "not healthy"
        answer["result"] = {"ok": ok, "plugin_id": plugin_id, "version": "1.2.3"}
        if FAULT == "second response":
            send(**answer)
    elif method == "greeting/make":
        if FAULT == "no response":
            continue
        answer["result"] = greet()
        if FAULT == "result and error":
            answer["error"] = {"message": "also failed"}
        if FAULT == "error":
            answer = {"id": request["id"], "error": {"message": "cannot greet"}}
    else:
        answer["result"] = {} if FAULT == "empty shutdown" else {"ok": True}
    send(**answer)
    if method == "plugin/shutdown":
        if FAULT == "no exit":
            time.sleep(3600)
        if FAULT == "farewell":
            print("bye", flush=True)
        sys.exit(3 if FAULT == "exit status" else 0)
