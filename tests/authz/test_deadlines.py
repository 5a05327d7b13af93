"""One table of whoever answers by an end, at each moment around it; other rooms add their way of asking to ``WAYS``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from accessportal.authz import queries
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.queries import Asked, check_many
from accessportal.authz.states import RelationType
from accessportal.authz.store import APPROVALS, RELATIONSHIPS
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import every
from tests.authz.conftest import Service

ACME = "tenant:acme"
ALICE = ("alice", "docs/1", "GET")
LEAF = ("leaf", "trusts", "middle")
WAYS: dict[str, Callable[[Service], bool]] = {}


def way(ask: Callable[[Service], bool]) -> Callable[[Service], bool]:
    """Whether it counts now, as one who asks in this way is told."""
    WAYS[ask.__name__] = ask
    return ask


@way
def check(service: Service) -> bool:
    return service.check(*ALICE, scope=ACME).is_allowed


@way
def relationship(service: Service) -> bool:
    return service.check(*LEAF, scope=ACME, ledger=RELATIONSHIPS).is_allowed


@way
def chain(service: Service) -> bool:
    return service.chain("leaf", "trusts", "root", scope=ACME).is_allowed


@way
def in_set(service: Service) -> bool:
    asked = ("alice", "docs/*", "GET")
    return queries.check_set(APPROVALS, read_scope(ACME), asked, caller=service.caller, clock=service.clock).is_allowed


@way
def batch(service: Service) -> bool:
    [answer] = check_many([Asked(APPROVALS, read_scope(ACME), ALICE)], caller=service.caller, clock=service.clock)
    return not isinstance(answer, Exception) and answer.is_allowed


@way
def record(service: Service) -> bool:
    try:
        queries.get_record(APPROVALS, read_scope(ACME), ALICE, caller=service.caller, now=service.clock.now())
    except NotFound:
        return False
    return True


@way
def list_of_scope(service: Service) -> bool:
    return bool(service.all_in(ACME))


@way
def list_of_tenant(service: Service) -> bool:
    return bool(service.all_in(ACME, is_wide=True))


@way
def list_of_identity(service: Service) -> bool:
    given = {"cursor": None, "limit": 9, "caller": service.caller, "now": service.clock.now()}
    return bool(queries.list_of_holder(APPROVALS, read_scope(ACME), "alice", **given).items)  # type: ignore[arg-type]


@way
def list_of_resource(service: Service) -> bool:
    given = {"cursor": None, "limit": 9, "caller": service.caller, "now": service.clock.now()}
    return bool(queries.list_of_target(APPROVALS, read_scope(ACME), ("docs/1", "GET"), **given).items)  # type: ignore[arg-type]


@way
def list_ending(service: Service) -> bool:
    now = service.clock.now()
    given = {"until": now + timedelta(days=1), "limit": 9, "caller": service.caller, "now": now}
    return bool(list(every(lambda cursor: queries.list_ending(APPROVALS, cursor=cursor, **given))))  # type: ignore[arg-type]


@way
def count(service: Service) -> bool:
    return service.count(ACME) == 1


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_it_counts_until_its_end_and_not_at_it(service: Service, ask: Callable[[Service], bool]) -> None:
    service.grant(*ALICE, scope=ACME, ttl=3_600)
    service.add(*LEAF, scope=ACME, ttl=3_600, kind=RelationType.TRUST)
    service.add("middle", "trusts", "root", scope=ACME, ttl=7_200, kind=RelationType.TRUST)

    told = []
    # A second before the end, at it, one after it, and with the clock set back to before it; the item lies there all the time.
    for seconds in (3_599, 1, 1, -2):
        service.clock.advance(seconds)
        told.append(ask(service))

    assert told == [True, False, False, True]
    assert APPROVALS.get(read_scope(ACME), ALICE) is not None
