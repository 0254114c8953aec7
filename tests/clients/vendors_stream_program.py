"""Reads the responses of a server with the vendors' own clients, and checks every event against their types.

The clients tolerate missing members; the types do not. Prints what each client received as JSON.

Usage: vendors_stream_program.py ADDRESS PROMPTS
"""

import json
import sys

import anthropic
import openai
from google import genai
from google.genai import errors, types

_MODEL = "mock"
_TOKENS_MAX = 1000


def main():
    address, prompts = sys.argv[1], json.loads(sys.argv[2])
    wires = {"responses": _responses, "chat": _chat, "messages": _messages, "gemini": _gemini}
    heard = {
        wire: {name: _heard(read, address, prompt) for name, prompt in prompts.items()}
        for wire, read in wires.items()
    }
    json.dump(heard, sys.stdout)


def _heard(read, address, prompt):
    """Returns the result, or the client's exception with its status."""
    try:
        return read(address, prompt)
    except openai.APIStatusError as error:
        return {"error": type(error).__name__, "status": error.status_code}
    except anthropic.APIStatusError as error:
        # An error within a response has that response's status.
        return {"error": type(error).__name__, "status": error.status_code}
    except openai.APIError as error:
        return {"error": type(error).__name__, "status": None}
    except errors.APIError as error:
        return {"error": type(error).__name__, "status": error.code}


def _responses(address, prompt):
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    grown, final, last = "", None, -1
    for event in client.responses.create(model=_MODEL, input=prompt, stream=True):
        _hold_to_type(event)
        assert event.sequence_number == last + 1, "events are numbered from 0"
        last = event.sequence_number
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                grown += event.delta
            case "response.completed" | "response.incomplete" | "response.failed":
                final = event.response
    if final.status == "completed":
        # The client's own summary of the events.
        with client.responses.stream(model=_MODEL, input=prompt) as stream:
            stream.until_done()
            again = stream.get_final_response()
        assert _kinds(again) == _kinds(final), f"{_kinds(again)} is not {_kinds(final)}"
    said = [part for it in final.output if it.type == "message" for part in it.content]
    texts = [it.refusal if it.type == "refusal" else it.text for it in said]
    assert "".join(texts) == grown or final.status == "failed", f"{texts} is not {grown!r}"
    thinking = [it for it in final.output if it.type == "reasoning"]
    calls = [it for it in final.output if it.type.endswith("_call")]
    usage = final.usage
    return {
        "text": grown,
        "thought": "".join(part.text for it in thinking for part in it.summary),
        "calls": [[it.name, it.input if it.type == "custom_tool_call" else json.loads(it.arguments)] for it in calls],
        "end": final.incomplete_details.reason if final.incomplete_details else final.status,
        "tokens": usage
        and [
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.input_tokens_details.cache_write_tokens,
            usage.output_tokens,
            usage.output_tokens_details.reasoning_tokens,
        ],
    }


def _kinds(response):
    return [it.type for it in response.output]


def _chat(address, prompt):
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    asked = {
        "model": _MODEL,
        "messages": [{"role": "user", "content": prompt}],
        "stream_options": {"include_usage": True},
    }
    thought, end = "", None
    for event in client.chat.completions.create(**asked, stream=True):
        _hold_to_type(event)
        for choice in event.choices:
            thought += (choice.delta.model_extra or {}).get("reasoning_content") or ""
            end = choice.finish_reason or end
    if end in ("length", "content_filter"):
        # The client's own summary of these is an error.
        return {"end": end}
    with client.chat.completions.stream(**asked) as stream:
        final = stream.until_done().get_final_completion()
    (choice,) = final.choices
    assert choice.finish_reason == end, f"it ended with {choice.finish_reason}, not {end}"
    usage = final.usage
    calls = [it.function for it in choice.message.tool_calls or []]
    return {
        "text": choice.message.content or choice.message.refusal or "",
        "thought": thought,
        "calls": [[it.name, json.loads(it.arguments)] for it in calls],
        "end": end,
        "tokens": [
            usage.prompt_tokens,
            usage.prompt_tokens_details.cached_tokens,
            usage.prompt_tokens_details.cache_write_tokens,
            usage.completion_tokens,
            usage.completion_tokens_details.reasoning_tokens,
        ],
    }


def _messages(address, prompt):
    client = anthropic.Anthropic(base_url=address, api_key="none", max_retries=0)
    asked = {
        "model": _MODEL,
        "max_tokens": _TOKENS_MAX,
        "messages": [{"role": "user", "content": prompt}],
    }
    for event in client.messages.create(**asked, stream=True):
        _hold_to_type(event)
    with client.messages.stream(**asked) as stream:
        final = stream.until_done() or stream.get_final_message()
    _hold_to_type(final)
    usage = final.usage
    sealed = [it for it in final.content if it.type == "thinking" and it.signature]
    return {
        "text": "".join(it.text for it in final.content if it.type == "text"),
        "thought": "".join(it.thinking for it in sealed),
        "calls": [[it.name, it.input] for it in final.content if it.type == "tool_use"],
        "end": final.stop_reason,
        # This vendor counts cached tokens separately, and reports no reasoning tokens.
        "tokens": [
            usage.input_tokens
            + (usage.cache_read_input_tokens or 0)
            + (usage.cache_creation_input_tokens or 0),
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.output_tokens,
            None,
        ],
    }


def _gemini(address, prompt):
    options = types.HttpOptions(base_url=address, api_version="v1")
    client = genai.Client(api_key="none", http_options=options)
    parts, end, usage, signed = [], None, None, 0
    # This client checks responses against its types itself.
    for event in client.models.generate_content_stream(model=_MODEL, contents=prompt):
        (candidate,) = event.candidates
        parts += candidate.content.parts
        end = candidate.finish_reason or end
        usage = event.usage_metadata or usage
    calls = [it for it in parts if it.function_call]
    assert not calls or calls[0].thought_signature, "the first call is not sealed"
    return {
        "text": "".join(it.text or "" for it in parts if not it.thought),
        "thought": "".join(it.text or "" for it in parts if it.thought),
        "calls": [[it.function_call.name, it.function_call.args] for it in calls],
        "end": end.value,
        "tokens": usage
        and [
            usage.prompt_token_count,
            usage.cached_content_token_count,
            None,
            usage.candidates_token_count + usage.thoughts_token_count,
            usage.thoughts_token_count,
        ],
    }


def _hold_to_type(event):
    type(event).model_validate(event.to_dict(mode="json"))


main()
