"""A plugin that calls every method of the host, and checks the results."""

import itertools
import json
import sys

numbers = itertools.count(1)


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


class HostError(Exception):
    pass


def host(method, **params):
    call_id = f"call-{next(numbers)}"
    send(id=call_id, method=f"host/{method}", params={"call_id": open_call, **params})
    while (response := json.loads(sys.stdin.readline())).get("id") != call_id:
        pass
    if "error" in response:
        raise HostError(response["error"]["message"])
    return response["result"]


def expect(actual, expected):
    if actual != expected:
        raise AssertionError(f"{actual!r} is not {expected!r}")


def act():
    for permission in ["workspace.read", "workspace.write", "command.run", "secrets:TOKEN"]:
        host("request_approval", permission=permission)
    text = host("workspace_read", path="README.md")["text"]
    expect(text.startswith("# "), True)
    entries = host("workspace_list")["entries"]
    expect(entries, [{"path": "README.md", "kind": "file"}])
    try:
        host("workspace_read", path="/etc/passwd")
        raise AssertionError("a file outside of the workspace was read")
    except HostError:
        pass
    expect(host("workspace_write", path="made.txt", content="made\n"), {"changed": True})
    result = host("command_run", command="cat made.txt")
    expect((result["exit_code"], result["output"]), (0, "made\n"))
    expect(host("secret", name="TOKEN"), {"value": "the test value of TOKEN"})
    expect(host("state_set", key="seen", value=[1]), {})
    expect(host("state_get", key="seen"), {"value": [1]})
    expect(host("log", message="done"), {"logged": True})


for line in sys.stdin:
    request = json.loads(line)
    open_call = request["id"]
    answer = {"id": open_call}
    if request["method"] == "plugin/health":
        answer["result"] = {"ok": True, "plugin_id": "org.example", "version": "1"}
    elif request["method"] == "act":
        try:
            act()
            answer["result"] = {}
        except HostError as error:
            answer["error"] = {"message": str(error)}
    else:
        answer["result"] = {"ok": True}
    send(**answer)
    if request["method"] == "plugin/shutdown":
        sys.exit(0)
