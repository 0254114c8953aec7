"""codex-autorunner with Raddle as `app_server.command`, through the web server of its hub."""

import json

from harness import require_equal, run_client
from results import ClientResult
from third_party import APPROVAL, RESUME, TURN, Conversation
from web_client import WebClient

_NAME, _VERSION = "codex-autorunner", "2.2.3"


def hub(bench):
    result = ClientResult(
        bench, _NAME, "PyPI", _VERSION,
        "`app_server.command` in `codex-autorunner.override.yml` names the program.",
    )
    conversation = Conversation(bench)
    environment = conversation.environment()
    car = bench.parts.python(_NAME, _VERSION).with_name("car")
    root = bench.workspace / "hub"
    code, _, _ = run_client(bench, [car, "init", root, "--mode", "hub"], environment)
    require_equal("the exit code of `car init`", code, 0)
    settings = {"app_server": {"command": [str(conversation.program), "app-server"]}}
    # JSON is YAML too.
    (root / "codex-autorunner.override.yml").write_text(json.dumps(settings))
    workspace = root / "repository"
    workspace.mkdir()

    def command(port):
        return [car, "serve", "--path", root, "--host", "127.0.0.1", "--port", port]

    def serve():
        return WebClient(bench, command, environment)

    web = serve()
    begun = web.post(
        "/hub/pma/thread-starts",
        agent="codex",
        chat_kind="coding_agent",
        workspace_root=str(workspace),
        context_profile="none",
        approval_mode="safe",
        message=TURN[0],
    )
    conversation.require_turn(begun["assistant_text"])
    result.works("turn")
    messages = f"/hub/pma/threads/{begun['managed_thread_id']}/messages"
    web.post(messages, message=APPROVAL[0])
    require_equal("the client's decisions", conversation.decisions(), ["cancel"])
    result.lacks("approval", "The hub's web chat cancels a turn that needs one.")
    web.kill()
    answer = serve().post(messages, message=RESUME[0])
    conversation.require_resume(answer["assistant_text"])
    result.works("resume")
    require_equal("requests that are not served", conversation.refused(), [])
    conversation.require_clean()


CHECKS = {_NAME: hub}
