"""Third-party clients from npm and crates.io.

`hapi` is not among them yet: its check in hapi.py has not passed since the server accepts the variable
that it sets for each thread, with `shell_environment_policy.set` in the request.
"""

import ai_sdk
import codex_codes

CHECKS = {
    **ai_sdk.CHECKS,
    **codex_codes.CHECKS,
}
