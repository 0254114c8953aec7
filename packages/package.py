"""Writes the packages of a binary, and their checksums.

Usage: python3 packages/package.py --raddle BINARY --out FOLDER [--sign KEY] [--minisign KEY] [--url URL]
"""

import sys

# Before the imports below: no caches in the source tree.
sys.dont_write_bytecode = True

import argparse
import base64
import hashlib
import json
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

import sbom
from archives import Entry, gzipped, tar_gz
from crates import crates
from deb import deb
from elf import is_elf, is_static, is_stripped
from rpm import rpm
from signing import MINISIGNATURE, SIGNATURE, SUMS, minisign, public_line, sign
from third_party import third_party
from wheel import wheel

_HERE = Path(__file__).resolve().parent
_REPOSITORY = _HERE.parent
_PLATFORM = "linux-x64"
_SUMMARY = "A small server that hosts coding agents behind JSON-RPC."
_DESCRIPTION = """\
Threads, turns and items are stored, so that clients can leave, return
and share a thread. Commands run in a sandbox if bubblewrap is installed."""
_LICENCE = "Apache-2.0"
#: The program of the sandbox, and the root certificates for the vendors of models.
_RECOMMENDS = ["bubblewrap", "ca-certificates"]
#: The address of the releases. There is none yet.
_URL = "https://raddle.invalid/releases"
#: The folder of documents in a system package.
_DOCUMENTS = "usr/share/doc/raddle"
#: The folder of a system package for files that are not on PATH.
_OWN = "usr/lib/raddle"
#: The optional link for clients that start `codex`, in a folder that is not on PATH.
_SHIM = "shim/codex"
#: Shells, and the file names under which they find completions.
_COMPLETIONS = {"bash": "raddle", "zsh": "_raddle", "fish": "raddle.fish"}


def main():
    parser = argparse.ArgumentParser(description="Writes the packages of a binary.")
    parser.add_argument("--raddle", type=Path, required=True, help="the binary, static and stripped")
    parser.add_argument("--out", type=Path, required=True, help="the output folder; earlier packages in it are replaced")
    parser.add_argument("--sign", type=Path, help="an OpenSSH key that signs the checksums")
    parser.add_argument("--minisign", type=Path, help="a minisign key that signs the checksums; KEY.pub is beside it")
    parser.add_argument("--url", default=_URL, help="the address of the releases, for the files that download one")
    arguments = parser.parse_args()
    if arguments.minisign and arguments.url == _URL:
        sys.exit("signed packages are for a release; name its address with --url, for install.sh to download from")
    arguments.out.mkdir(parents=True, exist_ok=True)
    earlier = _ours(arguments.out)
    key = public_line(arguments.minisign) if arguments.minisign else ""
    packages = all_packages(arguments.raddle.resolve(), arguments.url, key)
    for file in earlier:
        file.unlink()
    for name, data in packages.items():
        (arguments.out / name).write_bytes(data)
        print(f"{len(data) / 1e6:6.1f} MB  {arguments.out / name}")
    if arguments.sign:
        sign(arguments.out, arguments.sign.resolve())
        print(f"signed     {arguments.out / SIGNATURE}")
    if arguments.minisign:
        minisign(arguments.out, arguments.minisign.resolve())
        print(f"signed     {arguments.out / MINISIGNATURE}")


def all_packages(binary, url=_URL, minisign_key=""):
    """Returns every file by its name, the checksums last."""
    version = _version(binary)
    program = binary.read_bytes()
    _require_fit(program, binary)
    linked = crates(_REPOSITORY)
    licences = [
        Entry("LICENSE", (_REPOSITORY / "LICENSE").read_bytes()),
        Entry("NOTICE", (_REPOSITORY / "NOTICE").read_bytes()),
        Entry("THIRD-PARTY", third_party(linked).encode()),
    ]
    rust = _rust()

    def bill(kind, name):
        return Entry(sbom.FILE, sbom.sbom(kind, name, version, linked, program, rust))

    packages = dict(
        [
            _archive(version, binary, program, licences, bill),
            *_npm(version, program, licences, bill),
            _wheel(version, program, licences, bill),
            _deb(version, binary, program, licences, bill),
            _rpm(version, binary, program, licences, bill),
        ]
    )
    packages |= _installers(version, packages, url, minisign_key)
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in packages.items()]
    packages[SUMS] = "".join(sums).encode()
    return packages


