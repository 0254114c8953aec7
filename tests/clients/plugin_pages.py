"""The examples of docs/skills.md and docs/hooks.md, with the mock in place of a model, and templates of plugins."""

import json
import re

from harness import require, require_equal, run_client
from mock_model import MockModel
from page_example import MOCK, PageExample, environment_of


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
    "typescript-plugin": typescript_plugin,
}
#: The toolchain is too large for CI.
PROOFS = {
    "go-plugin": go_plugin,
}
