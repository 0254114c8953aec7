"""Records responses of real servers, byte by byte, for the tests of the decoders.

llama.cpp with the small model of these checks, aimock, and `raddle mock`: texts, reasoning, calls, truncated and
failed responses, on every wire of each. Each record also has the server's response without streaming, where it
supports that: an independent account of the stream.

Usage: python3 tests/clients/record_streams.py --raddle PROGRAM --parts FOLDER --out FILE
"""

import sys

sys.dont_write_bytecode = True

import argparse
import json
import os
import tempfile
import urllib.request
from pathlib import Path

from aimock import AiMock
from harness import DEADLINE_S, Bench, Parts
from llama_model import LlamaModel
from mock_model import MockModel

_TOOL = {
    "name": "look",
    "description": "Looks.",
    "schema": {
        "type": "object",
        "properties": {"at": {"type": "string"}},
        "required": ["at"],
    },
}
_LLAMA_WIRES = ["responses", "chat", "messages"]
_WIRES = [*_LLAMA_WIRES, "gemini"]
_THINKING_MODELS = {
    "responses": "o3",
    "chat": "deepseek-reasoner",
    "messages": "claude-sonnet-4-6",
    "gemini": "gemini-3-pro-preview",
}


def main():
    arguments = _arguments()
    os.umask(0o077)
    with tempfile.TemporaryDirectory(prefix="raddle-record-") as folder:
        bench = Bench(Path(folder) / "bench", arguments.raddle.resolve(), Parts(arguments.parts.resolve()))
        try:
            recorded = [*_of_llama(bench), *_of_aimock(bench), *_of_mock(bench)]
        finally:
            bench.close()
    lines = (json.dumps(it, ensure_ascii=False, separators=(",", ":")) + "\n" for it in recorded)
    arguments.out.write_text("".join(lines))
    print(f"{len(recorded)} responses")


def _arguments():
    parser = argparse.ArgumentParser(description="Records responses of real servers.")
    parser.add_argument("--raddle", type=Path, required=True)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _of_llama(bench):
    """Yields responses of each number of tokens up to the whole, and with stop words; with a tool, which the model calls
    at once, few tokens truncate the call."""
    server = LlamaModel(bench)
    asked = [
        *((most, [], None) for most in (*range(1, 9), 1000)),
        *((1000, [], word) for word in ("checks", "passed", "and", "the", "change")),
        *((most, [_TOOL], None) for most in (1, 2, 3, 4, 6, 8, 1000)),
    ]
    for wire in _LLAMA_WIRES:
        for most, tools, stop in asked:
            name = " ".join([str(most), *(it["name"] for it in tools), *([stop] if stop else [])])
            path, body = _asked(wire, "bigram", f"{name}: what makes cloth?", tools, most)
            if stop:
                body["stop_sequences" if wire == "messages" else "stop"] = [stop]
            # For a truncated call its response without streaming differs from the stream.
            has_account = not tools or most == 1000
            yield _recorded("llama", wire, name, f"{server.address}/v1", (path, body), has_account)


def _of_aimock(bench):
    texts = ["Hi.", "Grüße, 世界 🧵", 'a "quoted"\nline\\', "one two three four five six"]
    calls = [{"name": "look", "arguments": json.dumps({"at": at})} for at in ("sky", "die Küste 🌊")]
    responses = [
        *({"content": it} for it in texts),
        *({"content": it, "reasoning": "Let me see 🤔."} for it in texts),
        *({"toolCalls": calls[:count]} for count in (1, 2)),
        *({"toolCalls": calls[:count], "reasoning": "Hm."} for count in (1, 2)),
        *({"content": it, "toolCalls": calls[:1]} for it in texts[:2]),
        {"content": "So", "finishReason": "length"},
        {"content": "No", "finishReason": "content_filter"},
    ]
    fixtures = [
        {"match": {"userMessage": f"answer {at};"}, "response": response}
        for at, response in enumerate(responses)
    ]
    server = AiMock(bench, fixtures, letters=8)
    for wire in _WIRES:
        for at, response in enumerate(responses):
            model = _THINKING_MODELS[wire] if "reasoning" in response else "plain"
            asked = _asked(wire, model, f"answer {at};", [_TOOL], 1000)
            yield _recorded("aimock", wire, f"answer {at}", server.base_url(wire), asked, has_account=True)


