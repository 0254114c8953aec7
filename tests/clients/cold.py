"""The time of `raddle exec` in an empty home, compared with `codex exec`: single runs, alternating."""

import statistics
import tempfile
import time

from harness import require, require_equal, run_client
from mock_model import MODEL, MockModel, says

_PAIRS = 10

#: The measured ratio is a tenth to a sixth, also on a busy machine.
_RATIO_MAX = 0.5


def cold(bench):
    model = MockModel(bench, [("hello", says("here"))])
    settings = {**model.settings, f"model_providers.{MODEL}.name": '"mock"'}
    words = [word for key, value in settings.items() for word in ("--config", f"{key}={value}")]
    sandbox = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]

    def seconds(program):
        home = tempfile.mkdtemp(dir=bench.folder)
        environment = bench.environment(HOME=home, CODEX_HOME=home, RADDLE_HOME=f"{home}/raddle")
        begun = time.monotonic()
        code, out, _ = run_client(bench, [program, "exec", "--json", *words, *sandbox, "hello"], environment)
        taken = time.monotonic() - begun
        require_equal(f"{program.name}'s exit code", code, 0)
        require('"text":"here"' in out, f"{program.name} did not print the answer: {out}")
        return taken

    # The first run of each reads its program from the disk.
    pairs = [(seconds(bench.raddle), seconds(bench.parts.codex)) for _ in range(_PAIRS + 1)][1:]
    ours, theirs = (statistics.median(it) for it in zip(*pairs))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"        cold exec: {ours * 1000:.0f} ms, codex {theirs * 1000:.0f} ms, ratio {ratio:.2f}")
    require(ratio <= _RATIO_MAX, f"a cold exec takes {ratio:.2f} of codex's time")


CHECKS = {"exec-cold": cold}
