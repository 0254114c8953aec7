"""The stock TypeScript SDK with Raddle as `codexPathOverride`, and `codex exec` compared with `raddle exec`.

The SDK starts `exec` for each turn, writes the prompt to its stdin and reads JSON lines.
"""

import json
import re
from pathlib import Path

from harness import require, require_equal, run_client, wait_until
from mock_model import MODEL, MockModel, calls, held, patches, says

_PROGRAM = Path(__file__).with_name("typescript_sdk_program.mjs")
_GIF = b"GIF89a\x01\x00\x01\x00, as far as anyone looks"
_PATCH = "*** Begin Patch\n*** Add File: loom.txt\n+warp\n*** End Patch\n"
_PLAN = [{"step": "spin", "status": "completed"}, {"step": "weave", "status": "in_progress"}]
_TODO = {"type": "todo_list", "items": [
    {"text": "spin", "completed": True}, {"text": "weave", "completed": False},
]}
_COMMAND = "echo woven; exit 3"


def sdk(bench):
    image = bench.workspace / "cloth.gif"
    image.write_bytes(_GIF)
    usage = "usage = { input = 100, cached = 40, output = 5, reasoning = 2 }"
    model = MockModel(bench, [
        ("cloth?", [*says("from threads"), usage]),
        ("yarn?", [*says("from wool"), usage]),
        ("weave it", ['reasoning = "A loom, then."', calls("update_plan", {"plan": _PLAN})]),
        ("Plan updated", [calls("exec_command", {"cmd": _COMMAND})]),
        ("woven", [patches(_PATCH)]),
        ("loom.txt", says("It is woven.")),
        ("say that again", says("as I said")),
        ("which colour?", says('{"colour": "madder"}')),
        ("any colour?", says('{"color": "weld"}')),
        ("what is on it?", says("a fleece")),
        ("fail, please", ['fault = "refused"']),
        ("never stop", held("on and on and on")),
    ])
    command = [
        *(bench.parts.node, _PROGRAM, bench.parts.typescript_sdk, bench.raddle),
        *(model.address, image, bench.workspace),
    ]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the program's exit code", code, 0)
    seen = json.loads(out)
    _ran(seen)
    require_equal("the lines of a streamed run", _plain(seen["events"]), [
        {"type": "thread.started"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "A loom, then."}},
        {"type": "item.started", "item": {"id": "item_1", **_TODO}},
        *_whole("item_2", _command("in_progress", None, ""), _command("failed", 3, "woven\n")),
        *_whole("item_3", _change(bench, "in_progress"), _change(bench, "completed")),
        {"type": "item.completed", "item": {"id": "item_4", "type": "agent_message", "text": "It is woven."}},
        {"type": "item.completed", "item": {"id": "item_1", **_TODO}},
        {"type": "turn.completed"},
    ])
    _asked(model)
    require_equal("the patched file", (bench.workspace / "loom.txt").read_text(), "warp\n")
    _aborted(bench, model, seen)


def _ran(seen):
    first, again = seen["run"], seen["again"]
    require_equal("the answer", first["finalResponse"], "from threads")
    require_equal("its items", [it["type"] for it in first["items"]], ["agent_message"])
    require_equal("its tokens", first["usage"], _tokens(1))
    require_equal("the second answer", again["finalResponse"], "from wool")
    require_equal("the tokens of both", again["usage"], _tokens(2))
    require_equal("what was resumed", [seen["resumed"], seen["sameThread"]], ["as I said", True])
    require_equal("the answer by the schema", json.loads(seen["schema"]), {"colour": "madder"})
    require_equal("the answers about images", [seen["image"], seen["imageLater"]], 2 * ["a fleece"])
    for name, text in [
        ("unfit", "the answer does not fit the schema: the whole has no `colour`"),
        ("failed", "403"),
        ("aborted", "The operation was aborted"),
    ]:
        require(text in (seen[name] or ""), f"{name}: no {text!r} in {seen[name]!r}")


def _aborted(bench, model, seen):
    """Checks that the aborted run had begun, that its turn was interrupted, and that it left no process."""
    require_equal("answers that were held when it was aborted", seen["heldAtAbort"], 1)
    model.wait_until_left()
    # Processes take a moment to end, and the model continues.
    left = wait_until(lambda: len(bench.processes()) == 1, deadline_s=30)
    require(left, f"processes were left behind: {bench.processes()}")
    command = [bench.raddle, "thread", "show", seen["endless"]]
    code, out, _ = run_client(bench, command, bench.environment())
    require_equal("the exit code of `raddle thread show`", code, 0)
    require("interrupted: requested by a client" in out, f"the turn was not interrupted: {out!r}")


