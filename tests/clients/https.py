"""A model behind TLS with certificates of a temporary CA, and behind a proxy."""

import base64
import socket
import socketserver
import ssl
import subprocess
import threading

from harness import DEADLINE_S, require, require_equal
from model_script import ANSWER, PROVIDER, ModelScript
from stdio_client import StdioClient

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
_PROMPT = "what makes cloth?"
_UNCONNECTED = {"httpConnectionFailed": {"httpStatusCode": None}}
_ONCE = {f"model_providers.{PROVIDER}.request_max_retries": "0"}
#: A name that never resolves: only the proxy knows its address.
_BEHIND = "vendor.test"
_USER, _PASSWORD = "weaver", "of:silk"


def trusted(bench):
    """`SSL_CERT_FILE` names the CA, and the certificate is for the name in base_url."""
    ca = Authority(bench, "ca")
    script = ModelScript(bench, tls=ca.context("localhost"))
    turn = _turn(bench, script.settings_at("localhost"), ca.file)
    require_equal("the error", turn.error, None)
    require_equal("the message", turn.text, ANSWER)
    require_equal("the number of requests", len(script.asked()), 1)


def not_trusted(bench):
    """A server without a valid certificate receives no request, and is not retried."""
    ca, other = Authority(bench, "ca"), Authority(bench, "other")
    script = ModelScript(bench, tls=ca.context("localhost"))
    refused = [
        # From an untrusted CA.
        ("localhost", other.file, "its certificate is not trusted"),
        # For another name.
        ("127.0.0.1", ca.file, "its certificate is not trusted"),
        # No trusted roots.
        ("localhost", bench.folder / "nowhere.pem", "there are no root certificates"),
    ]
    for host, roots, why in refused:
        turn = _turn(bench, script.settings_at(host), roots)
        require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
        for part in (why, "SSL_CERT_FILE", f"https://{host}:"):
            require(part in turn.error["message"], f"no {part!r} in {turn.error['message']!r}")
        require_equal("the number of retries", turn.retries, 0)
    require_equal("the requests to the model", script.asked(), [])


def expired(bench):
    """An expired certificate is named as such, and no other CA is advised."""
    ca = Authority(bench, "ca")
    script = ModelScript(bench, tls=ca.context("localhost", days=-1))
    turn = _turn(bench, script.settings_at("localhost"), ca.file)
    require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
    message = turn.error["message"]
    for part in ("https://localhost:", "its certificate has expired", "renew it", "the clock of this machine"):
        require(part in message, f"no {part!r} in {message!r}")
    require("SSL_CERT_FILE" not in message, f"the error is {message!r}")
    require_equal("the number of retries", turn.retries, 0)
    require_equal("the requests to the model", script.asked(), [])


def no_tls(bench):
    """A server that does not speak TLS, or does not respond, ends the turn within the connect timeout."""
    ca = Authority(bench, "ca")
    script = ModelScript(bench)
    plain = script.settings_at("localhost", scheme="https")
    turn = _turn(bench, {**plain, **_ONCE}, ca.file)
    require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
    require("http://?" in turn.error["message"], f"the error is {turn.error['message']!r}")

    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f'"https://127.0.0.1:{mute.getsockname()[1]}/v1"'
        provider = f"model_providers.{PROVIDER}"
        settings = {
            **plain,
            **_ONCE,
            f"{provider}.base_url": address,
            f"{provider}.connect_timeout_ms": "300",
        }
        turn = _turn(bench, settings, ca.file)
        require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
        require("within 300 ms" in turn.error["message"], f"the error is {turn.error['message']!r}")


