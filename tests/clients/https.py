"""A model behind TLS, with certificates of a CA that was made for the check."""

import socket
import ssl
import subprocess

from harness import DEADLINE_S, require, require_equal
from model_script import ANSWER, PROVIDER, ModelScript
from stdio_client import StdioClient

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


def _turn(bench, settings, roots):
    """A turn with a server of its own, which trusts these roots."""
    client = StdioClient(bench, settings, SSL_CERT_FILE=str(roots))
    turn = client.turn(_PROMPT)
    client.leave()
    return turn


CHECKS = {
    "https-trusted": trusted,
    "https-not-trusted": not_trusted,
    "https-no-tls": no_tls,
}
