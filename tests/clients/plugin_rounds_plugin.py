"""A plugin with one thread. It calls the host in the middle of calls, and answers calls in the middle of those.

At the first call of a batch it reads nothing until the host can write no more to its stdin, and calls the host without
reading meanwhile. So both directions are full, and no side may wait for the other one to read first.
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
#: Requests that wait until the pipes are no longer full; None at other times.
waiting = None
#: The batches of calls that have begun. With the first call of each, both directions are filled.
batches = set()
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
    if "method" not in message:
        responses[message["id"]] = message
    elif waiting is None:
        answer(message)
    else:
        waiting.append(message)


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
        (size,) = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, bytes(4)))
        if size > capacity * 3 // 4:
            return
        time.sleep(0.001)


def fill():
    """Calls the host without reading, until both directions are full, and then reads on."""
    global waiting
    wait_until_full()
    waiting = []
    for call_id in [begin("host/ping", {}) for _ in range(UNREAD)]:
        assert end(call_id) == {"pong": True}
    requests, waiting = waiting, None
    for request in requests:
        answer(request)


def play(params):
    """One round: two calls of the host in the middle of the call."""
    if params["batch"] not in batches:
        batches.add(params["batch"])
        fill()
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
