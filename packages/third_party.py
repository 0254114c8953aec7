"""The licences of what is in the binary, gathered from the crates themselves."""

from collections import defaultdict

_NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
_RULE = "-" * 78

_HEAD = """\
What the binary is made of, beside Raddle itself: these crates, and in a static build the C library musl
(Copyright 2005-2020 Rich Felker and others, MIT licence) and the standard library of Rust (MIT or Apache-2.0).
Each crate is under the terms that its line names. The texts that come with them follow, each once.

"""


def third_party(crates):
    """One page: every crate with its licence, then every text with the crates that it came with."""
    others = [it for it in crates if not it.is_ours]
    page = [_HEAD]
    page += [f"{it.name} {it.version}: {it.licence or 'see its text'}\n" for it in others]
    texts = defaultdict(list)
    for crate in others:
        for text in _texts(crate.folder):
            texts[text].append(f"{crate.name} {crate.version}")
    for text, names in sorted(texts.items(), key=lambda it: (it[1], it[0])):
        page.append(f"\n{_RULE}\n{', '.join(names)}\n{_RULE}\n\n{text}\n")
    return "".join(page)


def _texts(folder):
    """Also one folder down, where a crate keeps the library that it wraps."""
    files = sorted(it for pattern in ("*", "*/*") for it in folder.glob(pattern) if it.is_file())
    for file in files:
        if file.name.upper().startswith(_NAMES) and file.suffix not in (".rs", ".c", ".h", ".py"):
            # Line ends and spaces differ between copies of one text.
            lines = file.read_text(errors="replace").splitlines()
            yield "\n".join(line.rstrip() for line in lines).strip()
