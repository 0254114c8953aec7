"""The vendors' own clients read the responses of `raddle mock` on every wire, and check them against their types."""

import json
from pathlib import Path

from harness import DEADLINE_S, require_equal, run_client
from mock_model import MockModel

_PROGRAM = Path(__file__).with_name("vendors_stream_program.py")
#: Importing their types alone takes seconds.
_PATIENCE_S = 2 * DEADLINE_S
_PROMPTS = {
    "whole": 'MOCK reasoning say="Let me look. 🧵" text say="I look." '
    'call name=look arguments={"at": "the sky"} call name=look arguments={"at": "the sea"} '
    "usage input=12 cached=4 cache_written=2 output=7 reasoning=3",
    "long": "MOCK text n=500 size=8",
    "refusal": 'MOCK refusal say="I will not."',
    "patch": 'MOCK call name=apply_patch input="*** Begin Patch"',
    "length": "MOCK text say=half incomplete",
    "filter": "MOCK text say=half filtered",
    "middle": "MOCK text say=half 500",
    "rate": "MOCK 429 retry_after=2",
    "quota": "MOCK quota",
    "context": "MOCK context",
    "key": "MOCK unauthorized",
    "rights": "MOCK refused",
    "failed": "MOCK 500",
    "busy": "MOCK 529",
}
_WIRES = ["responses", "chat", "messages", "gemini"]
#: The stop reason of each wire.
_ENDS = {
    "whole": ["completed", "tool_calls", "tool_use", "STOP"],
    "long": ["completed", "stop", "end_turn", "STOP"],
    "refusal": ["completed", "stop", "end_turn", "STOP"],
    "patch": ["completed", "tool_calls", "tool_use", "STOP"],
    "length": ["max_output_tokens", "length", "max_tokens", "MAX_TOKENS"],
    "filter": ["content_filter", "content_filter", "refusal", "SAFETY"],
}
#: The exception of each client. OpenAI's reads a failure within a response as an event.
_ERRORS = {
    "middle": [None, ["APIError", None], ["APIStatusError", 200], ["ServerError", 500]],
    "rate": [*2 * [["RateLimitError", 429]], ["RateLimitError", 429], ["ClientError", 429]],
    "quota": [*2 * [["RateLimitError", 429]], ["RateLimitError", 429], ["ClientError", 429]],
    "context": [*3 * [["BadRequestError", 400]], ["ClientError", 400]],
    "key": [*3 * [["AuthenticationError", 401]], ["ClientError", 401]],
    "rights": [*3 * [["PermissionDeniedError", 403]], ["ClientError", 403]],
    "failed": [*3 * [["InternalServerError", 500]], ["ServerError", 500]],
    "busy": [*2 * [["InternalServerError", 529]], ["OverloadedError", 529], ["ServerError", 529]],
}


def streams(bench):
    model = MockModel(bench, [])
    command = [bench.parts.vendors_python, "-B", _PROGRAM, model.address, json.dumps(_PROMPTS)]
    code, out, _ = run_client(bench, command, bench.environment(), _PATIENCE_S)
    require_equal("the program's exit code", code, 0)
    heard = json.loads(out)
    for name in _PROMPTS:
        found = [heard[wire][name] for wire in _WIRES]
        if name in _ENDS:
            require_equal(f"how {name!r} ended", [it.get("end") for it in found], _ENDS[name])
        else:
            errors = [[it["error"], it["status"]] if "error" in it else None for it in found]
            require_equal(f"the exception of {name!r}", errors, _ERRORS[name])
    require_equal("the failed response", heard["responses"]["middle"]["end"], "failed")
    for at, wire in enumerate(_WIRES):
        _require_said(wire, heard[wire])


def _require_said(wire, heard):
    whole = heard["whole"]
    require_equal(f"the text on {wire}", whole["text"], "I look.")
    require_equal(f"the reasoning on {wire}", whole["thought"], "Let me look. 🧵")
    calls = [["look", {"at": "the sky"}], ["look", {"at": "the sea"}]]
    require_equal(f"the calls on {wire}", whole["calls"], calls)
    tokens = [12, 4, 2, 7, 3]
    # Values that a wire does not have.
    unsaid = {"messages": [4], "gemini": [2]}.get(wire, [])
    tokens = [None if at in unsaid else it for at, it in enumerate(tokens)]
    require_equal(f"the tokens on {wire}", whole["tokens"], tokens)
    require_equal(f"the long text on {wire}", len(heard["long"]["text"]), 4000)
    require_equal(f"the refusal on {wire}", heard["refusal"]["text"], "I will not.")
    (call,) = heard["patch"]["calls"]
    patch = "*** Begin Patch"
    argument = patch if wire == "responses" else {"input": patch}
    require_equal(f"the patch on {wire}", call, ["apply_patch", argument])


CHECKS = {
    "vendors-stream": streams,
}
