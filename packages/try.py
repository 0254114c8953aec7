"""Checks the packages: checksums, signatures, sizes, bills of materials, formula and flake,
reproducibility, and the installation of each by an unprivileged user.

Usage: python3 packages/try.py --raddle BINARY --packages FOLDER --parts FOLDER
"""

import sys

# Before the imports below: no caches in the source tree.
sys.dont_write_bytecode = True

import argparse
import base64
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import sbom
import signing
from crates import linked_crates, locked_checksums
from package import all_packages
from stranger import Stranger, node_for_strangers

_REPOSITORY = Path(__file__).resolve().parent.parent
_RUST = tomllib.loads((_REPOSITORY / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
_BYTES_MAX = 32_600_000
_LISTS = {signing.SUMS, signing.SIGNATURE, signing.MINISIGNATURE}
#: Files that name a package by its checksum, and contain none.
_INSTALLERS = {it.name for it in (_REPOSITORY / "packages/files").iterdir()}
_DEADLINE_S = 180

#: Evaluates the package of a flake, with stand-ins for the functions of nixpkgs that it calls.
_FLAKE = """
{ flake }:
let
  it = import (/. + flake);
  pkgs = {
    stdenvNoCC.mkDerivation = it: it;
    fetchurl = it: it;
    installShellFiles = "installShellFiles";
    lib.licenses.asl20 = "Apache-2.0";
  };
  outputs = it.outputs { self = it; nixpkgs.legacyPackages.x86_64-linux = pkgs; };
in
outputs.packages.x86_64-linux.default
"""

#: Makes Node behave like one without `execve`.
_OLDER_NODE = "delete process.execve;\n"


@dataclass
class Way:
    """One way to install, and commands that then print the version. All are shell commands."""

    name: str
    package: str
    install: str
    says: list[str]
    #: Commands that serve on stdio and end on SIGTERM.
    serves: list[str]
    #: The link named `codex`, which is not on PATH. The formats of npm and wheels have no links.
    shim: str | None = None


_WAYS = [
    Way(
        "archive",
        "raddle-*.tar.gz",
        "tar -xzf raddle-*.tar.gz && sha256sum --check --quiet --ignore-missing SHA256SUMS",
        ["raddle-*/raddle --version"],
        ["raddle-*/raddle app-server"],
        shim="raddle-*/shim/codex",
    ),
    Way(
        "wheel",
        "raddle-*.whl",
        "python3 -m venv venv && venv/bin/pip install --quiet --no-index ./raddle-*.whl"
        " && venv/bin/pip install --quiet --no-index --target beside ./raddle-*.whl",
        [
            "venv/bin/raddle --version",
            "venv/bin/python -m raddle --version",
            "$(venv/bin/python -c 'import raddle; print(raddle.find_bin())') --version",
            "PYTHONPATH=beside python3 -m raddle --version",
        ],
        ["venv/bin/python -m raddle app-server"],
    ),
    Way(
        "npm",
        "raddle-*.tgz",
        "npm install --silent --offline ./raddle-*.tgz",
        [
            "node_modules/.bin/raddle --version",
            "node --require ./older.js node_modules/.bin/raddle --version",
            "$(node -p 'require(\"raddle\").findBin()') --version",
            "$(node -e 'import(\"raddle\").then(it => console.log(it.findBin()))') --version",
        ],
        [
            "node_modules/.bin/raddle app-server",
            "node --require ./older.js node_modules/.bin/raddle app-server",
        ],
    ),
    Way(
        "deb",
        "raddle_*.deb",
        "dpkg-deb --info raddle_*.deb > info && dpkg-deb --extract raddle_*.deb root"
        " && (cd root && dpkg-deb --ctrl-tarfile ../raddle_*.deb | tar -xO ./md5sums | md5sum --check --quiet)",
        ["root/usr/bin/raddle --version"],
        ["root/usr/bin/raddle app-server"],
        shim="root/usr/lib/raddle/shim/codex",
    ),
    Way(
        "rpm",
        "raddle-*.rpm",
        "rpm --dbpath $HOME/db --checksig raddle-*.rpm > signatures && rpm2archive raddle-*.rpm"
        " && mkdir root && tar -xzf raddle-*.rpm.tgz --directory root",
        ["root/usr/bin/raddle --version"],
        ["root/usr/bin/raddle app-server"],
        shim="root/usr/lib/raddle/shim/codex",
    ),
]


def main():
    parser = argparse.ArgumentParser(description="Checks the packages.")
    parser.add_argument("--raddle", type=Path, required=True, help="the binary in the packages")
    parser.add_argument("--packages", type=Path, required=True, help="the folder with the packages")
    parser.add_argument("--parts", type=Path, required=True, help="the folder where Node is installed")
    arguments = parser.parse_args()
    packages = arguments.packages.resolve()
    raddle = arguments.raddle.resolve()
    _sums(packages)
    _signed(packages)
    _bills(packages, raddle)
    _sizes(packages, raddle)
    _no_scripts(packages)
    _formula_and_flake(packages)
    _same_again(packages, raddle)
    # The unprivileged user must be able to read the folders.
    os.umask(0o022)
    version = _output([raddle, "--version"])
    with tempfile.TemporaryDirectory(prefix="raddle-packages-") as folder:
        folder = Path(folder)
        folder.chmod(0o755)
        node = node_for_strangers(arguments.parts, folder / "node")
        for way in _WAYS:
            begun = time.monotonic()
            _install(way, Stranger(folder / way.name, node), packages, version)
            print(f"ok  installed by {way.name} in {time.monotonic() - begun:.1f} s", flush=True)
        _script(packages, folder, node, version)
        _action(packages, folder, node)
        if os.geteuid() == 0:
            _managers(packages, folder)
        else:
            print("not tried: dpkg and rpm with a root of their own, which need root")


def _does(stranger, line):
    """Runs a shell command to its end and returns its output."""
    command = [*stranger.runs, "sh", "-c", line]
    return _output(command, cwd=stranger.home, env=stranger.environment)


def _starts(stranger, line):
    return subprocess.Popen(
        [*stranger.runs, "sh", "-c", f"exec {line}"],
        cwd=stranger.home,
        env=stranger.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _install(way, stranger, packages, version):
    files = [*packages.glob(way.package), packages / "SHA256SUMS"]
    stranger.is_given(files, stranger.home)
    (stranger.home / "older.js").write_text(_OLDER_NODE)
    _does(stranger, way.install)
    for line in way.says:
        _require(_does(stranger, line) == version, f"`{line}` does not print {version!r}")
    for line in way.serves:
        _serves(line, stranger)
    _shim(stranger, stranger.home, way.shim)


def _shim(stranger, folder, pattern):
    """Checks that the only program named `codex` is the link at the pattern, and that it takes the role of Codex."""
    links = [it for it in folder.rglob("codex*") if not it.is_dir()]
    expected = [*folder.glob(pattern)] if pattern else []
    _require(links == expected and len(links) == bool(pattern), f"{folder} has {links}, not {pattern}")
    for link in links:
        printed = _does(stranger, f"'{link}' --version")
        _require(re.fullmatch(r"codex-cli \d+\.\d+\.\d+\n", printed), f"{link} --version prints {printed!r}")


def _script(packages, folder, node, version):
    """Checks that the install script accepts only what the given key signed, and installs nothing else."""
    keys = folder / "keys"
    keys.mkdir()
    public = {}
    for name in ("key", "other"):
        _output(["minisign", "-G", "-W", "-p", keys / f"{name}.pub", "-s", keys / name])
        public[name] = signing.public_line(keys / name)
    (archive,) = packages.glob("raddle-*.tar.gz")
    cases = {
        "the signed files": ("key", None, ""),
        "a relative folder": ("key", None, "a folder"),
        "another key": ("other", None, ""),
        "other checksums": ("key", signing.SUMS, ""),
        "another archive": ("key", archive.name, ""),
    }
    rights = {"the signed files", "a relative folder"}
    for at, (case, (key, changed, to)) in enumerate(cases.items()):
        stranger = Stranger(folder / f"script-{at}", node)
        files = stranger.home / "files"
        stranger.is_given([packages / "install.sh", packages / signing.SUMS, archive], files)
        signing.minisign(files, keys / "key")
        if changed:
            with (files / changed).open("ab") as file:
                file.write(b"more\n")
        line = f"sh files/install.sh --from files --key {public[key]}" + (f" --to '{to}'" if to else "")
        installed = stranger.home / (to or ".local")
        done = subprocess.run(
            [*stranger.runs, "sh", "-c", line],
            cwd=stranger.home,
            env=stranger.environment,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
        )
        is_installed = (installed / "bin/raddle").exists()
        is_right = case in rights
        _require((done.returncode == 0) == is_right, f"install.sh with {case}: {done.stdout}{done.stderr}")
        _require(is_installed == is_right, f"install.sh with {case}: installed is {is_installed}")
        if is_right:
            printed = _does(stranger, f"'{installed}/bin/raddle' --version")
            _require(printed == version, f"install.sh with {case}: wrong version")
            profile = installed / "share/doc/raddle/raddle-bwrap"
            _require(profile.is_file(), f"install.sh with {case}: no profile of AppArmor")
            _shim(stranger, installed, "lib/raddle/shim/codex")
    print("ok  install script, with a right signature in two folders, and three wrong ones", flush=True)


def _action(packages, folder, node):
    """Checks that the GitHub action runs the prompt and its input, and names the file with the answer."""
    stranger = Stranger(folder / "action", node)
    action = sorted((_REPOSITORY / "packages/action").glob("*.sh"))
    (archive,) = packages.glob("raddle-*.tar.gz")
    stranger.is_given([archive, *action], stranger.home)
    _does(stranger, "tar -xzf raddle-*.tar.gz --strip-components 1 && mkdir -p .config/raddle work")
    stranger.environment["PATH"] = f"{stranger.home}:{stranger.environment['PATH']}"
    mock = _starts(stranger, "raddle mock --listen 127.0.0.1:0")
    try:
        address = mock.stdout.readline().decode().strip()
        config = 'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\n'
        (stranger.home / ".config/raddle/config.toml").write_text(f'{config}base_url = "{address}"\n')
        (stranger.home / "changes.diff").write_text("+ flax\n")
        stranger.environment |= {
            "GITHUB_OUTPUT": str(stranger.home / "outputs"),
            "RUNNER_TEMP": str(stranger.home / "work"),
            "PROMPT": "Review $(this) `change`.",
            "INPUT": "changes.diff",
            "MODEL": "mock/mock",
            "SANDBOX": "read-only",
        }
        _does(stranger, "bash exec.sh")
    finally:
        mock.kill()
        mock.wait()
    name, _, answer = (stranger.home / "outputs").read_text().strip().partition("=")
    _require(name == "answer-file", f"the action sets {name!r}")
    answer = Path(answer).read_text()
    _require("Review $(this) `change`.\n\n+ flax" in answer, f"the action's answer is {answer!r}")
    print("ok  GitHub action, with the mock model", flush=True)


def _managers(packages, folder):
    """Installs and removes the packages of the system with their managers, in a root of their own."""
    for name in ("dpkg", "rpm"):
        root = folder / f"root-{name}"
        for it in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/rpm"):
            (root / it).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        program = root / "usr/bin/raddle"
        if name == "dpkg":
            (package,) = packages.glob("raddle_*.deb")
            manager = ["dpkg", f"--root={root}", f"--log={root}/log"]
            steps = [[*manager, "--install", package], [*manager, "--verify", "raddle"]]
            removal = [*manager, "--remove", "raddle"]
        else:
            (package,) = packages.glob("raddle-*.rpm")
            manager = ["rpm", "--root", root, "--dbpath", "/var/lib/rpm"]
            # The root holds no package of the system; RPM alone provides its own features.
            steps = [[*manager, "--install", package], [*manager, "--verify", "raddle"]]
            removal = [*manager, "--erase", "raddle"]
        for step in steps:
            _output(step)
        _require(program.stat().st_mode & 0o777 == 0o755, f"{name}: the binary has another mode")
        profile = root / "usr/share/doc/raddle/raddle-bwrap"
        _require(profile.is_file(), f"{name}: no profile of AppArmor")
        shim = root / "usr/lib/raddle/shim/codex"
        _require(shim.resolve() == program, f"{name}: {shim} is no link to the binary")
        _output(removal)
        left = [it for it in (root / "usr").rglob("*") if not it.is_dir()] if (root / "usr").exists() else []
        _require(not left, f"{name} leaves {left}")
    print("ok  installed, verified and removed by dpkg and rpm", flush=True)


def _serves(line, stranger):
    """Checks that the server responds, and that SIGTERM reaches it through any wrapper."""
    process = _starts(stranger, line)
    try:
        client = {"clientInfo": {"name": "try", "version": "1"}}
        asked = json.dumps({"id": 1, "method": "initialize", "params": client})
        process.stdin.write(asked.encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline() or "{}")
        _require("result" in answer, f"`{line}` responds {answer}")
        process.send_signal(signal.SIGTERM)
        # The output ends when the last of its processes has ended.
        process.communicate(timeout=_DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    _require(process.returncode == 0, f"`{line}` ended with {process.returncode}")


def _sums(packages):
    _output(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=packages)
    named = {line.split("  ")[1] for line in (packages / "SHA256SUMS").read_text().splitlines()}
    others = {it.name for it in packages.iterdir()} - _LISTS
    _require(named == others, f"SHA256SUMS names {sorted(named)}, not {sorted(others)}")
    print("ok  checksums")


def _signed(packages):
    """Checks that only a listed signer's signature of exactly these checksums is accepted."""
    with tempfile.TemporaryDirectory(prefix="raddle-signing-") as folder:
        folder = Path(folder)
        for name in ("key", "other"):
            _output(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
        signers, strangers = folder / "signers", folder / "strangers"
        for file, key in ((signers, "key"), (strangers, "other")):
            file.write_text(f"{signing.SIGNER} {(folder / f'{key}.pub').read_text()}")
        shutil.copy(packages / signing.SUMS, folder)
        signing.sign(folder, folder / "key")
        _require(signing.verify(folder, signers), "a valid signature is rejected")
        _require(not signing.verify(folder, strangers), "the signature of an unlisted key is accepted")
        with (folder / signing.SUMS).open("a") as sums:
            sums.write("more\n")
        _require(not signing.verify(folder, signers), "a signature is accepted for other checksums")
    print("ok  signatures")


def _bills(packages, raddle):
    """Checks the bill of each package: every crate of the binary, its checksum and its licence."""
    linked = linked_crates(_REPOSITORY)
    checksums = locked_checksums(_REPOSITORY)
    denied = tomllib.loads((_REPOSITORY / "deny.toml").read_text())["bans"]["deny"]
    denied = {it["crate"] for it in denied if "deny-multiple-versions" not in it}
    digest = hashlib.sha256(raddle.read_bytes()).hexdigest()
    count = 0
    for file in sorted(packages.iterdir()):
        if file.name in _LISTS or file.name in _INSTALLERS:
            continue
        bill = json.loads(_bill(file))
        _sound(file.name, bill)
        count += 1
        components = {(it["name"], it.get("version")): it for it in bill["components"]}
        binary = [it for it in bill["components"] if it["bom-ref"] == "raddle"]
        if not binary:
            # The npm package without the binary.
            _require(len(components) == 1, f"{file.name} has no binary, but more than one component")
            continue
        _require(binary[0]["hashes"][0]["content"] == digest, f"{file.name}: the digest is not that of the binary")
        for name, version in sorted(linked):
            about = f"{name} {version} in the bill of {file.name}"
            found = components.get((name, version))
            _require(found, f"missing: {about}")
            hashes = [it["content"] for it in found.get("hashes", [])]
            checksum = checksums.get((name, version))
            _require(not checksum or hashes == [checksum], f"wrong checksum: {about}")
            _require(found["licenses"], f"no licence: {about}")
        crates = {it for it in components if it not in (("rust-std", _RUST), ("musl", None))}
        _require(crates == linked, f"{file.name} lists {sorted(crates - linked)}, which is not linked")
        banned = sorted(denied & {name for name, _ in crates})
        _require(not banned, f"{file.name} has {banned}, which deny.toml bans")
    _require(count >= 6, f"expected at least 6 bills of materials, found {count}")
    print(f"ok  bills of materials, with {len(linked)} crates")


def _bill(file):
    """Returns the only bill in a package."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            names = [it for it in wheel.namelist() if it.endswith(f".dist-info/sboms/{sbom.FILE}")]
            _require(len(names) == 1, f"{file.name} has {len(names)} bills of materials")
            return wheel.read(names[0])
    if file.suffix == ".deb":
        data = io.BytesIO(_bytes(["dpkg-deb", "--fsys-tarfile", file]))
    elif file.suffix == ".rpm":
        data = io.BytesIO(_bytes(["rpm2archive", "-"], stdin=file.open("rb")))
    else:
        data = file.open("rb")
    with data, tarfile.open(fileobj=data) as tar:
        names = [it for it in tar.getnames() if it.endswith(f"/{sbom.FILE}")]
        _require(len(names) == 1, f"{file.name} has {len(names)} bills of materials")
        return tar.extractfile(names[0]).read()


def _sound(name, bill):
    """Checks the parts of CycloneDX 1.6 that the bill uses."""
    _require(bill["bomFormat"] == "CycloneDX", f"{name}: not CycloneDX")
    _require(bill["specVersion"] == "1.6", f"{name}: not CycloneDX 1.6")
    _require(bill["serialNumber"].startswith("urn:uuid:"), f"{name}: no serial number")
    components = [bill["metadata"]["component"], *bill["components"]]
    refs = [it["bom-ref"] for it in components]
    _require(len(refs) == len(set(refs)), f"{name}: duplicate bom-ref")
    for component in components:
        _require(component["type"] in ("application", "library"), f"{name}: {component}")
        _require(component["name"], f"{name}: {component}")
        for it in component.get("hashes", []):
            is_digest = it["alg"] == "SHA-256" and len(bytes.fromhex(it["content"])) == 32
            _require(is_digest, f"{name}: {component}")
    listed = [it["ref"] for it in bill["dependencies"]]
    _require(sorted(listed) == sorted(refs), f"{name}: the graph does not list each component once")
    reached, waiting = set(), [components[0]["bom-ref"]]
    needs = {it["ref"]: it["dependsOn"] for it in bill["dependencies"]}
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += needs[ref]
    _require(reached == set(refs), f"{name}: not reachable: {sorted(set(refs) - reached)}")


def _sizes(packages, raddle):
    for file in (raddle, *sorted(packages.iterdir())):
        size = file.stat().st_size
        print(f"    {size / 1e6:6.2f} MB  {file.name}")
        _require(size < _BYTES_MAX, f"{file.name} has {size} bytes, the limit is {_BYTES_MAX}")
    print(f"ok  each under {_BYTES_MAX / 1e6:.1f} MB")


def _no_scripts(packages):
    """Checks that no package has scripts, which npm would run at installation."""
    for file in packages.glob("*.tgz"):
        with tarfile.open(file) as tar:
            about = json.load(tar.extractfile("package/package.json"))
        _require("scripts" not in about, f"{file.name} has scripts, which npm runs at installation")
    print("ok  no install scripts")


def _formula_and_flake(packages):
    """Checks the syntax of the formula, and the values of the flake, without Homebrew and nixpkgs."""
    _output(["ruby", "-c", packages / "raddle.rb"])
    command = ["nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json"]
    flake = _output([*command, "--argstr", "flake", packages / "flake.nix", "--expr", _FLAKE])
    source = json.loads(flake)["src"]
    (archive,) = packages.glob("raddle-*.tar.gz")
    digest = base64.b64encode(hashlib.sha256(archive.read_bytes()).digest()).decode()
    _require(source["hash"] == f"sha256-{digest}", f"flake.nix has the hash {source['hash']}")
    _require(source["url"].endswith(f"/{archive.name}"), f"flake.nix has the URL {source['url']}")
    print("ok  syntax of the Homebrew formula, and values of the Nix flake")


def _same_again(packages, raddle):
    for name, data in all_packages(raddle).items():
        _require((packages / name).read_bytes() == data, f"{name} differs when it is built again")
    print("ok  reproducible")


def _bytes(command, **how):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=_DEADLINE_S, **how).stdout


def _output(command, **how):
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, **how)
    line = " ".join(str(word) for word in command)
    _require(done.returncode == 0, f"`{line}` ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _require(true, otherwise):
    if not true:
        sys.exit(f"error: {otherwise}")


if __name__ == "__main__":
    main()
