"""Third-party clients from PyPI."""

from pathlib import Path

import codex_autorunner
import codex_telegram
import hermes_agent
from third_party import python_library

_FOLDER = Path(__file__).parent


def _program(name):
    return _FOLDER / f"{name.replace('-', '_')}_program.py"


def _library(name, version, help):
    return python_library(name, version, _program(name), help)


CHECKS = {
    "codex-python-sdk": _library(
        "codex-python-sdk",
        "0.2.1",
        "`codex_command` names the program.",
    ),
    "codex-app-server-client": _library(
        "codex-app-server-client",
        "0.1.0",
        "`codex_bin` names the program; without it, a `codex` on `PATH` is started.",
    ),
    "codex-app-server-sdk": _library(
        "codex-app-server-sdk",
        "0.4.1",
        "`command` of `connect_stdio`, or `CODEX_APP_SERVER_CMD`, names the program. The package asks "
        "for Python 3.12; the check runs it with Python 3.11, installed with pip's "
        "`--ignore-requires-python`.",
    ),
    **codex_autorunner.CHECKS,
    **codex_telegram.CHECKS,
    **hermes_agent.CHECKS,
}
