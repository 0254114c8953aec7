"""What no plugin may reach or leave behind: files, ports and processes."""

import os
import secrets
import socket
import socketserver
from pathlib import Path

from harness import require, wait_until


class Paths:
    """The places that no plugin may reach, and the canaries in them."""

    def __init__(self, bench):
        self.bench = bench
        self.outside = bench.folder / "outside"
        self.plugins = bench.folder / "plugins"
        for folder in (self.outside, self.plugins):
            folder.mkdir()
        self.files = [self.outside / "file", bench.workspace / "file", bench.client_home / "file"]
        for file in self.files:
            file.write_text("before\n")
        self.canary = f"planted-{secrets.token_hex(8)}"
        #: A word that finds processes which hide otherwise.
        self.mark = f"0.{secrets.randbits(60)}"
        self.abstract = f"raddle-{secrets.token_hex(8)}"
        own = [self.outside, bench.server_home, bench.client_home, bench.server_folder, bench.workspace]
        shared = [Path(it) for it in ("/tmp", "/var/tmp", "/dev/shm", "/", "/etc", "/root", "/usr/local/bin")]
        self.closed = [*own, bench.folder, self.plugins / "writes", *shared]
        self.hidden = [bench.server_home, bench.server_home / "config.toml", bench.server_home / "rules.toml"]
        #: Folders outside of the workspace, through which the host must not act.
        self.beside = [self.outside, bench.server_home, bench.client_home, bench.folder, self.plugins]
        self.connections = []
        self._listen()

    def _listen(self):
        paths = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                paths.connections.append(self.client_address)

        class Unix(socketserver.UnixStreamServer):
            pass

        class AllowedHandler(socketserver.StreamRequestHandler):
            def handle(self):
                self.rfile.readline()
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        allowed = socketserver.ThreadingTCPServer(("127.0.0.1", 0), AllowedHandler)
        allowed.daemon_threads = True
        self.allowed_port = allowed.server_address[1]
        self.bench.serve(allowed)
        tcp = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        self.port = tcp.server_address[1]
        self.bench.serve(tcp)
        self.bench.serve(Unix(f"\0{self.abstract}", Handler))
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        require(wait_until(lambda: self.connections), "the listener does not see connections")
        self.connections.clear()

    def snapshot(self):
        """Returns all files that only the check itself may change."""
        bench = self.bench
        folders = [self.outside, self.plugins, bench.workspace, bench.client_home, bench.server_folder]
        files = [it for folder in folders for it in sorted(folder.rglob("*"))]
        stats = {str(it): os.lstat(it) for it in files}
        own = [(bench.server_home / it).read_text() for it in ("config.toml", "rules.toml")]
        return {name: (it.st_mode, it.st_size, it.st_mtime_ns, it.st_nlink) for name, it in stats.items()}, own

    def planted(self):
        """Returns what is on the disk or runs, and should not."""
        found = [str(it) for it in self.closed if Path(it, self.canary).exists()]
        return found + self.connections


def marked(mark):
    """Returns the processes of the machine that have a word among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def running(name, paths):
    """Returns the processes of a plugin, by the arguments of its interpreter and its folder."""
    found = []
    for pid in marked(name):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(paths.plugins / name):
                found.append(pid)
        except OSError:
            pass
    return found
