"""A model behind TLS, with certificates of a CA that was made for the check."""

import json
import socket
import ssl
import subprocess

from harness import DEADLINE_S, Failure, require, require_equal, require_no_panic
from model_script import ANSWER, PROVIDER, ModelScript

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
_PROMPT = "what makes cloth?"
_UNCONNECTED = {"httpConnectionFailed": {"httpStatusCode": None}}


def trusted(bench):
    """`SSL_CERT_FILE` names the CA, and the certificate is for the name in base_url."""
    ca = Authority(bench, "ca")
    script = ModelScript(bench, tls=ca.context("localhost"))
    turn = _turn(bench, script.settings_at("localhost"), ca.file)
    require_equal("the error", turn.error, None)
    require_equal("what was said", turn.text, ANSWER)
    require_equal("how often it was asked", len(script.asked()), 1)


def not_trusted(bench):
    """Whoever cannot show that it is the vendor is told nothing, and not tried again."""
    ca, other = Authority(bench, "ca"), Authority(bench, "other")
    script = ModelScript(bench, tls=ca.context("localhost"))
    refused = [
        # By a CA that is not trusted.
        ("localhost", other.file, "its certificate is not trusted"),
        # For another name.
        ("127.0.0.1", ca.file, "its certificate is not trusted"),
        # Nobody is trusted.
        ("localhost", bench.folder / "nowhere.pem", "there are no root certificates"),
    ]
    for host, roots, why in refused:
        turn = _turn(bench, script.settings_at(host), roots)
        require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
        for part in (why, "SSL_CERT_FILE", f"https://{host}:"):
            require(part in turn.error["message"], f"no {part!r} in {turn.error['message']!r}")
        require_equal("how often it was tried again", turn.retries, 0)
    require_equal("what the model was asked", script.asked(), [])


def no_tls(bench):
    """What speaks no TLS, or nothing at all, ends the turn within the limit of a connection."""
    ca = Authority(bench, "ca")
    once = {f"model_providers.{PROVIDER}.request_max_retries": "0"}
    script = ModelScript(bench)
    plain = script.settings_at("localhost", scheme="https")
    turn = _turn(bench, {**plain, **once}, ca.file)
    require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
    require("http://?" in turn.error["message"], f"it says {turn.error['message']!r}")

    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f'"https://127.0.0.1:{mute.getsockname()[1]}/v1"'
        provider = f"model_providers.{PROVIDER}"
        settings = {
            **plain,
            **once,
            f"{provider}.base_url": address,
            f"{provider}.connect_timeout_ms": "300",
        }
        turn = _turn(bench, settings, ca.file)
        require_equal("the kind of the error", turn.error["codexErrorInfo"], _UNCONNECTED)
        require("within 300 ms" in turn.error["message"], f"it says {turn.error['message']!r}")


class Authority:
    """A CA, and the certificates it gives."""

    def __init__(self, bench, name):
        self._folder = bench.folder / name
        self._folder.mkdir()
        self.file = self._folder / "ca.pem"
        self._key = self._folder / "ca.key"
        self._openssl(
            *("req", "-x509", *_KEY, "-keyout", self._key, "-out", self.file),
            *("-days", "2", "-subj", f"/CN={name} of a check"),
        )

    def context(self, host):
        """For a server that has a certificate for this name."""
        key, request = self._folder / "server.key", self._folder / "server.csr"
        certificate, more = self._folder / "server.pem", self._folder / "more.cnf"
        more.write_text(f"subjectAltName = DNS:{host}\n")
        subject = ["-subj", f"/CN={host}"]
        self._openssl("req", *_KEY, "-keyout", key, "-out", request, *subject)
        self._openssl(
            *("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key),
            *("-CAcreateserial", "-days", "2", "-extfile", more, "-out", certificate),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    def _openssl(self, *words):
        command = ["openssl", *(str(word) for word in words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        require_equal(f"how openssl {words[0]} ended: {done.stderr}", done.returncode, 0)


class Turn:
    """One turn, as the client on stdio heard of it."""

    def __init__(self):
        self.text = None
        self.error = None
        self.retries = 0

    def hear(self, message):
        """Gives whether it has ended."""
        params = message.get("params", {})
        match message.get("method"):
            case "item/completed" if params["item"]["type"] == "agentMessage":
                self.text = params["item"]["text"]
            case "error" if params["willRetry"]:
                self.retries += 1
            case "turn/completed":
                self.error = params["turn"]["error"]
                return True
        return False


def _turn(bench, settings, roots):
    """A turn with a server of its own, which trusts these roots."""
    overrides = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    log = bench.folder / "stdio.stderr"
    bench.evidence("the server's stderr", lambda: log.read_text().splitlines()[-20:])
    with open(log, "wb") as stderr:
        server = subprocess.Popen(
            [bench.raddle, "app-server", *overrides],
            env=bench.environment(SSL_CERT_FILE=str(roots)),
            cwd=bench.server_folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    with server:
        try:
            turn = _ask(server)
        finally:
            # It ends by itself when nobody talks to it.
            server.stdin.close()
        require_equal("the server's exit code", server.wait(timeout=DEADLINE_S), 0)
    require_no_panic(log.read_text())
    return turn


def _ask(server):
    def send(number, method, params):
        request = {"id": number, "method": method, "params": params}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()

    send(1, "initialize", {"clientInfo": {"name": "check", "version": "1"}})
    send(2, "thread/start", {})
    turn = Turn()
    # The limits of the model's provider end every turn.
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == 2:
            thread = message["result"]["thread"]["id"]
            said = [{"type": "text", "text": _PROMPT}]
            send(3, "turn/start", {"threadId": thread, "input": said})
        if turn.hear(message):
            return turn
    raise Failure("the server ended before the turn did")


CHECKS = {
    "https-trusted": trusted,
    "https-not-trusted": not_trusted,
    "https-no-tls": no_tls,
}
