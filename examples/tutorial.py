"""Embeds Raddle: one turn, its questions, and going on when the server dies. Takes the path of raddle, and a prompt."""

import json
import sys
import uuid
from contextlib import suppress
from subprocess import PIPE, Popen

raddle, prompt = sys.argv[1:]
thread, seq = None, 0  # Which thread it is, and the last record of it that we were told of.
printed = {}  # What was printed of each message.
once = str(uuid.uuid4())  # Whatever is asked for under this name is done once.
wishes = {"extensions": {"raddle/seq": {}, "raddle/idempotency": {}}}


def messages():
    """All that servers say: when one is killed, the next is started."""
    global server
    while True:
        with suppress(BrokenPipeError), Popen([raddle, "app-server"], stdin=PIPE, stdout=PIPE, text=True) as server:
            ask("initialize", clientInfo={"name": "tutorial", "version": "1"}, capabilities=wishes)
            yield from map(json.loads, server.stdout)
        if server.returncode >= 0:
            sys.exit("the server ended by itself; it says why above")


def ask(method, **params):
    send({"id": method, "method": method, "params": params})  # One of each at a time, so its name will do.


def send(message):
    with suppress(BrokenPipeError):  # Then it is dead, and its stdout ends.
        print(json.dumps(message), file=server.stdin, flush=True)


for message in messages():
    match message:
        case {"id": "initialize", "result": _} if thread is None:
            ask("thread/start", approvalPolicy="untrusted", sandbox="workspace-write", clientRequestId=once)
        case {"id": "initialize", "result": _}:
            ask("thread/resume", threadId=thread, afterSeq=seq)
        case {"id": "thread/start" | "thread/resume", "result": {"thread": {"id": thread}}}:
            ask("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}], clientRequestId=once)
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
            sys.exit(0 if status == "completed" else f"{status}: {error and error['message']}")
        case {"id": request, "error": {"message": why}}:
            sys.exit(f"{request}: {why}")
    seq = message.get("seq", seq)
