"""Third-party clients from npm and crates.io.

`hapi` is not among them yet: it sets an environment variable for each thread, with
`shell_environment_policy.set` in the request, which the server rejects. hapi.py has its check.
"""

import ai_sdk
import codex_codes

CHECKS = {
    **ai_sdk.CHECKS,
    **codex_codes.CHECKS,
}
