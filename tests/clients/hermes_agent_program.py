"""Run by the Python with hermes-agent: turns of its agent with the runtime `codex_app_server`.

Usage: hermes_agent_program.py PROMPT...

The agent starts `codex` from `PATH`. Allows every command, as a user does at its prompt. Prints the answers,
as JSON.
"""

import contextlib
import json
import sys

from run_agent import AIAgent
from tools.terminal_tool import set_approval_callback


def main():
    set_approval_callback(lambda *_, **__: "once")
    # The agent reports its progress on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        agent = AIAgent(
            provider="openai",
            api_mode="codex_app_server",
            base_url="http://127.0.0.1:9/v1",
            api_key="unused",
            model="mock",
            quiet_mode=True,
        )
        history, answers = [], []
        for prompt in sys.argv[1:]:
            result = agent.run_conversation(prompt, conversation_history=history)
            history = result["messages"]
            answers.append(result["final_response"])
        agent.close()
    print(json.dumps({"answers": answers}))


main()