def _archive(version, binary, program, licences, bill):
    top = f"raddle-{version}-{_PLATFORM}"
    files = [Entry("raddle", program, runs=True), *licences, bill("generic", "raddle")]
    files += [*_completions(binary), *_man(binary)]
    files += [Entry(f"apparmor/{it.path}", it.data) for it in _folder(_HERE / "apparmor", version)]
    files.append(Entry(_SHIM, b"", target="../raddle"))
    return f"{top}.tar.gz", tar_gz([it.below(top) for it in files])


def _npm(version, program, licences, bill):
    """Yields the package that users install, and the one with the binary, which npm selects by platform."""
    platform = f"raddle-{_PLATFORM}"
    launcher = Entry(sbom.FILE, sbom.sbom_of_launcher("raddle", version, platform))
    command = [*_folder(_HERE / "npm/raddle", version), *licences[:2], launcher]
    carrier = [*_folder(_HERE / f"npm/{platform}", version), *licences, bill("npm", platform)]
    carrier.append(Entry("bin/raddle", program, runs=True))
    for name, entries in (("raddle", command), (platform, carrier)):
        # npm reads only entries below this name.
        yield f"{name}-{version}.tgz", tar_gz([it.below("package") for it in entries])


def _wheel(version, program, licences, bill):
    modules = _folder(_HERE / "python", version)
    scripts = [Entry("raddle", program, runs=True)]
    bills = [bill("pypi", "raddle")]
    return wheel("raddle", version, _SUMMARY, modules, scripts, licences, bills)


def _deb(version, binary, program, licences, bill):
    texts = b"\n".join(it.data for it in licences)
    entries = [
        *_installed(binary, program, "usr/share/zsh/vendor-completions"),
        Entry(f"{_DOCUMENTS}/copyright", texts),
        bill("deb", "raddle").below(_DOCUMENTS),
    ]
    data = deb("raddle", version, "amd64", _SUMMARY, _DESCRIPTION, _RECOMMENDS, entries)
    return f"raddle_{version}-1_amd64.deb", data


def _rpm(version, binary, program, licences, bill):
    texts = "usr/share/licenses/raddle"
    entries = [
        *_installed(binary, program, "usr/share/zsh/site-functions"),
        *(it.below(texts) for it in licences),
        bill("rpm", "raddle").below(_DOCUMENTS),
    ]
    about = ("raddle", version, "x86_64", _SUMMARY, _DESCRIPTION, _LICENCE, _RECOMMENDS)
    return f"raddle-{version}-1.x86_64.rpm", rpm(*about, entries, [_DOCUMENTS, texts, _OWN, f"{_OWN}/shim"])


def _installed(binary, program, zsh):
    """Returns the entries of a system package besides licences and bill of materials. `zsh` is the folder of its
    completions."""
    folders = {
        "bash": "usr/share/bash-completion/completions",
        "zsh": zsh,
        "fish": "usr/share/fish/vendor_completions.d",
    }
    entries = [
        Entry("usr/bin/raddle", program, runs=True),
        Entry(f"{_OWN}/{_SHIM}", b"", target="../../../bin/raddle"),
    ]
    for entry in _completions(binary):
        _, shell, name = entry.path.split("/")
        entries.append(Entry(f"{folders[shell]}/{name}", entry.data))
    entries += [Entry(f"usr/share/{it.path}.gz", gzipped(it.data)) for it in _man(binary)]
    profile = _HERE / "apparmor/raddle-bwrap"
    entries.append(Entry(f"{_DOCUMENTS}/{profile.name}", profile.read_bytes()))
    return entries


