"""Runs a turn, and asks about each hunk before a file is changed. Arguments: path of raddle, prompt."""

import json
import sys
from subprocess import PIPE, Popen

raddle, prompt = sys.argv[1:]
server = Popen([raddle, "app-server"], stdin=PIPE, stdout=PIPE, text=True)


def send(message):
    print(json.dumps(message), file=server.stdin, flush=True)


def ask(method, **params):
    send({"id": method, "method": method, "params": params})  # One request per method is open, so its name is the id.


def decide(hunk):
    """Returns the user's decision: `y` accepts, `=TEXT` accepts with another line, all else is a comment."""
    print(f"{hunk['path']}:{hunk['oldStart']}")
    for mark, text in (("-", hunk["oldText"]), ("+", hunk["newText"])):
        print(*(f"{mark}{line}\n" for line in text.splitlines()), sep="", end="")
    print("apply? [y/=TEXT/comment] ", end="", flush=True)
    answer = sys.stdin.readline().strip()
    if answer.startswith("="):
        return {"id": hunk["id"], "accept": True, "replacement": f"{answer[1:]}\n"}
    return {"id": hunk["id"], "accept": True} if answer == "y" else {"id": hunk["id"], "accept": False, "comment": answer}


about = {"name": "hunks", "version": "1"}
ask("initialize", clientInfo=about, capabilities={"extensions": {"raddle/hunks": {}}})
for message in map(json.loads, server.stdout):
    match message:
        case {"id": "initialize", "result": _}:
            ask("thread/start", approvalPolicy="untrusted", sandbox="workspace-write")
        case {"id": "thread/start", "result": {"thread": {"id": thread}}}:
            ask("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}])
        case {"id": request, "method": "item/fileChange/requestApproval", "params": {"hunks": hunks}}:
            send({"id": request, "result": {"decision": {"acceptHunks": {"hunks": [decide(it) for it in hunks]}}}})
        case {"id": request, "method": _}:
            send({"id": request, "result": {"decision": "decline"}})  # It asks about changes of files only.
        case {"method": "item/completed", "params": {"item": {"type": "fileChange", "status": status}}}:
            print(f"the change: {status}")
        case {"method": "item/completed", "params": {"item": {"type": "agentMessage", "text": text}}}:
            print(text)
        case {"method": "turn/completed", "params": {"turn": {"status": status}}}:
            server.stdin.close()
            sys.exit(0 if status == "completed" else status)
        case {"id": request, "error": {"message": why}}:
            sys.exit(f"{request}: {why}")
