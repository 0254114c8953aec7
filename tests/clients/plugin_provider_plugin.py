"""A plugin that is a model provider: its model calls one tool, and repeats what the tool printed."""

import json
import sys

HEALTH = {"ok": True, "plugin_id": "org.parrot", "version": "1"}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(call_id, params):
    def event(**members):
        params = {"call_id": call_id, "event": members}
        send({"method": "model/event", "params": params})

    last = params["history"][-1]
    if last["type"] != "tool_output":
        tools = [tool["name"] for tool in params["tools"]]
        assert "exec_command" in tools, tools
        event(type="reasoning", text="I look.")
        event(type="tool_call", id="c1", name="exec_command", arguments={"cmd": "echo flax"})
    else:
        event(type="text", text="It says: ")
        event(type="text", text=next(it for it in last["text"].split() if it == "flax"))
    return {"usage": {"input_tokens": 7, "output_tokens": 3}}


for line in sys.stdin:
    request = json.loads(line)
    method = request["method"]
    if method == "model/answer":
        if request["params"]["model"] != "parrot-1":
            error = {"message": "there is no such model; use parrot-1"}
            send({"id": request["id"], "error": error})
            continue
        result = answer(request["id"], request["params"])
    else:
        result = HEALTH if method == "plugin/health" else {"ok": True}
    send({"id": request["id"], "result": result})
    if method == "plugin/shutdown":
        break
