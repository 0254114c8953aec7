"""The crate `codex-codes`, in a small program that finds `codex` on PATH."""

import json

from codex_shim import install_shim
from harness import require_equal, run_client
from mock_model import MockModel, beyond, says
from results import ClientResult

_VERSION = "0.166.4"


def codex_codes(bench):
    result = ClientResult(
        bench, "codex-codes", "crate", _VERSION, help="It finds `codex` on `PATH`: `raddle shim install`."
    )
    program = bench.parts.root / f"codex-codes-{_VERSION}/bin/codex-codes-client"
    model = MockModel(bench, [
        ("makes cloth?", ['text = "from threads", size = 4']),
        ("may I weave?", [beyond("echo woven | tee cloth.txt")]),
        ("woven", says("It is woven.")),
    ])
    model.configure(bench)
    codex = install_shim(bench)
    path = f"{codex.parent}:{bench.environment()['PATH']}"

    def turn(prompt, *thread):
        command = [program, bench.workspace, prompt, *thread]
        code, out, _ = run_client(bench, command, bench.environment(PATH=path))
        require_equal(f"the exit code for {prompt!r}", code, 0)
        seen = json.loads(out)
        require_equal(f"whether {prompt!r} was completed", seen["completed"], True)
        return seen

    first = turn("what makes cloth?")
    require_equal("the streamed answer", first["text"], "from threads")
    result.works("turn")

    # Another process, so it resumes the thread too.
    second = turn("may I weave?", first["thread"])
    require_equal("the answer after the approval", second["text"], "It is woven.")
    require_equal("how many commands it approved", len(second["approved"]), 1)
    require_equal("the file of the command", (bench.workspace / "cloth.txt").read_text(), "woven\n")
    result.works("approval")
    require_equal("the resumed thread", [second["thread"], second["earlierTurns"]], [first["thread"], 1])
    result.works("resume")


CHECKS = {"codex-codes": codex_codes}
