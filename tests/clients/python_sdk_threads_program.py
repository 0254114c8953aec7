"""Run by the Python with the SDK: the operations of a program on turns and threads.

Usage: python_sdk_threads_program.py PROGRAM RELEASE [KEY=VALUE]...

A POST to RELEASE releases the held model. Prints what it received, as JSON.
"""

import json
import sys
import urllib.request

from openai_codex import Codex, CodexConfig

_DELTA = "item/agentMessage/delta"


def main():
    program, release, *overrides = sys.argv[1:]
    config = CodexConfig(codex_bin=program, config_overrides=tuple(overrides))
    with Codex(config) as codex:
        thread = codex.thread_start()
        seen = {
            "thread": thread.id,
            "streamed": streams(thread),
            "interrupted": interrupts(thread),
            "steered": steers(thread, release),
            "compacted": compacts(codex, thread, turns_before=3),
            **forks(codex, thread),
        }
    # Another process: whatever it reads was stored.
    with Codex(config) as codex:
        seen["resumed"] = resumes(codex, thread.id)
    print(json.dumps(seen))


def streams(thread):
    events = list(thread.turn("what makes cloth?").stream())
    return {
        "methods": [event.method for event in events],
        "text": "".join(event.payload.delta for event in events if event.method == _DELTA),
    }


def interrupts(thread):
    turn = thread.turn("what is yarn?")
    events = []
    for event in turn.stream():
        events.append(event)
        if event.method == _DELTA:
            turn.interrupt()
    return {"texts": texts(events), "status": events[-1].payload.turn.status.value}


def steers(thread, release):
    turn = thread.turn("what is linen?")
    events, steered = [], None
    for event in turn.stream():
        events.append(event)
        # The first response has arrived; the model continues only after the user's input.
        if steered is None and texts([event]):
            steered = turn.steer("and what is wool?").turn_id
            post(release)
    return {
        "sameTurn": steered == turn.id,
        "texts": texts(events),
        "status": events[-1].payload.turn.status.value,
    }


def compacts(codex, thread, turns_before):
    thread.compact()
    # The SDK has no handle for this turn; the thread becomes idle when it ends.
    idle = 0
    while idle <= turns_before:
        event = codex._client.next_notification()
        if event.method == "thread/status/changed" and event.payload.thread_id == thread.id:
            idle += event.payload.status.root.type == "idle"
    return thread.run("what is silk?").final_response


def forks(codex, thread):
    thread.set_name("Weaving")
    fork = codex.thread_fork(thread.id)
    answer = fork.run("what is hemp?").final_response
    fork.set_name("Forked")
    seen = {"forked": answer, "forkedFrom": fork.read().thread.forked_from_id}
    seen["listed"] = names(codex)
    codex.thread_archive(fork.id)
    seen["listedAfterArchive"] = names(codex)
    seen["archived"] = names(codex, archived=True)
    back = codex.thread_unarchive(fork.id)
    seen["sameThread"] = back.id == fork.id
    seen["listedAfterUnarchive"] = names(codex)
    return seen


def resumes(codex, thread):
    resumed = codex.thread_resume(thread)
    answer = resumed.run("what is felt?").final_response
    read = resumed.read(include_turns=True).thread
    return {
        "answer": answer,
        "name": read.name,
        "turns": [[turn.status.value, said(turn.items)] for turn in read.turns],
    }


def texts(events):
    items = [event.payload.item for event in events if event.method == "item/completed"]
    return [item.root.text for item in items if item.root.type == "agentMessage"]


def said(items):
    """Returns the messages of the user and the agent, in order."""
    found = []
    for item in (item.root for item in items):
        if item.type == "userMessage":
            found.append("".join(part.root.text for part in item.content))
        elif item.type == "agentMessage":
            found.append(item.text)
    return found


def names(codex, **filters):
    return sorted(thread.name for thread in codex.thread_list(**filters).data)


def post(address):
    with urllib.request.urlopen(urllib.request.Request(address, method="POST", data=b"")):
        pass


main()
