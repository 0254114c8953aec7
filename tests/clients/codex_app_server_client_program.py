"""Run by the Python with codex-app-server-client: turns of a new thread, or of one that is resumed.

Usage: codex_app_server_client_program.py PROGRAM FOLDER [--resume THREAD] PROMPT...

Allows every command. Prints the thread and the answers, as JSON.
"""

import json
import sys

from codex_app_server_client import SyncCodexAppServer, ThreadStartParams


def main():
    program, folder, *prompts = sys.argv[1:]
    resumed = None
    if prompts[0] == "--resume":
        _, resumed, *prompts = prompts
    with SyncCodexAppServer(codex_bin=program) as server:
        server.low_level.on_server_request(
            "item/commandExecution/requestApproval", lambda *_: {"decision": "accept"}
        )
        if resumed:
            thread = server.resume_thread(resumed)
        else:
            thread = server.start_thread(ThreadStartParams(cwd=folder))
        answers = [thread.run(prompt, timeout_s=60).final_response for prompt in prompts]
    print(json.dumps({"thread": thread.id, "answers": answers}))


main()
