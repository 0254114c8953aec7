"""The examples of docs/skills.md, docs/hooks.md and docs/plugins.md, with the mock in place of a model."""

import json
import re
import subprocess
import sys
import threading

from harness import DEADLINE_S, require, require_equal, run_client
from mock_model import MockModel
from page_example import DOCS, MOCK, PageExample, environment_of


def skills(bench):
    page = PageExample("skills.md")
    files = page.named("toml")
    require_equal("the files of the example", sorted(files), ["config.toml", "mock.toml"])
    (text,), (script,) = page.texts("markdown"), page.texts("sh")
    folder = bench.client_home / ".agents/skills/release"
    _write(folder / "SKILL.md", text)
    _write(folder / "scripts/check.sh", script, mode=0o755)
    (bench.workspace / "Cargo.toml").touch()
    model = MockModel(bench, script=files["mock.toml"])
    config = bench.server_home / "config.toml"
    config.write_text(files["config.toml"].replace(MOCK, model.address))
    page.follow(bench, environment_of(bench), count=1)
    # The description is in the first call of the model, and the file only where it was read.
    first, second, *_ = (json.dumps(it["input"]) for it in model.bodies())
    require("Cuts a release of a Rust crate." in first, "the model did not get the description")
    rest = "Ask the user for the version"
    require_equal("the calls with the file", (rest in first, rest in second), (False, True))


def hooks(bench):
    page = PageExample("hooks.md")
    (script,), (definition,) = page.texts("sh"), page.texts("json")
    _write(bench.client_home / "hooks/no-push", script, mode=0o755)
    environment = environment_of(bench)
    # The page names the file in the home of the user.
    del environment["RADDLE_HOME"]
    _write(bench.client_home / ".config/raddle/hooks.json", definition)
    page.follow(bench, environment, count=4)


def plugins(bench):
    PageExample("plugins.md").follow(bench, environment_of(bench), count=3)


def typescript_plugin(bench):
    """The template in TypeScript, which the Node of the machine may be too old for."""
    folder = bench.folder / "hello"
    new = [bench.raddle, "plugin", "new", folder, "--lang", "typescript"]
    code, _, _ = run_client(bench, new, bench.environment())
    require_equal("the exit code of the template", code, 0)
    manifest = folder / "plugin.toml"
    node = json.dumps(str(bench.parts.node))
    manifest.write_text(manifest.read_text().replace('"node"', node))
    test = [bench.raddle, "plugin", "test", folder, "--approve", "--json"]
    code, out, _ = run_client(bench, test, bench.environment())
    require_equal("the violations", json.loads(out)["violations"], [])
    require_equal("the exit code of the test", code, 0)


def calls_at_once(bench):
    """The whole plugin of docs/plugins.md gives each response of the host to the call that waits for it."""
    page = (DOCS / "plugins.md").read_text()
    (program,) = re.findall(r"^```python\n(import itertools\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    path = bench.folder / "main.py"
    path.write_text(program)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, path], env=bench.environment(), text=True, **pipes)
    # Reading blocks, so a program that waits for ever is killed.
    watch = threading.Timer(DEADLINE_S, process.kill)
    watch.start()

    def send(**message):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()

    def read():
        line = process.stdout.readline()
        require(line, "the program ended")
        return json.loads(line)

    try:
        for name in ("one", "two"):
            send(id=name, method="words/count", params={"text": name})
        questions = [read(), read()]
        # The second call is answered inside the first, which gets its response meanwhile.
        for question, approved in zip(questions, (True, False)):
            require_equal("the question", question["method"], "host/request_approval")
            send(id=question["id"], result={"approved": approved})
        results = {it["id"]: it["result"] for it in (read(), read())}
    finally:
        watch.cancel()
        process.kill()
        process.communicate()
    expected = {"one": {"words": 1, "approved": True}, "two": {"words": 1, "approved": False}}
    require_equal("the results", results, expected)


def go_plugin(bench):
    """The template in Go, which is built first."""
    folder = bench.folder / "hello"
    go = bench.parts.root / f"go-{bench.parts.version('go')}" / "bin/go"
    require(go.is_file(), f"there is no {go}; run `cargo xtask parts go`")
    new = [bench.raddle, "plugin", "new", folder, "--lang", "go"]
    code, out, err = run_client(bench, new, bench.environment())
    require_equal("the exit code of the template", code, 0)
    (build,) = re.findall(r"go (build [^)]*)", err + out)
    environment = bench.environment(GOCACHE=str(bench.folder / "go-cache"), GOTOOLCHAIN="local")
    code, _, err = run_client(bench, ["sh", "-c", f'cd "$1" && "$0" {build}', go, folder], environment)
    require_equal(f"the exit code of the build ({err})", code, 0)
    for option, outcome in (("--approve", "approved"), ("--deny", "denied")):
        test = [bench.raddle, "plugin", "test", folder, option, "--json"]
        code, out, _ = run_client(bench, test, bench.environment())
        result = json.loads(out)
        require_equal(f"the violations with {option}", (code, result["violations"]), (0, []))
        steps = [(it["name"], it["outcome"]) for it in result["steps"]]
        require(("host/request_approval workspace.read", outcome) in steps, f"the steps are {steps}")


def _write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


CHECKS = {
    "skills-page": skills,
    "hooks-page": hooks,
    "plugins-page": plugins,
    "typescript-plugin": typescript_plugin,
    "plugin-calls-at-once": calls_at_once,
}
#: The toolchain is too large for CI.
PROOFS = {
    "go-plugin": go_plugin,
}
