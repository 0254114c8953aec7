# Homebrew formula of Raddle $VERSION for Linux on x86-64.
class Raddle < Formula
  desc "Server that hosts coding agents behind JSON-RPC"
  homepage "$URL"
  url "$URL/v$VERSION/$ARCHIVE"
  sha256 "$ARCHIVE_SHA256"
  license "Apache-2.0"

  depends_on arch: :x86_64
  depends_on :linux

  def install
    bin.install "raddle"
    (lib/"raddle/shim").install_symlink bin/"raddle" => "codex"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/bash/raddle"
    zsh_completion.install "completions/zsh/_raddle"
    fish_completion.install "completions/fish/raddle.fish"
  end

  def caveats
    <<~EOS
      The sandbox needs bubblewrap 0.8 or newer. Install it with the package manager of the system:
      Raddle does not use programs of PATH for the sandbox. `raddle doctor` checks it.
    EOS
  end

  test do
    assert_equal "raddle #{version}", shell_output("#{bin}/raddle --version").strip
  end
end
