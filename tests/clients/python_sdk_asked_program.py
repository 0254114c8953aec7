"""Run by the Python with the SDK: turns in which the server sends requests, and the program responds.

Usage: python_sdk_asked_program.py PROGRAM THREAD TURNS [KEY=VALUE]...

THREAD is the params of `thread/start`, as JSON. TURNS is a list of turns: each is the user's input and
a list of responses, one per server request. Prints what it received, as JSON.
"""

import json
import sys

from openai_codex.client import CodexClient, CodexConfig


def main():
    program, thread, turns, *overrides = sys.argv[1:]
    config = CodexConfig(codex_bin=program, config_overrides=tuple(overrides))
    asked, answers = [], []

    def answer(method, params):
        asked.append([method, params])
        # An unexpected request gets an empty response.
        return answers.pop(0) if answers else {}

    client = CodexClient(config, approval_handler=answer)
    client.start()
    try:
        client.initialize()
        thread = client.thread_start(json.loads(thread)).thread.id
        seen = []
        for said, given in json.loads(turns):
            asked.clear()
            answers[:] = given
            turn = client.turn_start(thread, [{"type": "text", "text": said}]).turn.id
            events = []
            while not events or events[-1].method != "turn/completed":
                events.append(client.next_turn_notification(turn))
            done = [event.payload.item for event in events if event.method == "item/completed"]
            seen.append({
                "asked": list(asked),
                "items": [item.model_dump(mode="json", by_alias=True) for item in done],
                "status": events[-1].payload.turn.status.value,
            })
    finally:
        client.close()
    print(json.dumps({"thread": thread, "turns": seen}))


main()
