"""Embeds Raddle: runs a turn, asks for approvals, survives a killed server. Arguments: path of raddle, prompt."""

import json
import sys
import uuid
from contextlib import suppress
from subprocess import PIPE, Popen

raddle, prompt = sys.argv[1:]
thread, seq = None, 0  # The thread, and the number of the last notification received from it.
printed = {}  # The printed text of each message.
key = str(uuid.uuid4())  # Idempotency key: a request that is sent twice with it takes effect once.
capabilities = {"extensions": {"raddle/seq": {}, "raddle/idempotency": {}}}


def messages():
    """Yields the messages of the server, and starts a new server when it is killed."""
    global server
    while True:
        with suppress(BrokenPipeError), Popen([raddle, "app-server"], stdin=PIPE, stdout=PIPE, text=True) as server:
            ask("initialize", clientInfo={"name": "tutorial", "version": "1"}, capabilities=capabilities)
            yield from map(json.loads, server.stdout)
        if server.returncode >= 0:
            sys.exit("the server exited; its last message on stderr says why")


def ask(method, **params):
    send({"id": method, "method": method, "params": params})  # One request per method is open, so its name is the id.


def send(message):
    with suppress(BrokenPipeError):  # The server was killed; its stdout ends too.
        print(json.dumps(message), file=server.stdin, flush=True)


for message in messages():
    match message:
        case {"id": "initialize", "result": _} if thread is None:
            ask("thread/start", approvalPolicy="untrusted", sandbox="workspace-write", clientRequestId=key)
        case {"id": "initialize", "result": _}:
            ask("thread/resume", threadId=thread, afterSeq=seq)
        case {"id": "thread/start" | "thread/resume", "result": {"thread": {"id": thread}}}:
            ask("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}], clientRequestId=key)
        case {"method": "item/agentMessage/delta", "params": {"itemId": item, "delta": text}}:
            print(text, end="", flush=True)
            printed[item] = printed.get(item, "") + text
        case {"method": "item/completed", "params": {"item": {"type": "agentMessage", "id": item, "text": text}}}:
            print(text.removeprefix(printed.get(item, "")))
        case {"method": "item/started", "params": {"item": {"type": "fileChange", "changes": changes}}}:
            print(*(f"{change['path']}\n{change['diff']}" for change in changes), sep="\n")
        case {"id": request, "method": method, "params": params}:
            print(f"{params.get('command') or method}? [y/N] ", end="", flush=True)
            decision = "accept" if sys.stdin.readline().strip() == "y" else "decline"
            send({"id": request, "result": {"decision": decision}})
        case {"method": "turn/completed", "params": {"turn": {"status": status, "error": error}}}:
            sys.exit(0 if status == "completed" else f"{status}: {error['message']}" if error else status)
        case {"id": request, "error": {"message": why}}:
            sys.exit(f"{request}: {why}")
    seq = message.get("seq", seq)
