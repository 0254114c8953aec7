#!/bin/sh
# Installs Raddle $VERSION for Linux on x86-64, for the user who runs it. It verifies the signature of
# the checksums, then the checksum of the archive, and only then unpacks it.
set -eu

version='$VERSION'
archive='$ARCHIVE'
from='$URL/v$VERSION'
# The public key of the releases, as minisign prints it. If it is empty, --key is required.
key='$MINISIGN_KEY'
to="${HOME:+$HOME/.local}"

usage() {
    cat <<END
Usage: install.sh [--from ADDRESS] [--to FOLDER] [--key KEY]

Installs Raddle $version: FOLDER/bin/raddle, its man pages, its completions, and a profile of AppArmor
in FOLDER/share/doc/raddle.

  --from ADDRESS  where the archive and its checksums are: a URL or a folder ($from)
  --to FOLDER     where it is installed ($to)
  --key KEY       the public key of the publisher, one line of minisign
END
}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case "$1" in
    --help | -h)
        usage
        exit 0
        ;;
    --from | --to | --key)
        [ $# -ge 2 ] || fail "$1 needs a value; see --help"
        case "$1" in
        --from) from=$2 ;;
        --to) to=$2 ;;
        --key) key=$2 ;;
        esac
        shift 2
        ;;
    *) fail "unknown argument: $1; see --help" ;;
    esac
done

# The script changes the folder below.
case "$to" in
/*) ;;
"") fail "HOME is not set; name the folder with --to" ;;
*) to="$PWD/$to" ;;
esac

system="$(uname -s) $(uname -m)"
[ "$system" = "Linux x86_64" ] || fail "there is no package for $system, only for Linux x86_64"
[ -n "$key" ] || fail "this script names no release key; pass the publisher's key with --key"
command -v minisign >/dev/null ||
    fail "minisign is not installed, and the signature cannot be verified without it; install it \
with your package manager"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

for file in SHA256SUMS SHA256SUMS.minisig "$archive"; do
    case "$from" in
    https://*) curl --proto '=https' --fail --silent --show-error --location \
        --output "$folder/$file" "$from/$file" ;;
    *://*) fail "$from is not an https address" ;;
    *) cp "$from/$file" "$folder/$file" ;;
    esac || fail "cannot get $file from $from"
done

cd "$folder"
minisign -V -q -P "$key" -m SHA256SUMS >/dev/null ||
    fail "the signature of SHA256SUMS is not by the key $key; nothing was installed"
grep -F "  $archive" SHA256SUMS >archive.sum ||
    fail "SHA256SUMS does not list $archive; nothing was installed"
sha256sum --check --strict --status archive.sum ||
    fail "the checksum of $archive is wrong; nothing was installed"

tar -xzf "$archive" --strip-components 1
share="$to/share"
install -D -m 755 raddle "$to/bin/raddle"
mkdir -p "$to/lib/raddle/shim"
ln -sf ../../../bin/raddle "$to/lib/raddle/shim/codex"
for page in man/man1/*; do
    install -D -m 644 "$page" "$share/$page"
done
install -D -m 644 completions/bash/raddle "$share/bash-completion/completions/raddle"
install -D -m 644 completions/zsh/_raddle "$share/zsh/site-functions/_raddle"
install -D -m 644 completions/fish/raddle.fish "$share/fish/vendor_completions.d/raddle.fish"
install -D -m 644 apparmor/raddle-bwrap "$share/doc/raddle/raddle-bwrap"

echo "Installed $("$to/bin/raddle" --version) in $to/bin."
case ":$PATH:" in
*":$to/bin:"*) ;;
*) echo "Add $to/bin to PATH." ;;
esac
restriction=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ -r "$restriction" ] && [ "$(cat "$restriction")" = 1 ]; then
    echo "This system restricts bubblewrap by AppArmor. If raddle doctor says that the sandbox is weak,"
    echo "install the profile $share/doc/raddle/raddle-bwrap as docs/security.md of Raddle says."
fi
echo "Next: raddle init, then raddle doctor."
