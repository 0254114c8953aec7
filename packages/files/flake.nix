# Nix flake of Raddle $VERSION for Linux on x86-64. The binary is static and needs no other package.
# The sandbox needs bubblewrap. Raddle does not search PATH for it; put into config.toml:
#   sandbox_bwrap_path = "/run/current-system/sw/bin/bwrap"
{
  description = "$SUMMARY";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      system = "x86_64-linux";
      pkgs = nixpkgs.legacyPackages.${system};
    in
    {
      packages.${system}.default = pkgs.stdenvNoCC.mkDerivation {
        pname = "raddle";
        version = "$VERSION";
        src = pkgs.fetchurl {
          url = "$URL/v$VERSION/$ARCHIVE";
          hash = "$ARCHIVE_SRI";
        };
        nativeBuildInputs = [ pkgs.installShellFiles ];
        installPhase = ''
          install -D --mode=755 raddle "$out/bin/raddle"
          mkdir -p "$out/lib/raddle/shim"
          ln -s ../../../bin/raddle "$out/lib/raddle/shim/codex"
          installManPage man/man1/*
          installShellCompletion --bash completions/bash/raddle
          installShellCompletion --zsh completions/zsh/_raddle
          installShellCompletion --fish completions/fish/raddle.fish
        '';
        dontFixup = true;
        meta = {
          license = pkgs.lib.licenses.asl20;
          mainProgram = "raddle";
          platforms = [ system ];
        };
      };
    };
}