def _asked(model):
    bodies = model.bodies()
    require_equal("the model", {it["model"] for it in bodies}, {MODEL})
    require_equal("the effort", {it["reasoning"]["effort"] for it in bodies}, {"high"})
    headers = [{name.lower() for name in it["headers"]} for it in model.state()["requests"]]
    require(all("authorization" in it for it in headers), "a call had no key")
    images = [json.dumps(it["input"]).count("data:image/gif") for it in bodies]
    require_equal("calls with an image", sorted(set(images)), [0, 1])


def beside_codex(bench):
    """The same script for `codex exec` and `raddle exec`: the same lines, except for values that are their own."""
    answers = [
        ("weave", ['reasoning = "A loom, then."', *says("I look."), calls("exec_command", {"cmd": _COMMAND})], 1),
        ("woven", [*says("Torn."), "usage = { input = 100, cached = 40, output = 5, reasoning = 2 }"], 1),
        ("fail", ['fault = "quota"']),
    ]
    told = {}
    for program in (bench.parts.codex, bench.raddle):
        folder = bench.folder / f"beside-{len(told)}"
        folder.mkdir()
        told[program] = [_lines(bench, folder, program, answers, prompt) for prompt in ("weave it", "fail")]
    (codex, failed_codex), (raddle, failed_raddle) = told[bench.parts.codex], told[bench.raddle]
    require_equal("the lines", raddle, codex)
    kinds = [[it["type"] for it in lines] for lines in (failed_raddle, failed_codex)]
    require_equal("the lines of a failure", *kinds)


def _lines(bench, folder, program, answers, prompt):
    """Returns a program's output without its own values: ids, its shell, and its warnings about models."""
    bench.folder, kept = folder, bench.folder
    try:
        (folder / prompt.split()[0]).mkdir()
        bench.folder = folder / prompt.split()[0]
        model = MockModel(bench, answers)
    finally:
        bench.folder = kept
    settings = {**model.settings, f"model_providers.{MODEL}.name": '"mock"'}
    words = [word for key, value in settings.items() for word in ("--config", f"{key}={value}")]
    sandbox = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]
    code, out, _ = run_client(
        bench, [program, "exec", "--json", *words, *sandbox, prompt], bench.environment()
    )
    require_equal(f"{program.name}'s exit code for {prompt!r}", code, 1 if prompt == "fail" else 0)
    lines = [json.loads(line) for line in out.splitlines()]
    lines = [it for it in lines if it.get("item", {}).get("type") != "error"]
    for number, line in enumerate(lines):
        line.pop("thread_id", None)
        line.pop("message", None)
        line.pop("error", None)
        # The mock's estimate, from the size of each prompt.
        line.pop("usage", None)
        if item := line.get("item"):
            item.pop("id")
            if "command" in item:
                item["command"] = re.sub(r"^\S+ -l?c ", "", item["command"])
        lines[number] = line
    return lines


def _plain(events):
    for event in events:
        event.pop("thread_id", None)
        event.pop("usage", None)
        if "command" in event.get("item", {}):
            event["item"]["command"] = _COMMAND if _COMMAND in event["item"]["command"] else "?"
    return events


def _whole(name, begun, ended):
    return [
        {"type": "item.started", "item": {"id": name, **begun}},
        {"type": "item.completed", "item": {"id": name, **ended}},
    ]


def _command(status, code, output):
    return {
        "type": "command_execution",
        "command": _COMMAND,
        "aggregated_output": output,
        "exit_code": code,
        "status": status,
    }


def _change(bench, status):
    changes = [{"path": str(bench.workspace / "loom.txt"), "kind": "add"}]
    return {"type": "file_change", "changes": changes, "status": status}


def _tokens(calls_made):
    return {
        "input_tokens": 100 * calls_made,
        "cached_input_tokens": 40 * calls_made,
        "cache_write_input_tokens": 0,
        "output_tokens": 5 * calls_made,
        "reasoning_output_tokens": 2 * calls_made,
    }


CHECKS = {"typescript-sdk": sdk, "exec-beside-codex": beside_codex}
