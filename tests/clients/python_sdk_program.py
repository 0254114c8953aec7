"""Run by the Python with the SDK: sends some requests, starts a thread, sends all prompts to it.

Usage: python_sdk_program.py sync|async PROGRAM PROMPTS [KEY=VALUE]...

PROMPTS is a JSON list. Prints what it received, as JSON.
"""

import asyncio
import json
import sys

import openai_codex
from openai_codex import AsyncCodex, Codex, CodexConfig
from openai_codex.generated.v2_all import ConfigReadResponse

_CONFIG_READ = ("config/read", {"includeLayers": True})


def sync_client(config, prompts):
    with Codex(config) as codex:
        account, models = codex.account(), codex.models()
        # The low-level client: the SDK has no call for this method.
        settings = codex._client.request(*_CONFIG_READ, response_model=ConfigReadResponse)
        thread = codex.thread_start()
        turns = [thread.run(prompt) for prompt in prompts]
        return seen(codex.metadata, account, models, settings, thread, turns)


async def async_client(config, prompts):
    async with AsyncCodex(config) as codex:
        account, models = await codex.account(), await codex.models()
        settings = await codex._client.request(*_CONFIG_READ, response_model=ConfigReadResponse)
        thread = await codex.thread_start()
        turns = [await thread.run(prompt) for prompt in prompts]
        return seen(codex.metadata, account, models, settings, thread, turns)


def seen(metadata, account, models, settings, thread, turns):
    config = settings.config.model_dump(mode="json")
    return {
        "sdkVersion": openai_codex.__version__,
        "serverName": metadata.serverInfo.name,
        "serverVersion": metadata.serverInfo.version,
        "userAgent": metadata.userAgent,
        "platformFamily": metadata.platformFamily,
        "platformOs": metadata.platformOs,
        "requiresOpenaiAuth": account.requires_openai_auth,
        "models": [[model.id, model.is_default] for model in models.data],
        "configModel": config["model"],
        "configNetworkAccess": config["sandbox_workspace_write"]["network_access"],
        "configOrigins": {
            key: origin.model_dump(mode="json")["name"]["type"]
            for key, origin in settings.origins.items()
        },
        "thread": thread.id,
        "turns": [seen_of_turn(turn) for turn in turns],
    }


def seen_of_turn(turn):
    return {
        "answer": turn.final_response,
        "status": turn.status.value,
        "error": turn.error and turn.error.model_dump(mode="json"),
        "items": [item.root.type for item in turn.items],
        "lastTokens": tokens(turn.usage.last),
        "totalTokens": tokens(turn.usage.total),
    }


def tokens(usage):
    return [usage.input_tokens, usage.output_tokens, usage.total_tokens]


def main():
    kind, program, prompts, *overrides = sys.argv[1:]
    prompts = json.loads(prompts)
    config = CodexConfig(codex_bin=program, config_overrides=tuple(overrides))
    if kind == "async":
        result = asyncio.run(async_client(config, prompts))
    else:
        result = sync_client(config, prompts)
    print(json.dumps(result))


main()
