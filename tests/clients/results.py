"""Results of third-party clients: the rows of results.json.

`cargo xtask clients` writes docs/clients.md from them.

A check of a third-party client creates a `ClientResult` and notes each feature after it has seen it
work. The run compares the rows with the committed ones; `--write-results` writes them instead.

    result = ClientResult(bench, "codex-python-sdk", "PyPI", "0.2.1", help="")
    …
    result.works("turn")
    result.lacks("resume", "the client has no call for it")
"""

import json
import threading
from pathlib import Path

from harness import Failure, require, require_equal

_COMMITTED = Path(__file__).with_name("results.json")
#: The command that runs the checks of this folder.
IN_CI = "cargo xtask ci --only clients"
_SOURCES = ("npm", "PyPI", "crate")


class ClientResult:
    """What one client does with the program under test: one row."""

    def __init__(self, bench, client, source, version, help="", checked_by=IN_CI):
        """`help` is a sentence about settings that the client needs; empty if it needs none."""
        require(source in _SOURCES, f"{source!r} is none of {_SOURCES}")
        self._row = {
            "client": client,
            "from": source,
            "version": version,
            "works": [],
            "missing": [],
            "help": help,
            "checked_by": checked_by,
        }
        bench.results.append(self._row)

    def works(self, *features):
        """Notes features that the check has seen work."""
        self._row["works"].extend(features)

    def lacks(self, feature, why):
        """Notes a feature that does not work, or that the client does not have."""
        self._row["missing"].append({"what": feature, "why": why})


class Results:
    """The rows of a run, beside the committed ones."""

    def __init__(self, path=_COMMITTED):
        self._path = path
        rows = json.loads(path.read_text()) if path.exists() else []
        self._committed = {row["client"]: row for row in rows}
        self._seen = {}
        self._lock = threading.Lock()

    def add(self, rows):
        with self._lock:
            for row in rows:
                self._seen[row["client"]] = row

    def require_committed(self, rows):
        """Fails if a row of a check is not the committed one."""
        for row in rows:
            committed = self._committed.get(row["client"])
            try:
                require_equal(f"the row of {row['client']} in {self._path.name}", committed, row)
            except Failure as failure:
                raise Failure(f"{failure}; run again with --write-results") from None

    def unchecked(self):
        """Returns the committed clients of which a whole run has no row."""
        ours = [name for name, row in self._committed.items() if row["checked_by"] == IN_CI]
        return [name for name in ours if name not in self._seen]

    def write(self, is_whole):
        """Writes the rows, and keeps those of other clients. After a whole run, rows without a check go."""
        stale = self.unchecked() if is_whole else []
        kept = {name: row for name, row in self._committed.items() if name not in stale}
        rows = sorted({**kept, **self._seen}.values(), key=lambda row: row["client"].lower())
        self._path.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
