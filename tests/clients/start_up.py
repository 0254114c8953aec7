"""Reads a client's start-up off the record."""

from harness import METHOD_NOT_FOUND, require, require_equal

THREAD_START = "thread/start"


def require_start_up(record, needed, spared=()):
    """The client came as far as `thread/start`, and all it needed until then was answered.

    `needed` are the requests that must have a result, in order. `spared` are those that the client
    does without: they must be sent and answered too, but -32601 will do. Any other is a surprise.
    """
    calls = record.calls()
    methods = [call.method for call in calls]
    require(THREAD_START in methods, f"thread/start was not reached; sent were {methods}")
    require_equal("the first request", methods[0], "initialize")
    before = calls[: methods.index(THREAD_START)]
    for call in before:
        require_one_answer(call)
        if call.error_code is not None:
            require(call.method in spared, f"{call.method} was answered with {call.answers[0]}")
            require_equal(f"the error of {call.method}", call.error_code, METHOD_NOT_FOUND)
        else:
            require(isinstance(call.result, dict), f"{call.method} gave {call.answers[0]}")
    require_in_order([call.method for call in before], needed)
    for method in spared:
        require(method in methods, f"{method} was never sent; sent were {methods}")
    for call in calls:
        if call.method == THREAD_START:
            require_one_answer(call)
            require_equal("the answer to thread/start", call.error_code, METHOD_NOT_FOUND)
    require_equal("what is no message", record.oddities, [])
    return before


def require_one_answer(call):
    require_equal(f"how many answers {call.method} got", len(call.answers), 1)


def require_in_order(found, expected):
    rest = iter(found)
    for method in expected:
        # Each `in` reads on from where the last one stopped.
        require(method in rest, f"expected {expected} in this order, found {found}")
