"""Finds the binary of this package."""

import os
import sysconfig

__all__ = ["find_bin"]


def find_bin() -> str:
    """Returns the path of the program ``raddle``, wherever the installer has put it."""
    looked_in = []
    for folder in _folders():
        program = os.path.join(folder, "raddle")
        if os.path.isfile(program):
            return program
        looked_in.append(folder)
    raise FileNotFoundError(
        f"the program raddle is in none of {', '.join(looked_in)}; install the package again"
    )


def _folders():
    """Yields the script folders: of this interpreter or environment, of the user, and beside the modules
    (`pip install --target`)."""
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", f"{os.name}_user")
    modules = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(modules, "bin")
