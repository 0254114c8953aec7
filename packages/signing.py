"""Signatures of the checksums, created and verified by `ssh-keygen` of OpenSSH 8.1 or newer, and by
`minisign`."""

import subprocess

SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"
MINISIGNATURE = f"{SUMS}.minisig"

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


def minisign(folder, key):
    """Writes the signature of minisign beside the checksums. Its comment has no time, so that the same key
    gives the same bytes. minisign asks for the password of the key on the terminal."""
    (folder / MINISIGNATURE).unlink(missing_ok=True)
    command = ["minisign", "-S", "-q", "-s", key, "-m", SUMS]
    command += ["-c", "signature of the checksums of Raddle", "-t", f"file:{SUMS}"]
    subprocess.run(command, cwd=folder, check=True)


def public_line(key):
    """Returns the public key that is beside a private one, as the line that the install script contains."""
    lines = key.with_name(f"{key.name}.pub").read_text().splitlines()
    return lines[-1].strip()
