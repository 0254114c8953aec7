"""The licences of what is in the binary, gathered from the crates themselves."""

import json
import subprocess
from collections import defaultdict
from pathlib import Path

_TARGET = "x86_64-unknown-linux-musl"
_NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
_RULE = "-" * 78

_HEAD = """\
What the binary is made of, beside Raddle itself: these crates, and in a static build the C library musl
(Copyright 2005-2020 Rich Felker and others, MIT licence) and the standard library of Rust (MIT or Apache-2.0).
Each crate is under the terms that its line names. The texts that come with them follow, each once.

"""


def third_party(repository):
    """One page: every crate with its licence, then every text with the crates that it came with."""
    crates = _crates(repository)
    page = [_HEAD]
    page += [f"{it['name']} {it['version']}: {it['license'] or 'see its text'}\n" for it in crates]
    texts = defaultdict(list)
    for crate in crates:
        for text in _texts(Path(crate["manifest_path"]).parent):
            texts[text].append(f"{crate['name']} {crate['version']}")
    for text, names in sorted(texts.items(), key=lambda it: (it[1], it[0])):
        page.append(f"\n{_RULE}\n{', '.join(names)}\n{_RULE}\n\n{text}\n")
    return "".join(page)


def _crates(repository):
    """What is linked: everything that the binary needs, and what that needs, but not to be built or tested."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", _TARGET]
    found = subprocess.run(command, cwd=repository, check=True, stdout=subprocess.PIPE)
    metadata = json.loads(found.stdout)
    packages = {it["id"]: it for it in metadata["packages"]}
    nodes = {it["id"]: it for it in metadata["resolve"]["nodes"]}
    (first,) = (it["id"] for it in metadata["packages"] if it["name"] == "raddle")
    linked, waiting = set(), [first]
    while waiting:
        crate = waiting.pop()
        if crate in linked:
            continue
        linked.add(crate)
        for needed in nodes[crate]["deps"]:
            if any(it["kind"] is None for it in needed["dep_kinds"]):
                waiting.append(needed["pkg"])
    # Those of this repository have no source elsewhere.
    others = (packages[it] for it in linked if packages[it]["source"])
    return sorted(others, key=lambda it: (it["name"], it["version"]))


def _texts(folder):
    """Also one folder down, where a crate keeps the library that it wraps."""
    files = sorted(it for pattern in ("*", "*/*") for it in folder.glob(pattern) if it.is_file())
    for file in files:
        if file.name.upper().startswith(_NAMES) and file.suffix not in (".rs", ".c", ".h", ".py"):
            # Line ends and spaces differ between copies of one text.
            lines = file.read_text(errors="replace").splitlines()
            yield "\n".join(line.rstrip() for line in lines).strip()
