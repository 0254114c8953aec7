"""Run by the Python with codex-app-server-sdk: turns of a new thread, or of one that is resumed.

Usage: codex_app_server_sdk_program.py PROGRAM FOLDER [--resume THREAD] PROMPT...

Allows every command. Prints the thread and the answers, as JSON.
"""

import asyncio
import json
import sys

from codex_app_server_sdk import CodexClient, ThreadConfig


async def main():
    program, folder, *prompts = sys.argv[1:]
    resumed = None
    if prompts[0] == "--resume":
        _, resumed, *prompts = prompts

    async def allow(_):
        return "accept"

    async with CodexClient.connect_stdio(command=[program, "app-server"]) as client:
        client.set_approval_handler(allow)
        if resumed:
            thread = await client.resume_thread(resumed)
        else:
            thread = await client.start_thread(ThreadConfig(cwd=folder))
        answers = [(await thread.chat_once(prompt)).final_text for prompt in prompts]
    print(json.dumps({"thread": thread.thread_id, "answers": answers}))


asyncio.run(main())
