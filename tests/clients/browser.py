"""Pages of clients in Debian's Chromium, driven by playwright-core."""

import shutil

from harness import require, require_equal, run_client

_PLAYWRIGHT = ("playwright", "1.65.1", "playwright-core/index.mjs")


def drive_page(bench, program, *arguments):
    """Runs a program that drives a page. Its first arguments are the paths of playwright-core and Chromium."""
    chromium = shutil.which("chromium")
    require(chromium, "there is no chromium; run `cargo xtask parts debian`")
    playwright = bench.parts.package(*_PLAYWRIGHT)
    command = [bench.parts.node, program, playwright, chromium, *arguments]
    code, _, _ = run_client(bench, command, bench.environment())
    require_equal(f"the exit code of {program.name}", code, 0)
