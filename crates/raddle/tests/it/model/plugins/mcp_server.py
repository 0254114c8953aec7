"""The MCP server of a plugin: its one tool reports what its process may do."""

import json
import os
import socket
import sys


def attempt(action):
    try:
        action()
        return "done"
    except OSError:
        return "refused"


def inspect(arguments):
    return {
        "cwd": os.getcwd(),
        "setting": os.environ.get("SETTING"),
        "secret": os.environ.get("RADDLE_TEST_SECRET"),
        "write": attempt(lambda: open("written.txt", "w").close()),
        "write_temporary": attempt(lambda: open("/var/tmp/raddle-plugin-test", "w").close()),
        "network": attempt(lambda: socket.create_connection(("127.0.0.1", arguments["port"]), 5)),
    }


TOOL = {
    "name": "inspect",
    "description": "Reports what the server may do.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def result(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "inspector", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        report = json.dumps(inspect(params["arguments"]))
        return {"content": [{"type": "text", "text": report}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    value = result(request["method"], request.get("params") or {})
    if value is None:
        answer["error"] = {"code": -32601, "message": "unknown method"}
    else:
        answer["result"] = value
    print(json.dumps(answer), flush=True)
