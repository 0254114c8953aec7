"""Signatures over the checksums, made and checked by `ssh-keygen`, which comes with OpenSSH 8.1 or newer."""

import subprocess

SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"

#: What the signature is for; one that was made for something else is not taken.
NAMESPACE = "raddle-release"
#: The name before the key in the file of those who may sign.
SIGNER = "raddle"


def sign(folder, key):
    """Writes the signature beside the checksums. `key` is a private key, or a public one whose private
    key the agent holds."""
    (folder / SIGNATURE).unlink(missing_ok=True)
    command = ["ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", key, SUMS]
    subprocess.run(command, cwd=folder, check=True)


def verify(folder, signers):
    """Whether one of the signers signed the checksums as they are. A line of `signers` is
    `raddle ssh-ed25519 KEY`."""
    command = ["ssh-keygen", "-Y", "verify", "-q", "-n", NAMESPACE, "-I", SIGNER]
    command += ["-f", signers, "-s", SIGNATURE]
    with (folder / SUMS).open() as sums:
        done = subprocess.run(command, cwd=folder, stdin=sums, capture_output=True)
    return done.returncode == 0
