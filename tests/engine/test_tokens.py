"""API tokens on a real engine: several processes that share one limit, note one use, and meet a revocation."""

from __future__ import annotations

import itertools
import random
from functools import partial

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict
from accessportal.tokens import operations, policy, queries, store
from accessportal.tokens.rate import RateLimit
from accessportal.tokens.states import ApiToken, NewToken, Scope, TokenRefused, TokenState
from tests.engine.stage import at_once, lost, won

pytestmark = pytest.mark.usefixtures("engine")
SETUP = system("setup")
CLOCK = SystemClock()
PROCESSES = 4
THREADS = 8


def create(*, rate: int = 600, submission_id: str | None = None) -> NewToken:
    return operations.create_token(
        name="Lab runner", scope=Scope.TRACK, rate_per_minute=rate, submission_id=submission_id, actor=SETUP, now=CLOCK.now()
    )


def revoke(made: NewToken) -> ApiToken:
    return operations.revoke_token(token_id=made.token.token_id, actor=SETUP, now=CLOCK.now())


@pytest.mark.parametrize("rate", [1, 30, 333])
def test_processes_together_let_through_what_the_limit_says_and_no_more(rate: int) -> None:
    """Each limiter is what one process has; its threads share it."""
    token = create(rate=rate).token
    now = CLOCK.now()

    def ask(limit: RateLimit) -> int:
        return sum(limit.claim(token, now=now) == 0.0 for _ in range(rate))

    limits = [RateLimit() for _ in range(PROCESSES)]
    let_through = sum(won(at_once([partial(ask, limit) for limit in limits for _ in range(THREADS)])))
    # All of them ask until they are refused, so nothing that was reserved is left over.
    assert let_through == rate
    assert queries.used_this_minute(token_id=token.token_id, now=now) >= rate


def test_a_minute_that_begins_for_many_at_once_begins_once() -> None:
    token = create(rate=100).token
    window_at = policy.window_of(CLOCK.now())
    reserve = partial(store.reserve, token.token_id, block=10, most=100)

    for minute in range(3):
        reserved = won(at_once([partial(reserve, window_at=window_at + 60 * minute) for _ in range(16)]))
        assert sorted(reserved) == [0] * 6 + [10] * 10


def test_a_last_block_is_shared_out_to_the_last_request() -> None:
    token = create(rate=25).token
    window_at = policy.window_of(CLOCK.now())
    reserved = won(at_once([partial(store.reserve, token.token_id, block=10, most=25, window_at=window_at) for _ in range(6)]))
    assert sorted(reserved) == [0, 0, 0, 5, 10, 10]


def test_the_last_use_is_written_once() -> None:
    made = create()
    now = CLOCK.now()
    written = won(at_once([partial(store.note_use, made.token.token_id, now=now) for _ in range(16)]))
    assert sorted(written) == [False] * 15 + [True]


def test_what_is_authenticated_after_a_revocation_is_refused() -> None:
    made = create()
    finished = itertools.count()
    revoked: list[int] = []
    admitted: list[int] = []
    codes: set[str] = set()

    # Each from an address of its own, with fewer tries than one may miss.
    def use(address: str) -> None:
        for _ in range(20):
            begun = next(finished)
            try:
                operations.authenticate(text=made.text, address=address, now=CLOCK.now())
            except TokenRefused as error:
                codes.add(error.code)
            else:
                admitted.append(begun)

    def take_away() -> None:
        CLOCK.sleep(random.uniform(0.0, 0.05))
        revoke(made)
        revoked.append(next(finished))

    assert lost(at_once([take_away, *[partial(use, f"192.0.2.{number}") for number in range(8)]])) == []
    assert codes <= {"token_revoked"}
    # Whoever began after the revocation had returned was refused.
    assert max(admitted, default=-1) < revoked[0]
    token = queries.find_token(token_id=made.token.token_id)
    assert (token.state(CLOCK.now()), token.version) == (TokenState.REVOKED, 2)
    assert audit.check_head(token.entity, version=token.version, audit_head=token.audit_head) == []


def test_two_who_revoke_at_once_both_learn_who_was_first() -> None:
    made = create()
    found = won(at_once([partial(revoke, made) for _ in range(8)]))
    assert len(found) == 8
    assert len(set(found)) == 1
    assert audit.check_head(found[0].entity, version=2, audit_head=found[0].audit_head) == []


def test_one_form_sent_by_many_makes_one_token() -> None:
    outcomes = at_once([partial(create, submission_id="form-1") for _ in range(8)])
    assert len(won(outcomes)) == 1
    assert {type(error) for error in lost(outcomes)} == {Conflict}
    operations.authenticate(text=won(outcomes)[0].text, now=CLOCK.now())
