"""One thread with tools over all four wires and back, with every request checked against the vendors' own types."""

import base64
import json
from pathlib import Path

from harness import DEADLINE_S, require, require_equal, run_client
from mock_model import MODEL, MockModel, calls, patches, says
from stdio_client import StdioClient

_PROGRAM = Path(__file__).with_name("vendors_judge_program.py")
_PATIENCE_S = 2 * DEADLINE_S
_WIRES = ["responses", "chat", "messages", "gemini"]
#: An image of one pixel.
_IMAGE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_SHOWN = [{"type": "image", "url": f"data:image/png;base64,{_IMAGE}"}]
_SCHEMA = {
    "type": "object",
    "properties": {"cloth": {"type": "string"}},
    "required": ["cloth"],
    "additionalProperties": False,
}
_THINKING = 'reasoning = "Let me see."'
_ECHO = calls("exec_command", {"cmd": "echo woven"})
_PLAN = calls("update_plan", {"plan": [{"step": "weave", "status": "completed"}]})
_ADD = patches("*** Begin Patch\n*** Add File: loom.txt\n+warp\n*** End Patch\n")
_BROKEN = calls("exec_command", {"cmd": 7})
_TOO_MANY = 'fault = "429", retry_after = 0'
_USED_UP = 'fault = "quota"'

#: The wire, the input of the turn, and the model's responses before the last one.
_TURNS = [
    ("responses", {}, [[_THINKING, _ECHO]]),
    ("responses", {}, [[_THINKING, _ADD]]),
    "compact",
    ("responses", {"images": _SHOWN}, [[_THINKING, _ECHO, _PLAN]]),
    ("messages", {"images": _SHOWN}, [[_THINKING, _ECHO]]),
    ("messages", {}, [[_TOO_MANY], [_THINKING, _ADD, _ECHO]]),
    ("messages", {"outputSchema": _SCHEMA}, [[calls("view_image", {"path": "dot.png"})]]),
    ("chat", {"images": _SHOWN}, [[_THINKING, _ECHO], [_PLAN]]),
    ("chat", {"outputSchema": _SCHEMA}, [[_BROKEN], [_USED_UP]]),
    ("gemini", {"images": _SHOWN}, [[_THINKING, _ECHO], [_THINKING, _ADD, _PLAN]]),
    ("gemini", {"outputSchema": _SCHEMA}, [[calls("view_image", {"path": "dot.png"})]]),
    ("responses", {"outputSchema": _SCHEMA}, [[_THINKING, _ECHO]]),
    ("responses", {}, [[calls("view_image", {"path": "dot.png"})]]),
]
#: The encrypted reasoning of each wire, by a unique word.
_SEALS = {
    "responses": '"encrypted_content"',
    "chat": "reasoning_content",
    "messages": '"signature"',
    "gemini": "thoughtSignature",
}


def switch(bench):
    (bench.workspace / "dot.png").write_bytes(base64.b64decode(_IMAGE))
    model = MockModel(bench, [(None, steps) for steps in _script()])
    client = StdioClient(bench, _settings(model))
    for number, turn in enumerate(_TURNS, 1):
        if turn == "compact":
            require_equal("how compacting ended", client.compact().status, "completed")
            continue
        wire, more, answers = turn
        client.change_provider(f"on-{wire}")
        heard = client.turn(f"go on ({number})", effort="medium", summary="auto", **more)
        told = f"how turn {number} on {wire} ended"
        if answers[-1] == [_USED_UP]:
            kind = (heard.error or {}).get("codexErrorInfo")
            require_equal(told, [heard.status, kind], ["failed", "usageLimitExceeded"])
            continue
        require_equal(told, [heard.status, heard.error], ["completed", None])
        require_equal(f"the message of turn {number}", heard.text, f"done {number}")
        require_equal("the number of retries", heard.retries, int([_TOO_MANY] in answers))
    client.leave()
    bodies = model.bodies()
    _require_judged(bench, bodies)
    _require_sealed(bodies)


def _script():
    """Returns all responses, in order."""
    for number, turn in enumerate(_TURNS, 1):
        if turn == "compact":
            yield says("We weave.")
            continue
        _, _, answers = turn
        yield from answers
        if answers[-1] != [_USED_UP]:
            yield says(f"done {number}")


def _settings(model):
    settings = {"model": f'"{MODEL}"', "model_provider": '"on-responses"'}
    for wire in _WIRES:
        provider = f"model_providers.on-{wire}"
        settings[f"{provider}.base_url"] = f'"{model.address}/v1"'
        settings[f"{provider}.wire_api"] = f'"{wire}"'
    return settings


def _require_judged(bench, bodies):
    file = bench.folder / "requests.json"
    file.write_text(json.dumps(bodies))
    command = [bench.parts.vendors_python, "-B", _PROGRAM, file]
    code, out, err = run_client(bench, command, bench.environment(), _PATIENCE_S)
    require_equal(f"the check against the vendors' types: {err[:2000]}", code, 0)
    # One request per response, and another for the first of a turn where it was rejected for a while.
    expected = dict.fromkeys(_WIRES, 0)
    expected["responses"] += 1
    for turn in _TURNS:
        if turn != "compact":
            wire, _, answers = turn
            expected[wire] += len(answers) + (answers[-1] != [_USED_UP])
    require_equal("the number of checked requests", json.loads(out), expected)


def _require_sealed(bodies):
    """Checks that encrypted reasoning returns to its own wire, also after others, and to no other wire."""
    texts = [json.dumps(it) for it in bodies]
    of = {
        "responses": [it for it, body in zip(texts, bodies) if "input" in body],
        "chat": [it for it, body in zip(texts, bodies) if "stream_options" in body],
        "messages": [it for it, body in zip(texts, bodies) if "system" in body],
        "gemini": [it for it, body in zip(texts, bodies) if "contents" in body],
    }
    for wire, seal in _SEALS.items():
        own = of.pop(wire)
        others = [it for rest in of.values() for it in rest]
        require(any(seal in it for it in own), f"{seal} is not sent back on {wire}")
        require(not any(seal in it for it in others), f"{seal} of {wire} is sent on another wire")
        of[wire] = own
    # Turn 4 was the first on Responses after the summary; turn 12 came after all other wires.
    back = of["responses"][-4]
    require_equal("earlier seals that are sent back", back.count(_SEALS["responses"]), 1)


CHECKS = {
    "vendors-switch": switch,
}
