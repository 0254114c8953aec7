"""Run by the Python with codex-python-sdk: turns of a new thread, or of one that is resumed.

Usage: codex_python_sdk_program.py PROGRAM FOLDER [--resume THREAD] PROMPT...

Allows every command. Prints the thread and the answers, as JSON.
"""

import json
import sys

from codex_python_sdk import create_client


def main():
    program, folder, *prompts = sys.argv[1:]
    thread = None
    if prompts[0] == "--resume":
        _, thread, *prompts = prompts
    answers = []
    with create_client(
        codex_command=program,
        process_cwd=folder,
        on_command_approval=lambda _: {"decision": "accept"},
    ) as client:
        for prompt in prompts:
            response = client.responses_create(prompt=prompt, thread_id=thread)
            thread = response.thread_id
            answers.append(response.text)
    print(json.dumps({"thread": thread, "answers": answers}))


main()
