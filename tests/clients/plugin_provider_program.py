"""Run by the Python with the SDK: a turn for each model.

Usage: plugin_provider_program.py PROGRAM MODEL...

Prints the status, the error, the items and the usage of each turn, as JSON.
"""

import json
import sys

from openai_codex.client import CodexClient, CodexConfig


def turn(client, model):
    thread = client.thread_start({"model": model}).thread.id
    said = [{"type": "text", "text": "what makes linen?"}]
    turn = client.turn_start(thread, said).turn.id
    items, usage = [], None
    while True:
        event = client.next_turn_notification(turn)
        payload = event.payload.model_dump(mode="json", by_alias=True)
        if event.method == "item/completed":
            items.append(payload["item"])
        if event.method == "thread/tokenUsage/updated":
            usage = payload["tokenUsage"]["total"]
        if event.method == "turn/completed":
            end = payload["turn"]
            return {"status": end["status"], "error": end["error"], "items": items, "usage": usage}


def main():
    program, *models = sys.argv[1:]
    client = CodexClient(CodexConfig(codex_bin=program))
    client.start()
    try:
        client.initialize()
        print(json.dumps([turn(client, model) for model in models]))
    finally:
        client.close()


main()
