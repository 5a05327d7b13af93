"""What the tests of seed 003's own program are called after, each as a behaviour; the examples and its faults are in ``test_records``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from accessportal.authz.operations import set_policy
from accessportal.authz.policy.checks import Answer, Why
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.queries import Asked, check_many, list_of_holder
from accessportal.authz.states import RelationType, TtlPolicy
from accessportal.authz.store import APPROVALS, RELATIONSHIPS, Ledger
from accessportal.kernel.errors import InvalidRequest, PortalError
from accessportal.kernel.pages import every
from tests.authz.conftest import OLGA, Service, program

DAY = 86_400
SCOPES = ("global", "tenant:acme", "env:dev", "env:prod", "tenant:acme:env:dev", "tenant:acme:env:prod", "tenant:widgets:env:dev")
PATH = "custom:region:us-west:zone-a"


def names_of(service: Service, holder: str, scope: str, ledger: Ledger[Any] = RELATIONSHIPS) -> list[tuple[str, str]]:
    fetch = {"caller": service.caller, "now": service.clock.now(), "limit": 3}
    found = every(lambda cursor: list_of_holder(ledger, read_scope(scope), holder, cursor=cursor, **fetch))  # type: ignore[arg-type]
    return [(one.names[1], one.names[2]) for one in found]


def asked(service: Service, *checks: tuple[Ledger[Any], str, str, str], scope: str = "global") -> list[Answer | PortalError]:
    wanted = [Asked(ledger, read_scope(scope), names) for ledger, *names in checks]  # type: ignore[arg-type]
    return check_many(wanted, caller=service.caller, clock=service.clock)


@pytest.mark.parametrize("scope", [*SCOPES, PATH])
def test_what_is_granted_in_one_scope_is_in_no_other(service: Service, scope: str) -> None:
    service.grant("alice", "doc", "GET", scope=scope)
    service.add("alice", "editor", "doc", scope=scope)

    for other in (*SCOPES, PATH, "custom:region:us-west"):
        assert service.check("alice", "doc", "GET", scope=other).is_allowed is (other == scope)
        assert service.check("alice", "editor", "doc", scope=other, ledger=RELATIONSHIPS).is_allowed is (other == scope)
        assert names_of(service, "alice", other) == ([("editor", "doc")] if other == scope else [])
    assert service.check("alice", "doc", "GET", scope=scope).by[0].scope == scope


def test_the_same_name_is_somebody_else_in_another_tenant(service: Service) -> None:
    service.add("alice", "editor", "doc-1", scope="tenant:a")
    service.grant("alice", "doc-1", "UPDATE", scope="tenant:a")
    service.add("alice", "viewer", "doc-1", scope="tenant:b")
    service.grant("alice", "doc-1", "READ", scope="tenant:b")

    assert names_of(service, "alice", "tenant:a") == [("editor", "doc-1")]
    assert names_of(service, "alice", "tenant:b") == [("viewer", "doc-1")]
    assert not service.check("alice", "doc-1", "UPDATE", scope="tenant:b").is_allowed


@pytest.mark.parametrize("ledger", [APPROVALS, RELATIONSHIPS], ids=["approval", "relationship"])
def test_a_record_is_kept_with_its_length_scope_and_metadata(service: Service, ledger: Ledger[Any]) -> None:
    add = service.grant if ledger is APPROVALS else service.add
    made = add("test-user", "api", "POST", scope="tenant:acme:env:dev", ttl=7_200).record

    kept = ledger.get(read_scope("tenant:acme:env:dev"), ("test-user", "api", "POST"))
    assert (kept, kept and kept.ttl_seconds) == (made, 7_200)
    assert made.expires_at == service.clock.now() + timedelta(hours=2)


def test_from_dev_over_staging_to_prod_each_has_its_own_length(service: Service) -> None:
    endless = TtlPolicy(is_enforced=False)
    set_policy(scope=read_scope("tenant:acme:env:prod"), policy=endless, caller=OLGA, now=service.clock.now())
    lengths = {"dev": 3_600, "staging": 7 * DAY, "prod": None}

    for environment, ttl in lengths.items():
        made = service.grant("release", "feature-x", "DEPLOY", scope=f"tenant:acme:env:{environment}", ttl=ttl).record
        assert made.ttl_seconds == ttl
    service.clock.advance(400 * DAY)
    for environment in lengths:
        allowed = service.check("release", "feature-x", "DEPLOY", scope=f"tenant:acme:env:{environment}").is_allowed
        assert allowed is (environment == "prod")


def test_direct_relations_of_several_roles(service: Service) -> None:
    for relation, target in (("editor", "doc-1"), ("viewer", "doc-2"), ("owner", "doc-3"), ("viewer", "doc-1")):
        service.add("alice", relation, target, scope="global")
    service.add("bob", "viewer", "doc-3", scope="global")

    assert sorted(names_of(service, "alice", "global")) == [
        ("editor", "doc-1"),
        ("owner", "doc-3"),
        ("viewer", "doc-1"),
        ("viewer", "doc-2"),
    ]
    for names in (("bob", "editor", "doc-1"), ("alice", "owner", "doc-1"), ("alice", "editor", "doc-12")):
        assert not service.check(*names, scope="global", ledger=RELATIONSHIPS).is_allowed


def test_removed_it_is_gone(service: Service) -> None:
    service.add("alice", "editor", "doc", scope="global")
    service.revoke("alice", "editor", "doc", scope="global", ledger=RELATIONSHIPS)

    assert not service.check("alice", "editor", "doc", scope="global", ledger=RELATIONSHIPS).is_allowed
    assert names_of(service, "alice", "global") == []


@pytest.mark.parametrize("kind", list(RelationType))
def test_only_trust_and_membership_are_a_hierarchy(service: Service, kind: RelationType) -> None:
    for one, other in (("alice", "engineers"), ("engineers", "employees"), ("employees", "everyone")):
        service.add(one, "of", other, scope=PATH, kind=kind)

    assert service.chain("alice", "of", "engineers", scope=PATH).is_allowed
    for depth, target in ((2, "employees"), (3, "everyone")):
        answer = service.chain("alice", "of", target, scope=PATH)
        assert answer.is_allowed is kind.carries
        assert len(answer.by) == (depth if kind.carries else 0)
        assert {one.scope for one in answer.by} <= {PATH}
    assert not service.chain("alice", "of", "contractors", scope=PATH).is_allowed


def test_two_leaves_of_one_root_do_not_trust_each_other(service: Service) -> None:
    for one, other in (("i-1", "root"), ("i-2", "root"), ("cert-1", "i-1"), ("cert-2", "i-2")):
        service.add(one, "trusted_by", other, scope="global", kind=RelationType.TRUST)

    assert service.chain("cert-1", "trusted_by", "root", scope="global").is_allowed
    assert service.chain("cert-2", "trusted_by", "root", scope="global").is_allowed
    assert service.chain("cert-1", "trusted_by", "cert-2", scope="global").why is Why.NONE


def test_a_chain_of_twenty_is_too_deep_and_a_circle_ends(service: Service) -> None:
    for number in range(20):
        service.add(f"node-{number}", "trusted_by", f"node-{number + 1}", scope="global", kind=RelationType.TRUST)
    service.add("a", "trusted_by", "b", scope="global", kind=RelationType.TRUST)
    service.add("b", "trusted_by", "a", scope="global", kind=RelationType.TRUST)

    assert service.chain("node-0", "trusted_by", "node-20", scope="global").why is Why.TOO_DEEP
    assert service.chain("node-12", "trusted_by", "node-20", scope="global").is_allowed
    assert service.chain("a", "trusted_by", "z", scope="global").why is Why.NONE
    # A link to oneself is no way, unless it is there.
    assert service.chain("a", "trusted_by", "a", scope="global").is_allowed
    assert not service.chain("node-1", "trusted_by", "node-1", scope="global").is_allowed


def test_a_batch_answers_each_apart(service: Service) -> None:
    service.grant("alice", "doc-1", "UPDATE", scope="global")
    service.add("alice", "editor", "doc-1", scope="global")
    service.grant("bob", "doc-1", "UPDATE", scope="global", ttl=60)
    service.clock.advance(60)

    assert asked(service) == []
    first, second, third, fourth, bad = asked(
        service,
        (APPROVALS, "alice", "doc-1", "UPDATE"),
        (RELATIONSHIPS, "alice", "editor", "doc-1"),
        (APPROVALS, "bob", "doc-1", "UPDATE"),
        (RELATIONSHIPS, "carol", "owner", "doc-3"),
        (APPROVALS, "", "x" * 10_000, "UPDATE"),
    )
    assert [isinstance(one, Answer) and one.is_allowed for one in (first, second, third, fourth)] == [True, True, False, False]
    assert isinstance(bad, InvalidRequest)
    again = asked(service, *[(APPROVALS, "alice", "doc-1", "UPDATE")] * 100)
    assert again == [first] * 100
    with pytest.raises(InvalidRequest, match="100 is the most"):
        asked(service, *[(APPROVALS, "alice", "doc-1", "UPDATE")] * 101)


def test_a_batch_refuses_alone_what_is_outside_the_callers_scope(service: Service) -> None:
    service.grant("alice", "doc", "GET", scope="tenant:acme")
    wanted = [Asked(APPROVALS, read_scope(scope), ("alice", "doc", "GET")) for scope in ("tenant:acme", "tenant:acme-corp", "global")]

    mine, *others = check_many(wanted, caller=program("tenant:acme"), clock=service.clock)

    assert isinstance(mine, Answer)
    assert mine.is_allowed
    assert [isinstance(one, PortalError) and one.code for one in others] == ["UnauthorizedScopeAccess"] * 2


def test_a_large_set_is_listed_and_counted_whole(service: Service) -> None:
    for number in range(60):
        service.add("alice", "viewer", f"docs/{number}", scope="tenant:acme")
        service.add(f"user-{number}", "member", "team", scope="tenant:acme", kind=RelationType.MEMBERSHIP)

    assert len(names_of(service, "alice", "tenant:acme")) == 60
    assert service.count("tenant:acme", ledger=RELATIONSHIPS) == 120
    assert len(service.all_in("tenant:acme", ledger=RELATIONSHIPS, limit=50)) == 120
