"""Run by the Python with the SDK: a tool of the client, and images.

Usage: python_sdk_tools_program.py PROGRAM IMAGE [KEY=VALUE]...

IMAGE is a file. Prints what it received, as JSON.
"""

import base64
import json
import sys
from pathlib import Path

from openai_codex.client import CodexClient, CodexConfig

_TOOL = {
    "type": "namespace",
    "name": "loom",
    "description": "What the loom can do.",
    "tools": [
        {
            "type": "function",
            "name": "look",
            "description": "Looks at the cloth.",
            "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}},
        }
    ],
}


def main():
    program, image, *overrides = sys.argv[1:]
    config = CodexConfig(codex_bin=program, config_overrides=tuple(overrides))
    data = base64.b64encode(Path(image).read_bytes()).decode()
    url = f"data:image/gif;base64,{data}"
    asked = []

    def answers(method, params):
        asked.append([method, params])
        content = [
            {"type": "inputText", "text": "it is torn"},
            {"type": "inputImage", "imageUrl": url},
        ]
        return {"contentItems": content, "success": True}

    client = CodexClient(config, approval_handler=answers)
    client.start()
    try:
        client.initialize()
        thread = client.thread_start({"dynamicTools": [_TOOL]}).thread.id
        said = [
            {"type": "text", "text": "how is the cloth?"},
            {"type": "image", "url": url},
            {"type": "localImage", "path": image},
        ]
        turn = client.turn_start(thread, said).turn.id
        events = []
        while not events or events[-1].method != "turn/completed":
            events.append(client.next_turn_notification(turn))
    finally:
        client.close()
    items = [event.payload.item for event in events if event.method == "item/completed"]
    items = [item.model_dump(mode="json", by_alias=True) for item in items]
    print(json.dumps({
        "thread": thread,
        "turn": turn,
        "url": url,
        "methods": [event.method for event in events],
        "asked": asked,
        "items": items,
        "status": events[-1].payload.turn.status.value,
    }))


main()
