"""An MCP server on stdio for tests: its handshake takes 3 s, and its list of tools never comes."""

import json
import sys
import time

for line in sys.stdin:
    message = json.loads(line)
    method, identifier = message.get("method"), message.get("id")
    if identifier is None:
        continue
    if method == "tools/list":
        print("it lists no tools", file=sys.stderr, flush=True)
        continue
    response = {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        time.sleep(3)
        version = message["params"]["protocolVersion"]
        response = {"result": {"protocolVersion": version, "capabilities": {"tools": {}},
                               "serverInfo": {"name": "test", "version": "1"}}}
    print(json.dumps({"jsonrpc": "2.0", "id": identifier, **response}), flush=True)