def _of_mock(bench):
    server = MockModel(bench, [])
    texts = ['say="Hi."', 'say="Grüße, 世界 🧵" size=5', "n=2 size=4", 'say="a \\"quote\\"\\nand a line" size=9']
    call = 'call name=look arguments={"at": "the sky"}'
    prompts = [
        *(f"text {it}" for it in texts),
        *(f"reasoning {it} text say=so" for it in texts),
        call,
        f"{call} {call}",
        f"text say=so {call} usage input=9 cached=4 cache_written=1 output=3 reasoning=2",
        f"reasoning say=so {call}",
        'refusal say="I will not."',
        'call name=apply_patch input="*** Begin\\n+é"',
        *(f"text say=half {it}" for it in ("incomplete", "filtered", "429 retry_after=2", "500", "529")),
    ]
    for wire in _WIRES:
        for prompt in prompts:
            asked = _asked(wire, "mock", f"MOCK {prompt}", [_TOOL], 1000)
            yield _recorded("mock", wire, prompt, f"{server.address}/v1", asked)


def _asked(wire, model, prompt, tools, most):
    """Returns the address and the body of a call."""
    if wire == "gemini":
        declared = [
            {"name": it["name"], "description": it["description"], "parametersJsonSchema": it["schema"]}
            for it in tools
        ]
        body = {
            "contents": [{"role": "user", "parts": [{"text": prompt}]}],
            "tools": [{"functionDeclarations": declared}],
        }
        return f"/models/{model}:streamGenerateContent?alt=sse", body
    said = [{"role": "user", "content": prompt}]
    match wire:
        case "responses":
            tools = [
                {"type": "function", "name": it["name"], "description": it["description"], "parameters": it["schema"]}
                for it in tools
            ]
            more = {"input": said, "max_output_tokens": most}
        case "chat":
            tools = [
                {
                    "type": "function",
                    "function": {"name": it["name"], "description": it["description"], "parameters": it["schema"]},
                }
                for it in tools
            ]
            more = {"messages": said, "max_tokens": most, "stream_options": {"include_usage": True}}
        case "messages":
            tools = [
                {"name": it["name"], "description": it["description"], "input_schema": it["schema"]} for it in tools
            ]
            more = {"messages": said, "max_tokens": most}
    path = {"responses": "/responses", "chat": "/chat/completions", "messages": "/messages"}[wire]
    return path, {"model": model, "stream": True, **({"tools": tools} if tools else {}), **more}


def _recorded(server, wire, name, base_url, asked, has_account=False):
    path, body = asked
    entry = {"from": server, "wire": wire, "name": name, "stream": _post(base_url + path, body).decode()}
    if has_account:
        if wire == "gemini":
            path = path.replace("streamGenerateContent?alt=sse", "generateContent")
        whole = {key: value for key, value in body.items() if not key.startswith("stream")}
        text, calls = _ACCOUNTS[wire](json.loads(_post(base_url + path, whole)))
        entry |= {"text": text, "calls": calls}
    return entry


def _post(url, body):
    kind = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=kind)
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        return answer.read()


def _of_responses(whole):
    items = whole["output"]
    said = [part["text"] for it in items if it["type"] == "message" for part in it["content"]]
    calls = [[it["name"], it["arguments"]] for it in items if it["type"] == "function_call"]
    return "".join(said), calls


def _of_chat(whole):
    message = whole["choices"][0]["message"]
    calls = [it["function"] for it in message.get("tool_calls") or []]
    return message.get("content") or "", [[it["name"], it["arguments"]] for it in calls]


def _of_messages(whole):
    blocks = whole["content"]
    said = [it["text"] for it in blocks if it["type"] == "text"]
    calls = [[it["name"], json.dumps(it["input"])] for it in blocks if it["type"] == "tool_use"]
    return "".join(said), calls


def _of_gemini(whole):
    parts = whole["candidates"][0]["content"]["parts"]
    said = [it["text"] for it in parts if "text" in it and not it.get("thought")]
    calls = [it["functionCall"] for it in parts if "functionCall" in it]
    return "".join(said), [[it["name"], json.dumps(it["args"])] for it in calls]


_ACCOUNTS = {
    "responses": _of_responses,
    "chat": _of_chat,
    "messages": _of_messages,
    "gemini": _of_gemini,
}

main()
