"""An MCP server on stdio for tests: its tool reports progress far too often."""

import json
import sys


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def report(token, position, text):
    params = {"progressToken": token, "progress": position, "total": 1000, "message": text}
    send({"method": "notifications/progress", "params": params})


for line in sys.stdin:
    message = json.loads(line)
    method, identifier = message.get("method"), message.get("id")
    if identifier is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}},
                  "serverInfo": {"name": "test", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        token = message["params"]["_meta"]["progressToken"]
        report("no-such-call", 1, "forged")
        for position in range(1, 1001):
            report(token, position, f"\x1b[31mstep {position}\x1b[0m")
        result = {"content": [{"type": "text", "text": "counted"}]}
    else:
        send({"id": identifier, "error": {"code": -32601, "message": "Method not found"}})
        continue
    send({"id": identifier, "result": result})