def through_a_proxy(bench):
    """`https_proxy` connects to a model that is reachable in no other way, and sees only encrypted data."""
    ca = Authority(bench, "ca")
    script = ModelScript(bench, tls=ca.context(_BEHIND))
    proxy = Proxy(bench, to=script.port)
    settings = {**script.settings_at(_BEHIND), **_ONCE}
    turn = _turn(bench, settings, ca.file, https_proxy=proxy.address(_PASSWORD))
    require_equal("the error", turn.error, None)
    require_equal("the message", turn.text, ANSWER)
    require_equal("the number of requests", len(script.asked()), 1)
    require_equal("the requests to the proxy", set(proxy.asked), {f"CONNECT {_BEHIND}:{script.port} HTTP/1.1"})
    for word in (_PROMPT, ANSWER):
        require(word.encode() not in proxy.seen, f"the proxy saw {word!r}")

    # Its rejection is reported without the password, and no request bypasses the proxy.
    turn = _turn(bench, settings, ca.file, https_proxy=proxy.address("another"))
    require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
    message = turn.error["message"]
    require("407" in message and "refused" in message, f"the error is {message!r}")
    require("another" not in message, f"the error is {message!r}")
    require_equal("the number of requests", len(script.asked()), 1)

    # A host in `no_proxy` is resolved directly, and not found.
    asked = len(proxy.asked)
    outside = {"https_proxy": proxy.address(_PASSWORD), "no_proxy": _BEHIND}
    turn = _turn(bench, settings, ca.file, **outside)
    require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
    require_equal("further requests to the proxy", proxy.asked[asked:], [])


class Proxy:
    """Accepts `CONNECT` with the password, to any host, and forwards the bytes to one local port."""

    def __init__(self, bench, to):
        self.asked = []
        #: All bytes that passed through it, in both directions.
        self.seen = bytearray()
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _tunnel(self, to))
        self._server.daemon_threads = True
        bench.serve(self._server)

    def address(self, password=_PASSWORD):
        escaped = password.replace(":", "%3A")
        return f"http://{_USER}:{escaped}@127.0.0.1:{self._server.server_address[1]}"


def _tunnel(proxy, port):
    secret = base64.b64encode(f"{_USER}:{_PASSWORD}".encode()).decode()

    class Handler(socketserver.StreamRequestHandler):
        # A buffered reader would keep the bytes after the head.
        rbufsize = 0
        timeout = 2 * DEADLINE_S

        def handle(self):
            first, *head = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), "")
            proxy.asked.append(first)
            if f"proxy-authorization: Basic {secret}" not in head:
                self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", port)) as model:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=self.pass_on, args=(model, self.connection), daemon=True)
                back.start()
                self.pass_on(self.connection, model)
                back.join(DEADLINE_S)

        def pass_on(self, source, to):
            try:
                while piece := source.recv(1 << 16):
                    proxy.seen += piece
                    to.sendall(piece)
                to.shutdown(socket.SHUT_WR)
            except OSError:
                # One side has disconnected, and the other notices.
                pass

    return Handler


class Authority:
    """A CA and its certificates."""

    def __init__(self, bench, name):
        self._folder = bench.folder / name
        self._folder.mkdir()
        self.file = self._folder / "ca.pem"
        self._key = self._folder / "ca.key"
        self._openssl(
            *("req", "-x509", *_KEY, "-keyout", self._key, "-out", self.file),
            *("-days", "2", "-subj", f"/CN={name} of a check"),
        )

    def context(self, host, days=2):
        """Returns a context for a server with a certificate for this name, which is valid for so many days."""
        key, request = self._folder / "server.key", self._folder / "server.csr"
        certificate, more = self._folder / "server.pem", self._folder / "more.cnf"
        more.write_text(f"subjectAltName = DNS:{host}\n")
        subject = ["-subj", f"/CN={host}"]
        self._openssl("req", *_KEY, "-keyout", key, "-out", request, *subject)
        self._openssl(
            *("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key),
            *("-CAcreateserial", "-days", days, "-extfile", more, "-out", certificate),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    def _openssl(self, *words):
        command = ["openssl", *(str(word) for word in words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        require_equal(f"how openssl {words[0]} ended: {done.stderr}", done.returncode, 0)


def _turn(bench, settings, roots, **environment):
    """Runs a turn with a new server that trusts these roots."""
    client = StdioClient(bench, settings, SSL_CERT_FILE=str(roots), **environment)
    turn = client.turn(_PROMPT)
    client.leave()
    return turn


CHECKS = {
    "https-trusted": trusted,
    "https-not-trusted": not_trusted,
    "https-expired": expired,
    "https-no-tls": no_tls,
    "https-through-a-proxy": through_a_proxy,
}
