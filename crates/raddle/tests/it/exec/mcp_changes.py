"""An MCP server on stdio for tests, of the revision in its first argument: its tools change."""

import json
import sys
import time

REVISION = sys.argv[1]
IS_MODERN = REVISION >= "2026"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
READS = {"readOnlyHint": True}

tools = [{"name": name, "inputSchema": {"type": "object"}, "annotations": READS} for name in ["grow", "flood"]]
lists = 0
subscription = None


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def announce():
    """Reports that the tools have changed, to the subscriber if the revision has them."""
    params = {"_meta": {SUBSCRIPTION: subscription}} if IS_MODERN else {}
    send({"method": "notifications/tools/list_changed", "params": params})


def serve_until(is_over):
    while not is_over():
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        serve(json.loads(line))


answered = set()


def serve(message):
    global lists, subscription
    method, identifier = message.get("method"), message.get("id")
    if method is None:
        answered.add(identifier)
    elif method == "server/discover" and IS_MODERN:
        capabilities = {"tools": {"listChanged": True}}
        send({"id": identifier, "result": {"resultType": "complete", "supportedVersions": [REVISION],
                                           "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}})
    elif method == "initialize" and not IS_MODERN:
        send({"id": identifier, "result": {"protocolVersion": REVISION, "serverInfo": {"name": "test", "version": "1"},
                                           "capabilities": {"tools": {"listChanged": True}}}})
    elif method == "subscriptions/listen" and IS_MODERN:
        subscription = identifier
        accepted = {"_meta": {SUBSCRIPTION: identifier}, "notifications": message["params"]["notifications"]}
        send({"method": "notifications/subscriptions/acknowledged", "params": accepted})
    elif method == "tools/list":
        lists += 1
        result = {"tools": tools}
        if IS_MODERN:
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        send({"id": identifier, "result": result})
    elif method == "tools/call":
        text = call(message["params"]["name"])
        result = {"content": [{"type": "text", "text": text}]}
        if IS_MODERN:
            result["resultType"] = "complete"
        send({"id": identifier, "result": result})
    elif identifier is not None:
        send({"id": identifier, "error": {"code": -32601, "message": "Method not found"}})


def call(name):
    if name == "grow":
        if IS_MODERN:
            serve_until(lambda: subscription is not None)
        tools.append({"name": "grown", "inputSchema": {"type": "object"}, "annotations": READS})
        before = lists
        announce()
        serve_until(lambda: lists > before)
        return "grown"
    began = time.monotonic()
    for number in range(100):
        announce()
        ping = f"ping-{number}"
        send({"id": ping, "method": "ping"})
        serve_until(lambda: ping in answered)
    return json.dumps({"lists": lists, "seconds": time.monotonic() - began})


serve_until(lambda: False)
