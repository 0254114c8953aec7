"""Third-party clients from npm and crates.io."""

import ai_sdk
import codex_codes
import hapi

CHECKS = {
    **ai_sdk.CHECKS,
    **codex_codes.CHECKS,
    **hapi.CHECKS,
}