def _installers(version, packages, url, minisign_key):
    """Returns the files that name a package by its checksum: formula, flake, Dockerfile, install script."""
    archive = f"raddle-{version}-{_PLATFORM}.tar.gz"
    digest = hashlib.sha256(packages[archive]).digest()
    values = {
        "$ARCHIVE_SHA256": digest.hex(),
        "$ARCHIVE_SRI": f"sha256-{base64.b64encode(digest).decode()}",
        "$ARCHIVE": archive,
        "$DEB": f"raddle_{version}-1_amd64.deb",
        "$MINISIGN_KEY": minisign_key,
        "$SUMMARY": _SUMMARY,
        "$URL": url.rstrip("/"),
        "$VERSION": version,
    }
    files = {}
    for file in sorted((_HERE / "files").iterdir()):
        text = file.read_text()
        for name, value in values.items():
            text = text.replace(name, value)
        files[file.name] = text.encode()
    return files


def _folder(folder, version):
    """Returns the files of a folder, with `$VERSION` and `$SUMMARY` replaced."""
    entries = []
    for file in sorted(it for it in folder.rglob("*") if it.is_file()):
        text = file.read_text().replace("$VERSION", version).replace("$SUMMARY", _SUMMARY)
        path = str(file.relative_to(folder))
        if path == "package.json":
            json.loads(text)
        entries.append(Entry(path, text.encode(), runs=text.startswith("#!")))
    return entries


def _completions(binary):
    """Returns the shell completions, if the binary has the command."""
    if not _has(binary, "completions"):
        return []
    return [
        Entry(f"completions/{shell}/{file}", _output(binary, "completions", shell))
        for shell, file in _COMPLETIONS.items()
    ]


def _man(binary):
    """Returns the man pages, if the binary has the command."""
    if not _has(binary, "man"):
        return []
    with tempfile.TemporaryDirectory() as folder:
        _output(binary, "man", "--out", folder)
        pages = sorted(it for it in Path(folder).rglob("*") if it.is_file())
        return [Entry(f"man/man1/{it.name}", it.read_bytes()) for it in pages]


def _has(binary, command):
    """Returns whether the binary has a command, by its help."""
    done = subprocess.run([binary, command, "--help"], capture_output=True)
    return done.returncode == 0


def _rust():
    """Returns the version of the compiler, whose standard library is linked."""
    pinned = tomllib.loads((_REPOSITORY / "rust-toolchain.toml").read_text())
    return pinned["toolchain"]["channel"]


def _version(binary):
    found = re.fullmatch(r"raddle (\d+\.\d+\.\d+)\n", _output(binary, "--version").decode())
    if not found:
        sys.exit(f"{binary} --version prints no version of Raddle; pass the raddle binary")
    return found.group(1)


def _require_fit(program, binary):
    """Exits unless the binary is static and stripped. A dynamic binary runs on fewer systems than the packages
    declare; symbols are a sixth of its size."""
    if not is_elf(program) or not is_static(program):
        sys.exit(f"{binary} is not static; build it with --target x86_64-unknown-linux-musl")
    if not is_stripped(program):
        sys.exit(f"{binary} is not stripped; build it with --release")


def _ours(folder):
    """Returns the earlier packages in the folder. Exits if it holds any other file. Without the checksums beside
    them, a Dockerfile and the like may be the user's own."""
    endings = (".tar.gz", ".tgz", ".whl", ".rpm")
    installers = {it.name for it in (_HERE / "files").iterdir()}
    files = list(folder.iterdir())
    if not (folder / SUMS).is_file():
        installers = set()
    for file in files:
        is_package = file.name.startswith("raddle-") and file.name.endswith(endings)
        is_deb = file.name.startswith("raddle_") and file.name.endswith(".deb")
        is_list = file.name in (SUMS, SIGNATURE, MINISIGNATURE) or file.name in installers
        if not file.is_file() or not (is_package or is_deb or is_list):
            sys.exit(f"{folder} contains other files, such as {file.name}; pass a new folder")
    return files


def _output(binary, *words):
    return subprocess.run([binary, *words], check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
