"""The crates that are linked into the binary."""

import json
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

_TARGET = "x86_64-unknown-linux-musl"
_PROGRAM = "raddle"


@dataclass
class Crate:
    """One crate of the binary."""

    name: str
    version: str
    #: The SPDX expression of its manifest; none if the manifest names a file instead.
    licence: str | None
    folder: Path
    repository: str | None
    #: SHA-256 of the archive in the registry, from the lock file; none for the crates of this repository.
    checksum: str | None
    #: Names and versions of the crates of the binary that it needs.
    needs: list[tuple[str, str]] = field(default_factory=list)

    @property
    def key(self):
        return (self.name, self.version)

    @property
    def is_ours(self):
        return self.checksum is None


def crates(repository):
    """Returns the linked crates, sorted by name: the normal dependencies, not those for builds or tests."""
    linked = linked_crates(repository)
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", _TARGET]
    metadata = json.loads(_output(command, repository))
    packages = {it["id"]: it for it in metadata["packages"]}
    checksums = locked_checksums(repository)
    found = {}
    for node in metadata["resolve"]["nodes"]:
        package = packages[node["id"]]
        key = (package["name"], package["version"])
        if key not in linked:
            continue
        needs = (packages[it["pkg"]] for it in node["deps"] if _is_normal(it))
        needs = {(it["name"], it["version"]) for it in needs}
        found[key] = Crate(
            name=package["name"],
            version=package["version"],
            licence=package["license"],
            folder=Path(package["manifest_path"]).parent,
            repository=package["repository"],
            checksum=checksums.get(key),
            needs=sorted(needs & linked),
        )
    return [found[key] for key in sorted(linked)]


def linked_crates(repository):
    """Returns names and versions. `cargo tree` resolves the features of the binary; the graph of
    `cargo metadata` also has optional crates that no feature enables (`ring?/alloc`)."""
    command = ["cargo", "tree", "--locked", "--package", _PROGRAM, "--target", _TARGET]
    command += ["--edges", "normal", "--prefix", "none", "--no-dedupe", "--format", "{p}"]
    lines = _output(command, repository).splitlines()
    # A line is `NAME vVERSION` and the source.
    return {(line.split()[0], line.split()[1].removeprefix("v")) for line in lines if line}


def locked_checksums(repository):
    """Returns the checksum of each registry crate in the lock file."""
    lock = tomllib.loads((repository / "Cargo.lock").read_text())
    packages = (it for it in lock["package"] if "checksum" in it)
    return {(it["name"], it["version"]): it["checksum"] for it in packages}


def _is_normal(needed):
    return any(it["kind"] is None for it in needed["dep_kinds"])


def _output(command, folder):
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
