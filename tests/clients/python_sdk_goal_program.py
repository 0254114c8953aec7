"""Run by the Python with the SDK: goals, each as one turn for the user.

Usage: python_sdk_goal_program.py PROGRAM [KEY=VALUE]...

Prints what it received, as JSON.
"""

import json
import sys

from openai_codex import Codex, CodexConfig
from openai_codex._goal import _GoalNotificationStream

_DELTA = "item/agentMessage/delta"


def main():
    program, *overrides = sys.argv[1:]
    config = CodexConfig(codex_bin=program, config_overrides=tuple(overrides))
    with Codex(config) as codex:
        thread = codex.thread_start()
        seen = {
            "thread": thread.id,
            "reached": pursues(codex._client, thread, "weave a yard"),
            "given up": pursues(codex._client, thread, "spin a mile", gives_up=True),
        }
    print(json.dumps(seen))


def pursues(client, thread, objective, gives_up=False):
    state, turn = client.start_goal_operation(thread.id, objective)
    events = []
    for event in stream(client, state):
        events.append(event)
        if gives_up and event.method == _DELTA:
            client.cancel_goal_operation(state)
    end = events[-1].payload.turn
    return {
        "started": [event.method for event in events].count("turn/started"),
        "texts": [event.payload.delta for event in events if event.method == _DELTA],
        "status": end.status.value,
        "sameTurn": end.id == turn,
    }


def stream(client, state):
    return _GoalNotificationStream(
        state,
        lambda: client.next_goal_notification(state),
        lambda: client.unregister_goal_operation(state),
        lambda: client.cancel_goal_operation(state),
    )


main()
