"""The examples of seed 003 and the faults of its own program, on the tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.authz import config, queries
from accessportal.authz.config import AuthzSettings
from accessportal.authz.models import ApprovalItem
from accessportal.authz.operations import (
    IfExists,
    begin_deletion,
    carry_out_deletions,
    granting,
    hold,
    let_go,
    move_records,
    set_policy,
    sweep,
)
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.states import (
    PRESETS,
    Approval,
    NoSuchRecord,
    Relationship,
    RelationType,
    ScopeDeleting,
    ScopeState,
    TtlPolicy,
    UnauthorizedScopeAccess,
)
from accessportal.authz.store import APPROVALS, RELATIONSHIPS, Ledger
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.kernel.pages import UnreadableItem, every
from accessportal.kernel.proofs import Proof
from tests.authz.conftest import ANA, OLGA, Service, program

DAY = 86_400


def test_example_1_tenants_do_not_see_each_other(service: Service) -> None:
    service.grant("alice@acme.com", "document-1", "GET", scope="tenant:acme-corp", ttl=DAY)
    service.grant("bob@widgets.com", "document-1", "GET", scope="tenant:widgets-inc", ttl=DAY)

    assert service.all_in("tenant:acme-corp") == {("tenant:acme-corp", "alice@acme.com", "document-1", "GET")}
    assert service.all_in("tenant:widgets-inc") == {("tenant:widgets-inc", "bob@widgets.com", "document-1", "GET")}
    assert service.check("alice@acme.com", "document-1", "GET", scope="tenant:acme-corp").is_allowed
    assert not service.check("alice@acme.com", "document-1", "GET", scope="tenant:widgets-inc").is_allowed


def test_example_2_environments_have_ends_of_their_own(service: Service) -> None:
    short = service.grant("test-user", "api-endpoint", "POST", scope="tenant:acme-corp:env:dev", ttl=3_600).record
    long = service.grant("service-account", "api-endpoint", "POST", scope="tenant:acme-corp:env:prod", ttl=30 * DAY).record

    assert short.expires_at == service.clock.now() + timedelta(hours=1)
    assert long.expires_at == service.clock.now() + timedelta(days=30)


def test_example_3_what_is_over_is_gone_and_then_tidied_away(service: Service) -> None:
    record = service.grant("temp-user", "resource", "GET", scope="tenant:acme-corp", ttl=3_600).record
    names = record.names
    service.clock.advance(3_600)

    assert not service.check(*names, scope="tenant:acme-corp").is_allowed
    assert service.all_in("tenant:acme-corp") == set()
    assert service.count("tenant:acme-corp") == 0
    assert APPROVALS.get(record.scope, names) is not None
    assert sweep(actor=system("sweep_authz"), clock=service.clock).counts == {"removed": 1, "failed": 0}
    assert APPROVALS.get(record.scope, names) is None
    assert [event.action for event in audit.history(record.entity).items] == ["approval.expired", "approval.granted"]


def test_example_4_two_editors_of_one_document_in_two_tenants(service: Service) -> None:
    service.add("alice", "editor", "document-123", scope="tenant:acme-corp", ttl=30 * DAY)
    service.add("bob", "editor", "document-123", scope="tenant:widgets-inc", ttl=30 * DAY)

    for one, scope in (("alice", "tenant:acme-corp"), ("bob", "tenant:widgets-inc")):
        assert service.check(one, "editor", "document-123", scope=scope, ledger=RELATIONSHIPS).is_allowed
        found = queries.list_of_target(
            RELATIONSHIPS, read_scope(scope), ("document-123",), cursor=None, limit=9, caller=ANA, now=service.clock.now()
        )
        assert [record.subject for record in found.items] == [one]


@pytest.mark.parametrize(
    ("scope", "names", "key"),
    [
        (
            "tenant:acme-corp",
            ("alice", "https://api.example.com/data", "GET"),
            "approvals:tenant:acme-corp:alice:https://api.example.com/data:GET",
        ),
        (
            "tenant:acme-corp:env:prod",
            ("bob", "https://api.example.com/admin", "POST"),
            "approvals:tenant:acme-corp:env:prod:bob:https://api.example.com/admin:POST",
        ),
        ("global", ("bot-123", "https://api.example.com/data", "GET"), "approvals:global:bot-123:https://api.example.com/data:GET"),
    ],
)
def test_other_programs_read_the_seeds_keys(service: Service, scope: str, names: tuple[str, str, str], key: str) -> None:
    assert service.grant(*names, scope=scope).record.key == key
    item = APPROVALS.model.get(*granting_key(scope, names))
    assert (item.key, item.scope) == (key, scope)


def granting_key(scope: str, names: tuple[str, str, str]) -> tuple[str, str]:
    from accessportal.authz.store import key_of

    return key_of(read_scope(scope), names)


def test_the_key_of_a_relationship(service: Service) -> None:
    made = service.add("alice", "editor", "document-123", scope="tenant:widgets-inc")

    assert made.record.key == "relationships:tenant:widgets-inc:alice:editor:document-123"


def test_a_separator_in_a_name_makes_no_two_records_one(service: Service) -> None:
    service.grant("a:b", "c", "GET", scope="global")

    assert not service.check("a", "b:c", "GET", scope="global").is_allowed
    service.grant("a", "b:c", "GET", scope="global")
    service.revoke("a:b", "c", "GET", scope="global")
    assert service.check("a", "b:c", "GET", scope="global").is_allowed
    for name in ("a#b", "a%23b", "a!b", "a$b"):
        service.grant(name, "c", "GET", scope="global")
    assert service.count("global") == 5


def test_a_caller_reaches_its_own_tenant_alone(service: Service) -> None:
    service.grant("alice", "doc", "GET", scope="tenant:acme:env:prod")
    acme, other = replace(service, caller=program("tenant:acme")), replace(service, caller=program("tenant:acme-corp"))

    assert acme.check("alice", "doc", "GET", scope="tenant:acme:env:prod").is_allowed
    assert acme.all_in("tenant:acme", is_wide=True) == {("tenant:acme:env:prod", "alice", "doc", "GET")}
    for call in (other.check, other.grant, other.revoke):
        with pytest.raises(UnauthorizedScopeAccess):
            call("alice", "doc", "GET", scope="tenant:acme:env:prod")
    with pytest.raises(UnauthorizedScopeAccess):
        other.all_in("tenant:acme", is_wide=True)


def test_lists_of_every_scope_are_not_for_who_is_bound_to_one(service: Service) -> None:
    service.grant("alice", "doc", "GET", scope="tenant:acme")
    now = service.clock.now()
    ending = partial(queries.list_ending, APPROVALS, until=now + timedelta(days=1), limit=9, now=now)
    scopes = partial(queries.list_scopes, limit=9)

    for fetch in (ending, scopes):
        assert [one.scope for one in every(lambda cursor, fetch=fetch: fetch(cursor=cursor, caller=ANA))] == ["tenant:acme"]  # type: ignore[misc]
        with pytest.raises(UnauthorizedScopeAccess):
            fetch(cursor=None, caller=program("tenant:acme"))


def test_who_may_only_ask_changes_nothing(service: Service) -> None:
    auditor = replace(service, caller=ANA)
    with pytest.raises(NotAllowed, match="ask here"):
        auditor.grant("alice", "doc", "GET", scope="tenant:acme")

    service.grant("alice", "doc", "GET", scope="tenant:acme")
    assert auditor.check("alice", "doc", "GET", scope="tenant:acme").is_allowed


@pytest.mark.parametrize("ledger", [APPROVALS, RELATIONSHIPS], ids=["approval", "relationship"])
def test_revoked_in_one_scope_it_stays_in_the_other(service: Service, ledger: Ledger[Any]) -> None:
    names = ("alice", "doc", "GET")
    for scope in ("tenant:acme", "tenant:acme:env:prod"):
        (service.grant if ledger is APPROVALS else service.add)(*names, scope=scope)

    service.revoke(*names, scope="tenant:acme", ledger=ledger)

    assert not service.check(*names, scope="tenant:acme", ledger=ledger).is_allowed
    assert service.check(*names, scope="tenant:acme:env:prod", ledger=ledger).is_allowed
    with pytest.raises(NoSuchRecord):
        service.revoke(*names, scope="tenant:acme", ledger=ledger)


def test_granting_again_goes_on_with_the_chain_of_events(service: Service) -> None:
    first = service.grant("alice", "doc", "GET", scope="tenant:acme").record
    service.revoke("alice", "doc", "GET", scope="tenant:acme")

    again = service.grant("alice", "doc", "GET", scope="tenant:acme").record

    assert again.version == 3
    assert audit.check_head(first.entity, version=again.version, audit_head=again.audit_head) == []


def test_granting_what_is_there_is_refused_extended_or_replaced_as_said(service: Service) -> None:
    service.grant("alice", "doc", "GET", scope="tenant:acme", ttl=7_200)

    with pytest.raises(Conflict) as refused:
        service.grant("alice", "doc", "GET", scope="tenant:acme")
    assert refused.value.code == "exists"
    # Extending never makes it shorter; replacing does.
    kept = service.grant("alice", "doc", "GET", scope="tenant:acme", ttl=60, if_exists=IfExists.EXTEND)
    assert kept.record.expires_at == service.clock.now() + timedelta(hours=2)
    replaced = service.grant("alice", "doc", "GET", scope="tenant:acme", ttl=60, if_exists=IfExists.REPLACE)
    assert replaced.record.expires_at == service.clock.now() + timedelta(minutes=1)


def test_extending_is_told_with_both_ends(service: Service) -> None:
    record = service.grant("alice", "doc", "GET", scope="tenant:acme").record
    old = service.clock.now() + timedelta(hours=1)
    service.clock.advance(600)

    granting.extend(APPROVALS, record.scope, record.names, ttl_seconds=7_200, caller=service.caller, now=service.clock.now())

    event = audit.history(record.entity).items[0]
    new = service.clock.now() + timedelta(hours=2)
    assert (event.action, event.data["old_expires_at"], event.data["expires_at"]) == (
        "approval.extended",
        int(old.timestamp()),
        int(new.timestamp()),
    )


def test_the_policy_of_the_nearest_scope_is_enforced_and_has_a_history(service: Service) -> None:
    acme = read_scope("tenant:acme")
    set_policy(scope=acme, policy=PRESETS["temporary"], caller=service.caller, now=service.clock.now())

    with pytest.raises(InvalidRequest) as refused:
        service.grant("alice", "doc", "GET", scope="tenant:acme:env:prod", ttl=2 * DAY)
    assert "the policy of tenant:acme" in refused.value.message
    assert service.grant("alice", "doc", "GET", scope="tenant:acme:env:prod", ttl=None).record.ttl_seconds == 3_600

    set_policy(scope=acme, policy=TtlPolicy(3_600, 60, DAY, is_enforced=False), caller=service.caller, now=service.clock.now())
    made = service.grant("alice", "doc2", "GET", scope="tenant:acme:env:prod", ttl=2 * DAY)
    assert (made.record.ttl_seconds, len(made.warnings)) == (2 * DAY, 1)
    assert [event.action for event in audit.history("scope#tenant:acme").items] == ["authz_scope.policy_set"] * 2


def test_a_chain_never_leaves_its_scope(service: Service) -> None:
    trust = RelationType.TRUST
    service.add("leaf", "trusts", "middle", scope="tenant:acme", kind=trust)
    service.add("middle", "trusts", "root", scope="tenant:other", kind=trust)
    assert not service.chain("leaf", "trusts", "root", scope="tenant:acme").is_allowed

    service.add("middle", "trusts", "root", scope="tenant:acme", kind=trust, ttl=60)
    assert [one.names[0] for one in service.chain("leaf", "trusts", "root", scope="tenant:acme").by] == ["leaf", "middle"]
    service.clock.advance(60)
    assert not service.chain("leaf", "trusts", "root", scope="tenant:acme").is_allowed


def test_every_match_of_a_set_is_looked_at(service: Service) -> None:
    service.grant("alice", "docs/1", "GET", scope="global", ttl=60)
    service.grant("alice", "docs/2", "GET", scope="global", ttl=7_200)
    service.grant("alice", "docs2/1", "GET", scope="global", ttl=7_200)
    service.clock.advance(60)

    def asked(resource: str) -> bool:
        names = ("alice", resource, "GET")
        return queries.check_set(APPROVALS, read_scope("global"), names, caller=service.caller, clock=service.clock).is_allowed

    assert asked("docs/*")
    assert not asked("docs/1")
    assert not asked("docs2/1/*")
    service.revoke("alice", "docs/2", "GET", scope="global")
    assert not asked("docs/*")


def test_a_scope_is_deleted_whole_and_its_neighbours_not_touched(service: Service) -> None:
    for number in range(7):
        service.grant(f"alice{number}", "doc", "GET", scope="tenant:acme")
        service.grant(f"alice{number}", "doc", "GET", scope="tenant:acme-corp")
    service.grant("alice", "doc", "GET", scope="tenant:acme:env:prod")
    service.add("alice", "editor", "doc", scope="tenant:acme")
    acme = read_scope("tenant:acme")
    with pytest.raises(InvalidRequest):
        begin_deletion(scope=acme, typed="acme", caller=service.caller, now=service.clock.now())

    begun = begin_deletion(scope=acme, typed="tenant:acme", caller=service.caller, now=service.clock.now())

    for names in (("alice0", "doc", "PUT"), ("alice0", "doc", "GET")):
        with pytest.raises(ScopeDeleting):
            service.grant(*names, scope="tenant:acme", if_exists=IfExists.REPLACE)
    go_on = partial(carry_out_deletions, actor=system("delete_scopes"), clock=service.clock, workers=1)
    report = go_on()
    # Indexes may lag: what was granted right before is looked for a minute later.
    assert (report.removed, report.deleted, report.under_way) == (8, (), 1)
    service.clock.advance(60)
    assert go_on().deleted == ("tenant:acme",)
    (receipt,) = [event for event in audit.history(begun.entity).items if event.action == "authz_scope.deleted"]
    assert receipt.data["records"] == 8
    assert go_on().counts == {"removed": 0, "deleted": 0, "under_way": 0, "failed": 0}
    assert (service.count("tenant:acme"), service.count("tenant:acme", ledger=RELATIONSHIPS)) == (0, 0)
    assert (service.count("tenant:acme-corp"), service.count("tenant:acme:env:prod")) == (7, 1)
    # A new grant opens it again.
    assert service.grant("alice0", "doc", "GET", scope="tenant:acme").record.version == 3


def test_lists_of_custom_scopes_hold_what_lies_below_and_no_neighbour(service: Service) -> None:
    scopes = ("custom:a", "custom:a:b", "custom:a:b:c", "custom:a:b-c", "custom:a:b.c", "custom:a:b2", "custom:ab")
    for scope in scopes:
        service.grant("alice", "doc", "GET", scope=scope)

    assert service.all_in("custom:a:b") == {("custom:a:b", "alice", "doc", "GET")}
    assert {one[0] for one in service.all_in("custom:a:b", is_wide=True)} == {"custom:a:b", "custom:a:b:c"}
    assert {one[0] for one in service.all_in("custom:a", is_wide=True)} == set(scopes) - {"custom:ab"}
    assert service.count("custom:a", is_wide=True) == 6


def test_what_was_never_asked_of_the_store_is_refused_by_field(service: Service) -> None:
    for names, field in (
        (("", "doc", "GET"), "identity"),
        (("alice", "x" * 10_000, "GET"), "resource"),
        (("alice", "doc", "GE\u202eT"), "action"),
        (("alice", "é" * 400, "é" * 400), "action"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            service.grant(*names, scope="global")
        assert refused.value.field == field
    assert isinstance(service.grant("alice", "doc", "GET", scope="global").record, Approval)


def test_a_relation_is_neither_extended_as_another_type_nor_replaced_by_one_while_a_request_holds_it(service: Service) -> None:
    def wanted(kind: RelationType) -> Relationship:
        return Relationship(read_scope("tenant:acme"), "alice", "editor", "docs/1", kind, "olga", service.clock.now())

    def grant(if_exists: IfExists) -> None:
        now = service.clock.now()
        granting.grant(RELATIONSHIPS, wanted(RelationType.TRUST), ttl_seconds=600, if_exists=if_exists, caller=OLGA, now=now)

    service.add("alice", "editor", "docs/1", scope="tenant:acme")
    with pytest.raises(Conflict) as refused:
        grant(IfExists.EXTEND)
    assert refused.value.code == "other_relation_type"

    week = service.clock.now() + timedelta(days=7)
    hold(RELATIONSHIPS, wanted(RelationType.ROLE), claim="r1", ends_at=week, guards=(), actor=OLGA.actor, clock=service.clock)
    with pytest.raises(Conflict) as refused:
        grant(IfExists.REPLACE)
    assert refused.value.code == "other_relation_type"
    (found,) = service.check("alice", "editor", "docs/1", scope="tenant:acme", ledger=RELATIONSHIPS).by
    assert isinstance(found, Relationship)
    assert found.relation_type is RelationType.ROLE


def test_where_the_global_scope_is_refused_no_request_holds_there_either(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been asked before the setting changed."""
    wanted = Approval(read_scope("global"), "alice", "doc", "GET", "bob", service.clock.now())
    hold_it = partial(hold, APPROVALS, wanted, ends_at=service.clock.now() + timedelta(hours=1), guards=(), actor=OLGA.actor)
    hold_it(claim="before", clock=service.clock)
    monkeypatch.setattr(config._settings, "_value", AuthzSettings(global_scope="refuse"))

    with pytest.raises(InvalidRequest) as refused:
        hold_it(claim="later", clock=service.clock)
    assert refused.value.code == "scope_required"
    assert isinstance(hold_it(claim="before", clock=service.clock), Proof)
    (record,) = service.check("alice", "doc", "GET", scope="global").by
    assert list(record.held_until) == ["before"]


