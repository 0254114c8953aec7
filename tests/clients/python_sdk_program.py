"""Run by the Python that has the SDK: goes as far as `thread_start` and prints what it saw.

Usage: python_sdk_program.py sync|async PROGRAM [KEY=VALUE]...
"""

import asyncio
import json
import sys

import openai_codex
from openai_codex import AsyncCodex, Codex, CodexConfig, JsonRpcError
from openai_codex.generated.v2_all import ConfigReadResponse

_CONFIG_READ = ("config/read", {"includeLayers": True})


def sync_client(config):
    with Codex(config) as codex:
        account, models = codex.account(), codex.models()
        # The low-level client: the SDK has no call of its own for this method.
        settings = codex._client.request(*_CONFIG_READ, response_model=ConfigReadResponse)
        try:
            codex.thread_start()
            refusal = None
        except JsonRpcError as error:
            refusal = error
        return seen(codex.metadata, account, models, settings, refusal)


async def async_client(config):
    async with AsyncCodex(config) as codex:
        account, models = await codex.account(), await codex.models()
        settings = await codex._client.request(*_CONFIG_READ, response_model=ConfigReadResponse)
        try:
            await codex.thread_start()
            refusal = None
        except JsonRpcError as error:
            refusal = error
        return seen(codex.metadata, account, models, settings, refusal)


def seen(metadata, account, models, settings, refusal):
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
        "threadStart": refusal
        and {
            "class": type(refusal).__name__,
            "code": refusal.code,
            "message": refusal.message,
        },
    }


def main():
    kind, program, *overrides = sys.argv[1:]
    config = CodexConfig(codex_bin=program, config_overrides=tuple(overrides))
    result = asyncio.run(async_client(config)) if kind == "async" else sync_client(config)
    print(json.dumps(result))


main()
