"""The program under test under the name `codex`, as `raddle shim install` links it."""

from harness import require, require_equal, run_client


def install_shim(bench):
    """Installs the shim into a folder of the check, and returns the path of `codex`."""
    folder = bench.folder / "shim"
    codex = folder / "codex"
    _install(bench, ["--dir", folder], codex)
    return codex


def install_vscode_shim(bench, recorder):
    """Installs the folder layout in which VS Code's agent host looks for `codex`, and returns its root.

    The link to the program under test then leads to its recorder.
    """
    root = bench.folder / "sdk"
    platform = "codex-linux-x64/vendor/x86_64-unknown-linux-musl"
    codex = root / "node_modules/@openai" / platform / "bin/codex"
    _install(bench, ["--vscode", root], codex)
    require_equal("the program of the shim", codex.resolve(), bench.raddle)
    codex.unlink()
    codex.symlink_to(recorder)
    return root


def _install(bench, words, codex):
    code, _, _ = run_client(bench, [bench.raddle, "shim", "install", *words], bench.environment())
    require_equal("the exit code of `raddle shim install`", code, 0)
    require(codex.exists(), f"`raddle shim install` wrote no {codex}")
