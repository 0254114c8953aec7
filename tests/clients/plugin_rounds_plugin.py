"""A plugin with one thread. It calls the host in the middle of calls, and answers calls in the middle of those.

`fill` answers after the host can write no more to its stdin: it calls the host without reading meanwhile. So both
directions are full, and no side may wait for the other one to read first.
"""

import fcntl
import itertools
import json
import os
import struct
import sys
import termios
import time

numbers = itertools.count(1)
#: Responses that arrived while the plugin waited for another one.
responses = {}
PAD = "x" * 4000
#: Calls of the host while nothing is read: fewer than may be open.
UNREAD = 60


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(1)
    message = json.loads(line)
    if "method" in message:
        answer(message)
    else:
        responses[message["id"]] = message


def begin(method, params):
    call_id = f"call-{next(numbers)}"
    send({"id": call_id, "method": method, "params": {**params, "pad": PAD}})
    return call_id


def end(call_id):
    while call_id not in responses:
        receive()
    return responses.pop(call_id)["result"]


def wait_until_full():
    capacity = fcntl.fcntl(0, fcntl.F_GETPIPE_SZ)
    while True:
        (waiting,) = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, bytes(4)))
        if waiting > capacity * 3 // 4:
            return
        time.sleep(0.001)


def play(params):
    """One round: two calls of the host in the middle of the call."""
    if params.get("fill"):
        wait_until_full()
        for call_id in [begin("host/ping", {}) for _ in range(UNREAD)]:
            assert end(call_id) == {"pong": True}
    assert end(begin("host/ping", {})) == {"pong": True}
    approval = end(begin("host/request_approval", {"permission": "command.run"}))
    assert approval == {"approved": False}, approval
    return {"number": params["number"]}


METHODS = {
    "plugin/health": lambda _: {"ok": True, "plugin_id": "org.rounds", "version": "1"},
    "plugin/shutdown": lambda _: {"ok": True},
    "act": play,
}


def answer(request):
    try:
        send({"id": request["id"], "result": METHODS[request["method"]](request["params"])})
    except Exception as error:
        send({"id": request["id"], "error": {"message": repr(error)}})
    if request["method"] == "plugin/shutdown":
        os._exit(0)


while True:
    receive()
