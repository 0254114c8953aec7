"""The licences of the parts of the binary, collected from the crates."""

from collections import defaultdict

_NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
_RULE = "-" * 78

_HEAD = """\
Third-party parts of the binary: these crates, the standard library of Rust (MIT or Apache-2.0), and in a
static build the C library musl (Copyright 2005-2020 Rich Felker and others, MIT licence).
The line of a crate names its licence. The licence texts of the crates follow, each once.

"""


def third_party(crates):
    """Returns one page: every crate with its licence, then every text with its crates."""
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
    """Yields the licence texts of a crate, and of a bundled library one folder below."""
    files = sorted(it for pattern in ("*", "*/*") for it in folder.glob(pattern) if it.is_file())
    for file in files:
        if file.name.upper().startswith(_NAMES) and file.suffix not in (".rs", ".c", ".h", ".py"):
            # Line ends and trailing spaces differ between copies of one text.
            lines = file.read_text(errors="replace").splitlines()
            yield "\n".join(line.rstrip() for line in lines).strip()
