"""A third-party client that is a web server: its process, and JSON requests to it."""

import http.cookiejar
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

from harness import DEADLINE_S, Failure, free_port, require, wait_until


class WebClient:
    """Runs `command(port)` until the check ends. Requests keep their cookies."""

    def __init__(self, bench, command, environment):
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        log = bench.folder / f"web-client-{port}.log"
        bench.evidence("the client's output", lambda: log.read_text().splitlines()[-40:])
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                [str(word) for word in command(port)],
                env=environment,
                cwd=bench.workspace,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Its own process group, so that its children end with it.
                start_new_session=True,
            )
        bench.afterwards(self.kill)
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        require(wait_until(self._is_up), "the client's web server did not start")

    def get(self, path):
        return self._send(urllib.request.Request(self._address + path))

    def post(self, path, **body):
        request = urllib.request.Request(self._address + path, data=json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        return self._send(request)

    def kill(self):
        """Ends the client and its children at once, as a crash does. Some take half a minute to stop."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _is_up(self):
        require(self._process.poll() is None, "the client's web server ended at once")
        try:
            self._opener.open(self._address, timeout=DEADLINE_S).close()
        except urllib.error.HTTPError:
            # Any response will do.
            pass
        except OSError:
            return False
        return True

    def _send(self, request):
        try:
            with self._opener.open(request, timeout=DEADLINE_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise Failure(f"{request.full_url}: {error.code} {text[:400]}") from None
