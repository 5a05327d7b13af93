"""So many requests in each minute, all processes together."""

from __future__ import annotations

import pytest

from accessportal.kernel.errors import Unavailable
from accessportal.store.base import PortalModel
from accessportal.store.transactions import Change, Upsert, update_one
from accessportal.tokens import operations, store
from accessportal.tokens.rate import RateLimit
from tests.tokens.conftest import Tokens


@pytest.mark.parametrize("rate", [1, 7, 20, 45, 600])
def test_the_limit_is_met_exactly_and_a_new_minute_begins_anew(tokens: Tokens, rate: int) -> None:
    token = tokens.create(rate=rate).token
    assert tokens.ask(token, rate + 5) == rate
    tokens.clock.advance(59)
    assert operations.claim_request(token=token, now=tokens.clock.now()) == 1.0
    tokens.clock.advance(1)
    assert tokens.ask(token, rate + 5) == rate


def test_one_client_does_not_use_up_anothers(tokens: Tokens) -> None:
    busy, quiet = tokens.create(rate=2).token, tokens.create(rate=2).token
    tokens.ask(busy, 10)
    assert tokens.ask(quiet, 1) == 1


def test_most_requests_cost_no_write(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens.create(rate=600).token
    writes: list[Change | Upsert] = []

    def counted(step: Change | Upsert) -> PortalModel:
        writes.append(step)
        return update_one(step)

    monkeypatch.setattr(store, "update_one", counted)
    tokens.ask(token, 1000)
    # 20 blocks; one more write to begin the minute, and three to see that it is used up: after that none
    assert len(writes) == 24


def processes(count: int) -> list[RateLimit]:
    return [RateLimit() for _ in range(count)]


def test_two_processes_share_one_limit(tokens: Tokens) -> None:
    token = tokens.create(rate=100).token
    one, other = processes(2)
    let_in = sum(limit.claim(token, now=tokens.clock.now()) == 0.0 for _ in range(100) for limit in (one, other))
    assert let_in == 100


def test_requests_that_came_before_the_minute_turned_use_up_no_more_than_themselves(tokens: Tokens) -> None:
    """They were let in then, and are counted while others begin the next minute already."""
    token, limit = tokens.create(rate=100).token, RateLimit()
    before = tokens.clock.now()
    tokens.clock.advance(60)

    let_in = [limit.claim(token, now=now) == 0.0 for _ in range(60) for now in (before, tokens.clock.now())]
    assert sum(let_in) == 101
    assert limit.claim(token, now=before) == 120.0


def test_a_clock_a_little_ahead_gives_nothing_away(tokens: Tokens) -> None:
    token = tokens.create(rate=10).token
    ahead, behind = processes(2)
    now = tokens.clock.now()
    tokens.clock.advance(60)
    let_in = [ahead.claim(token, now=tokens.clock.now()) == 0.0 for _ in range(8)]
    let_in += [behind.claim(token, now=now) == 0.0 for _ in range(8)]
    assert sum(let_in) == 10


def test_a_clock_far_ahead_locks_nobody_out(tokens: Tokens) -> None:
    token = tokens.create(rate=10).token
    wrong, right = processes(2)
    now = tokens.clock.now()
    tokens.clock.advance(86_400)
    while wrong.claim(token, now=tokens.clock.now()) == 0.0:
        pass
    assert right.claim(token, now=now) == 0.0


def test_a_store_that_does_not_answer_is_no_outage(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens.create(rate=100).token
    tries = []

    def fail(*_: object) -> None:
        tries.append(1)
        raise Unavailable("The database did not answer.", code="store_unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(store, "update_one", fail)
        assert tokens.ask(token, 300) == 300
    # one try for each block, not one for each request: every one may take as long as a time-out
    assert len(tries) == 60
    assert tokens.ask(token, 300) == 100
