"""An MCP server on stdio for tests: it adds numbers, and tells what it can see and do."""

import json
import os
import sys

TOOLS = [
    {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "write",
        "description": "Writes a file and returns the error, if there is one.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
    {
        "name": "peek",
        "description": "Returns an environment variable and the listing of a folder.",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}, "path": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "ask", "description": "Asks the user, and returns the answer.", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}},
    {"name": "die", "description": "Ends the server.", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}},
]


def ask():
    schema = {"type": "object", "properties": {"colour": {"type": "string", "title": "Colour"}}, "required": ["colour"]}
    question = {"message": "Which colour?", "requestedSchema": schema}
    request = {"jsonrpc": "2.0", "id": "question", "method": "elicitation/create", "params": question}
    print(json.dumps(request), flush=True)
    while True:
        answer = json.loads(sys.stdin.readline())
        if answer.get("id") == "question":
            return json.dumps(answer.get("result"))


def call(name, arguments):
    if name == "ask":
        return ask()
    if name == "add":
        return str(arguments["a"] + arguments["b"])
    if name == "write":
        try:
            with open(arguments["path"], "w") as file:
                file.write("written")
            return "done"
        except OSError as error:
            return error.strerror
    if name == "peek":
        try:
            names = os.listdir(arguments["path"])
        except OSError as error:
            names = [error.strerror]
        return f"variable={os.environ.get(arguments['name'])} names={names}"
    os._exit(3)


print("this line is no message", flush=True)
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
        result = {"tools": TOOLS}
    elif method == "tools/call":
        text = call(message["params"]["name"], message["params"].get("arguments", {}))
        result = {"content": [{"type": "text", "text": text}]}
    else:
        error = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": identifier, "result": result}), flush=True)