def test_what_another_program_wrote_stays_when_a_request_that_held_it_too_ends(service: Service) -> None:
    """It says nothing of holders, and counts until its own end."""
    record = service.grant("alice", "doc", "GET", scope="tenant:acme", ttl=7_200).record
    ApprovalItem("tenant:acme#alice", "doc#GET").update(actions=[ApprovalItem.held_until.remove()])
    soon = service.clock.now() + timedelta(hours=1)

    hold(APPROVALS, record, claim="r1", ends_at=soon, guards=(), actor=OLGA.actor, clock=service.clock)
    assert service.check("alice", "doc", "GET", scope="tenant:acme").until == record.expires_at
    proof = let_go(APPROVALS, record.scope, record.names, claim="r1", actor=OLGA.actor, clock=service.clock)

    assert proof.kept_by == ("direct",)
    assert service.check("alice", "doc", "GET", scope="tenant:acme").until == record.expires_at


def test_nothing_is_brought_into_the_global_scope_where_grants_there_are_refused(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service.grant("alice", "doc", "GET", scope="tenant:acme")
    monkeypatch.setattr(config._settings, "_value", AuthzSettings(global_scope="refuse"))

    with pytest.raises(InvalidRequest) as refused:
        move_records(source=read_scope("tenant:acme"), to=read_scope("global"), apply=True, caller=OLGA, clock=service.clock)
    assert refused.value.code == "scope_required"
    assert service.count("tenant:acme") == 1


def test_a_policy_opens_a_deleted_scope_as_a_grant_does(service: Service) -> None:
    acme = read_scope("tenant:acme")
    service.grant("alice", "doc", "GET", scope=acme)
    begin_deletion(scope=acme, typed=acme, caller=OLGA, now=service.clock.now())
    service.clock.advance(60)
    carry_out_deletions(actor=system("delete_scopes"), clock=service.clock, workers=1)

    facts = set_policy(scope=acme, policy=PRESETS["temporary"], caller=OLGA, now=service.clock.now())
    assert (facts.state, facts.removed, facts.deleting_since) == (ScopeState.OPEN, 0, None)


@pytest.mark.parametrize("name", ["", "\u200b"])
def test_metadata_without_a_name_is_refused(service: Service, name: str) -> None:
    wanted = Approval(read_scope("tenant:acme"), "bot", "data", "GET", "olga", service.clock.now(), metadata={name: "x"})
    with pytest.raises(InvalidRequest) as refused:
        granting.grant(APPROVALS, wanted, ttl_seconds=600, caller=OLGA, now=service.clock.now())
    assert refused.value.field == "metadata"


@pytest.mark.parametrize("name", ["self", "_user_instantiated", "null", "default", "attribute_values"])
def test_metadata_may_have_any_name(service: Service, name: str) -> None:
    wanted = Approval(read_scope("tenant:acme"), "bot", "data", "GET", "olga", service.clock.now(), metadata={name: "x"})
    granting.grant(APPROVALS, wanted, ttl_seconds=600, caller=OLGA, now=service.clock.now())
    (found,) = service.check("bot", "data", "GET", scope="tenant:acme").by
    assert found.metadata == {name: "x"}


def test_in_a_batch_what_can_not_be_read_is_no_no_whatever_the_others_are_called(service: Service) -> None:
    one, other = ("a", "b, c", "GET"), ("a, b", "c", "GET")
    service.grant(*one, scope="global")
    ApprovalItem("global#a", "b, c#GET").update(actions=[ApprovalItem.identity.set("mallory")])
    asked = [queries.Asked(APPROVALS, read_scope("global"), names) for names in (one, other)]
    assert isinstance(queries.check_many(asked, caller=OLGA, clock=service.clock)[0], UnreadableItem)


def test_extended_without_a_length_it_lasts_as_long_as_it_may(service: Service) -> None:
    began_at = service.grant("bot", "data", "GET", scope="tenant:acme").record.granted_at
    service.clock.advance(60)
    scope, now = read_scope("tenant:acme"), service.clock.now()
    longest = granting.extend(APPROVALS, scope, ("bot", "data", "GET"), ttl_seconds=None, caller=OLGA, now=now).record
    assert (longest.expires_at, longest.ttl_seconds) == (began_at + timedelta(days=365), 365 * DAY - 60)
