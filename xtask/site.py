"""A preprocessor for `mdbook build`: adds the generated pages, and replaces links to files outside the book
with their text.

mdBook writes the book to stdin and reads the result from stdout.
"""

import json
import posixpath
import re
import sys
from pathlib import Path

_INDEX = "reference/README.md"
_LINK = re.compile(r"\[([^\]\[]*)\]\(([^()\s]+)\)")


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    top = Path(context["root"]) / context["config"]["book"]["src"]
    # The member's name depends on the version of mdBook.
    items = book["items"] if "items" in book else book["sections"]
    for chapter in _chapters(items):
        if chapter["source_path"] == _INDEX:
            chapter["sub_items"] = [_page(top, chapter, path) for path in _generated(top)]
    pages = {chapter["source_path"] for chapter in _chapters(items)}
    # mdBook copies other files unchanged.
    copied = {it.relative_to(top).as_posix() for it in top.rglob("*.*") if it.suffix != ".md"}
    for chapter in _chapters(items):
        folder = posixpath.dirname(chapter["source_path"])
        mended = lambda link: _mended(link, folder, pages | copied)
        chapter["content"] = _LINK.sub(mended, chapter["content"])
    json.dump(book, sys.stdout)


def _chapters(items):
    for item in items:
        # Part titles and separators are not pages.
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from _chapters(item["Chapter"]["sub_items"])


def _generated(top):
    return sorted(it for it in (top / "reference").rglob("*.md") if it != top / _INDEX)


def _page(top, parent, path):
    content = path.read_text()
    name = re.search(r"^# (.+)$", content, re.MULTILINE).group(1).replace("`", "")
    place = path.relative_to(top).as_posix()
    return {
        "Chapter": {
            "name": name,
            "content": content,
            "number": None,
            "sub_items": [],
            "path": place,
            "source_path": place,
            "parent_names": [*parent["parent_names"], parent["name"]],
        }
    }


def _mended(link, folder, files):
    """Returns a link for the book: `README.md` becomes `index.md`, and a link to a file outside becomes its text."""
    words, target = link.groups()
    path, mark, heading = target.partition("#")
    if "://" in target or not path:
        return link.group()
    place = posixpath.normpath(posixpath.join(folder, path))
    if place not in files and f"{place}/README.md" not in files:
        return words
    return f"[{words}]({re.sub('README.md$', 'index.md', path)}{mark}{heading})"


main()
