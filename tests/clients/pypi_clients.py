"""Third-party clients from PyPI."""

CHECKS = {}
