"""Checks requests against the types of the vendors' own clients: every member is known and has a valid value.

Prints the number of requests on each wire. Prints problems to stderr, and then exits with 1.

Usage: vendors_judge_program.py FILE, with a list of bodies in JSON
"""

import json
import sys
from collections import Counter
from pathlib import Path

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator


def main():
    bodies = json.loads(Path(sys.argv[1]).read_text())
    judges = {
        "responses": _typed(ResponseCreateParamsStreaming),
        "chat": _chat(),
        "messages": _typed(MessageCreateParamsStreaming),
        "gemini": _gemini(),
    }
    count, wrong = Counter(), 0
    for at, body in enumerate(bodies):
        wire = _wire(body)
        count[wire] += 1
        try:
            judges[wire](body)
            _CALLS[wire](body)
        except ValidationError as error:
            wrong += 1
            for line in sorted(_near(error)):
                print(f"request {at} on {wire}: {line}", file=sys.stderr)
        except AssertionError as error:
            wrong += 1
            print(f"request {at} on {wire}: {error}", file=sys.stderr)
    json.dump(count, sys.stdout)
    sys.exit(1 if wrong else 0)


def _wire(body):
    if "contents" in body:
        return "gemini"
    if "input" in body:
        return "responses"
    return "chat" if "stream_options" in body else "messages"


def _near(error):
    """Yields the errors of the intended variant of a union."""
    found = error.errors(include_url=False, include_context=False)
    meant = {"type", "role"}
    others = {it["loc"][:-1] for it in found if it["loc"][-1] in meant}
    for it in found:
        if not any(it["loc"][: len(other)] == other for other in others):
            place = ".".join(str(step) for step in it["loc"] if "[" not in str(step))
            yield f"{place}: {it['msg']}"


def _typed(kind):
    """Returns a strict check: by default the types accept unknown members, and do not check iterables."""
    schema = _strict(TypeAdapter(kind).core_schema)
    return SchemaValidator(schema).validate_python


def _strict(schema):
    match schema:
        case {"type": "generator", **rest}:
            return _strict({**rest, "type": "list"})
        case {"type": "typed-dict"}:
            inside = {key: _strict(value) for key, value in schema.items()}
            return {**inside, "extra_behavior": "forbid"}
        case dict():
            return {key: _strict(value) for key, value in schema.items()}
        case list():
            return [_strict(it) for it in schema]
        case _:
            return schema


def _chat():
    """Returns a check without `reasoning_content`, which only other vendors of this wire know."""
    judge = _typed(CompletionCreateParamsStreaming)

    def without_thinking(message):
        return {key: value for key, value in message.items() if key != "reasoning_content"}

    return lambda body: judge({**body, "messages": [without_thinking(it) for it in body["messages"]]})


def _gemini():
    """Returns a check by member: this client has no type for the whole request. The types of the members are strict."""
    members = {
        "systemInstruction": TypeAdapter(types.Content),
        "contents": TypeAdapter(list[types.Content]),
        "tools": TypeAdapter(list[types.Tool]),
        "toolConfig": TypeAdapter(types.ToolConfig),
        "generationConfig": TypeAdapter(types.GenerationConfig),
    }

    def judge(body):
        unknown = body.keys() - members.keys()
        assert not unknown, f"unknown members: {unknown}"
        for name, value in body.items():
            members[name].validate_python(value)

    return judge


# Beyond the types: a call has one result, directly after it, with its own id.


def _responses_calls(body):
    called, answered = [], []
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind.endswith("_call"):
            called.append((item["call_id"], kind))
        elif kind.endswith("_call_output"):
            answered.append((item["call_id"], kind.removesuffix("_output")))
    assert len(set(called)) == len(called), f"ids are used twice: {called}"
    assert sorted(called) == sorted(answered), f"calls {called}, answers {answered}"


def _chat_calls(body):
    open_calls = []
    for message in body["messages"]:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, f"not answered: {open_calls}"
        open_calls = [it["id"] for it in message.get("tool_calls", [])]
    assert not open_calls, f"not answered: {open_calls}"


def _messages_calls(body):
    messages = body["messages"]
    roles = [it["role"] for it in messages]
    assert roles[0] == "user", "an assistant begins"
    assert all(one != other for one, other in zip(roles, roles[1:])), f"roles repeat: {roles}"
    open_calls = []
    for message in messages:
        blocks = message["content"]
        results = [it["tool_use_id"] for it in blocks if it["type"] == "tool_result"]
        assert sorted(results) == sorted(open_calls), f"calls {open_calls}, results {results}"
        first = [it["type"] for it in blocks[: len(results)]]
        assert set(first) <= {"tool_result"}, f"results do not come first: {first}"
        open_calls = [it["id"] for it in blocks if it["type"] == "tool_use"]
    assert not open_calls, f"not answered: {open_calls}"


def _gemini_calls(body):
    open_calls = []
    for content in body["contents"]:
        parts = content["parts"]
        answers = [it["functionResponse"]["name"] for it in parts if "functionResponse" in it]
        assert answers == open_calls, f"calls {open_calls}, answers {answers}"
        assert not answers or len(answers) == len(parts), "answers stand beside something else"
        open_calls = [it["functionCall"]["name"] for it in parts if "functionCall" in it]
    assert not open_calls, f"not answered: {open_calls}"


_CALLS = {
    "responses": _responses_calls,
    "chat": _chat_calls,
    "messages": _messages_calls,
    "gemini": _gemini_calls,
}

main()
