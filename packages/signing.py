"""Signatures of the checksums, created and verified by `ssh-keygen` of OpenSSH 8.1 or newer."""

import subprocess

SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"

#: The namespace of the signature; `ssh-keygen` rejects a signature with another one.
NAMESPACE = "raddle-release"
#: The name before the key in the file of signers.
SIGNER = "raddle"


def sign(folder, key):
    """Writes the signature beside the checksums. `key` is a private key, or a public one whose private
    key the agent holds."""
    (folder / SIGNATURE).unlink(missing_ok=True)
    command = ["ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", key, SUMS]
    subprocess.run(command, cwd=folder, check=True)


def verify(folder, signers):
    """Returns whether one of the signers signed these checksums. A line of `signers` is
    `raddle ssh-ed25519 KEY`."""
    command = ["ssh-keygen", "-Y", "verify", "-q", "-n", NAMESPACE, "-I", SIGNER]
    command += ["-f", signers, "-s", SIGNATURE]
    with (folder / SUMS).open() as sums:
        done = subprocess.run(command, cwd=folder, stdin=sums, capture_output=True)
    return done.returncode == 0
