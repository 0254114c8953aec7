"""A plugin that answers each request in a thread of its own."""

import itertools
import json
import os
import queue
import sys
import threading
import urllib.request

lock = threading.Lock()
numbers = itertools.count(1)
waiting = {}
answered = threading.local()


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def host_call(method, params):
    call_id = f"call-{next(numbers)}"
    waiting[call_id] = queue.Queue()
    send({"id": call_id, "method": method, "params": params})
    return waiting[call_id].get()


def greet(params):
    response = host_call("host/request_approval", {"permission": "workspace.read"})
    if not response["result"]["approved"]:
        raise PermissionError("not approved")
    return "Hello, " + params["name"]


def die(params):
    lines = [f"line {number}" for number in range(200)]
    sys.stderr.write("\n".join([*lines, "this is the end"]))
    sys.stderr.flush()
    os._exit(3)


def hang(params):
    send({"method": "hanging", "params": {"call_id": answered.id}})
    threading.Event().wait()


def check(params):
    if "forbidden" not in params["tool_input"]:
        return None
    return {"decision": "block", "reason": "not today"}


def echo(params):
    for number in range(params.get("events", 0)):
        forged = {"kind": "notification", "method": "item/completed", "params": {"number": number}}
        if params.get("named"):
            forged["call_id"] = answered.id
        send({"method": "codex/event", "params": forged})
    return params


def host(params):
    response = host_call(params["method"], params["params"])
    return {key: response[key] for key in ("result", "error") if key in response}


def fetch(params):
    # The host of the test is on loopback, which programs reach without a proxy by default.
    for name in ["no_proxy", "NO_PROXY"]:
        os.environ.pop(name, None)
    try:
        with urllib.request.urlopen(params["url"], timeout=20) as response:
            return {"text": response.read().decode()}
    except OSError as error:
        return {"error": str(error)}


METHODS = {
    "plugin/health": lambda params: {"ok": True, "plugin_id": "org.example", "version": "1"},
    "plugin/shutdown": lambda params: {"ok": True},
    "check": check,
    "greet": greet,
    "die": die,
    "hang": hang,
    "echo": echo,
    "fetch": fetch,
    "host": host,
}


def answer(request):
    answered.id = request["id"]
    try:
        send({"id": request["id"], "result": METHODS[request["method"]](request["params"])})
    except Exception as error:
        send({"id": request["id"], "error": {"message": str(error)}})
    if request["method"] == "plugin/shutdown":
        os._exit(0)


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    else:
        waiting[message["id"]].put(message)
