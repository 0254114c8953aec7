"""A plugin whose calls of the host block: each reads until the response with its id arrives."""

import json
import os
import sys


def host_call(method, params):
    request_id = f"host-{os.getpid()}-{method}"
    request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    sys.stdout.write(json.dumps(request) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        response = json.loads(line)
        if response.get("id") == request_id:
            if "error" in response:
                raise RuntimeError(response["error"].get("message"))
            return response.get("result")
    raise RuntimeError("the host closed stdin")


def handle(method, params):
    if method == "plugin/health":
        return {"ok": True, "plugin_id": "org.example", "version": "1.2.3"}
    if method == "plugin/shutdown":
        return {"ok": True}
    if method == "greeting/make":
        assert host_call("host/ping", {}) == {"pong": True}
        answer = host_call("host/request_approval", {"permission": "workspace.read"})
        if not answer["approved"]:
            raise PermissionError("not approved")
        return {"text": "Hello, " + params["name"]}
    raise ValueError("unknown method: " + method)


for line in sys.stdin:
    request = json.loads(line)
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        reply["result"] = handle(request["method"], request.get("params", {}))
    except Exception as error:
        reply["error"] = {"message": str(error)}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
    if request["method"] == "plugin/shutdown":
        break
