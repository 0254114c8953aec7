"""The stock clients with a real engine behind the server: llama.cpp, and a model that is always sure."""

import json
from pathlib import Path

from harness import Server, require, require_equal, run_client
from llama_model import ANSWER, ANSWER_TOKENS, MODEL, LlamaModel
from tui_client import EMPTY_PROMPT, start_tui

_PROGRAM = Path(__file__).with_name("python_sdk_program.py")
_PROMPTS = ["is it ready?", "are you sure?"]


def terminal_client(bench):
    model = LlamaModel(bench)
    model.configure(bench)
    server = Server(bench, "--listen", "ws://127.0.0.1:0", "--insecure-loopback")
    terminal = start_tui(bench, f"ws://{server.address}")
    terminal.wait_for(f"{MODEL} default")
    for number, prompt in enumerate(_PROMPTS, start=1):
        terminal.wait_for(EMPTY_PROMPT)
        terminal.enter(prompt)
        terminal.wait_for(f"› {prompt}")
        shown = f"• {ANSWER}"
        terminal.wait_until_shown(shown, times=number)
        # The client has its first thread named too.
        model.require_generated(number * ANSWER_TOKENS)
    terminal.wait_for(EMPTY_PROMPT)
    terminal.enter("/quit")
    require_equal("the client's exit code", terminal.wait_for_end(), 0)
    server.stop()


def python_sdk(bench):
    model = LlamaModel(bench)
    overrides = [f"{key}={value}" for key, value in model.settings.items()]
    overrides.append("sandbox_workspace_write.network_access=true")
    command = [
        *(bench.parts.sdk_python, "-B", _PROGRAM, "sync", bench.raddle),
        *(json.dumps(_PROMPTS), *overrides),
    ]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    turns = json.loads(out)["turns"]
    require_equal("the answers", [turn["answer"] for turn in turns], [ANSWER, ANSWER])
    for turn in turns:
        require_equal("the status", turn["status"], "completed")
        taken, made, both = turn["lastTokens"]
        require_equal("the tokens that were made", made, ANSWER_TOKENS)
        require(taken > 0 and both == taken + made, f"the tokens are {turn['lastTokens']}")
    require_equal("all tokens", model.generated(), 2 * ANSWER_TOKENS)


CHECKS = {
    "llama-tui": terminal_client,
    "llama-python-sdk": python_sdk,
}
