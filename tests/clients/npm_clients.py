"""Third-party clients from npm and crates.io."""

CHECKS = {}
