"""What the tests of seed 003's own program are called after, each as a behaviour; ``BEHAVIOURS`` tells which test here shows it."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from accessportal.authz.operations import IfExists, set_policy
from accessportal.authz.policy.checks import Answer, Why
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.queries import Asked, check_many, check_set, get_record, list_of_holder
from accessportal.authz.states import NoSuchRecord, RelationType, TtlPolicy
from accessportal.authz.store import APPROVALS, RELATIONSHIPS, Ledger
from accessportal.kernel.errors import Conflict, InvalidRequest, PortalError
from accessportal.kernel.pages import every
from tests.authz.conftest import OLGA, Service, program

DAY = 86_400
SCOPES = ("global", "tenant:acme", "env:dev", "env:prod", "tenant:acme:env:dev", "tenant:acme:env:prod", "tenant:widgets:env:dev")
PATH = "custom:region:us-west:zone-a"
EITHER = pytest.mark.parametrize("ledger", [APPROVALS, RELATIONSHIPS], ids=["approval", "relationship"])
ODD = "https://api.example.com/Data?foo=bar&baz=qux#anchor"


def names_of(service: Service, holder: str, scope: str, ledger: Ledger[Any] = RELATIONSHIPS) -> list[tuple[str, str]]:
    fetch = {"caller": service.caller, "now": service.clock.now(), "limit": 3}
    found = every(lambda cursor: list_of_holder(ledger, read_scope(scope), holder, cursor=cursor, **fetch))  # type: ignore[arg-type]
    return [(one.names[1], one.names[2]) for one in found]


def add(service: Service, ledger: Ledger[Any], *names: str, scope: str = "global", **how: Any) -> Any:
    return (service.grant if ledger is APPROVALS else service.add)(*names, scope=scope, **how)


def asked(service: Service, *checks: tuple[Ledger[Any], str, str, str], scope: str = "global") -> list[Answer | PortalError]:
    wanted = [Asked(ledger, read_scope(scope), names) for ledger, *names in checks]  # type: ignore[arg-type]
    return check_many(wanted, caller=service.caller, clock=service.clock)


@pytest.mark.parametrize("scope", [*SCOPES, PATH])
def test_what_is_granted_in_one_scope_is_in_no_other(service: Service, scope: str) -> None:
    service.grant("alice", "doc", "GET", scope=scope)
    service.add("alice", "editor", "doc", scope=scope)

    for other in (*SCOPES, PATH, "custom:region:us-west", "custom:region:eu-west:zone-a"):
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


@EITHER
def test_a_record_is_kept_with_its_giver_length_scope_and_metadata(service: Service, ledger: Ledger[Any]) -> None:
    why = {"ticket": "T-456", "justification": "Clean up after a fault", "department": "engineering", "scope_of_work": "all"}
    made = add(service, ledger, "test-user", "api", "POST", scope="tenant:acme:env:dev", ttl=7_200, **why).record

    kept = get_record(ledger, read_scope("tenant:acme:env:dev"), made.names, caller=OLGA, now=service.clock.now())
    assert (kept, kept.ttl_seconds, kept.metadata, kept.names) == (made, 7_200, why, ("test-user", "api", "POST"))
    assert made.expires_at == service.clock.now() + timedelta(hours=2)
    assert OLGA.actor.name in (getattr(kept, "granted_by", ""), getattr(kept, "created_by", ""))


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


@EITHER
def test_each_record_counts_by_itself(service: Service, ledger: Ledger[Any]) -> None:
    for verb, thing in (("editor", "doc-1"), ("viewer", "doc-2"), ("owner", "doc-3"), ("viewer", "doc-1")):
        add(service, ledger, "alice", verb, thing)
    add(service, ledger, "bob", "viewer", "doc-3")

    assert sorted(names_of(service, "alice", "global", ledger)) == [
        ("editor", "doc-1"),
        ("owner", "doc-3"),
        ("viewer", "doc-1"),
        ("viewer", "doc-2"),
    ]
    assert names_of(service, "bob", "global", ledger) == [("viewer", "doc-3")]
    for names in (("bob", "editor", "doc-1"), ("alice", "owner", "doc-1"), ("alice", "editor", "doc-12")):
        assert not service.check(*names, scope="global", ledger=ledger).is_allowed


@EITHER
def test_it_counts_from_its_grant_until_it_is_removed_or_over(service: Service, ledger: Ledger[Any]) -> None:
    names, told = ("bot", "reads", "data"), []
    for act in (
        lambda: None,
        lambda: add(service, ledger, *names),
        lambda: service.revoke(*names, scope="global", ledger=ledger),
        lambda: add(service, ledger, *names, ttl=60),
        lambda: service.clock.advance(60),
    ):
        act()
        told.append((service.check(*names, scope="global", ledger=ledger).is_allowed, len(names_of(service, "bot", "global", ledger))))

    assert told == [(False, 0), (True, 1), (False, 0), (True, 1), (False, 0)]


@EITHER
def test_what_was_never_granted_is_not_there_and_what_is_granted_again_counts_once(service: Service, ledger: Ledger[Any]) -> None:
    with pytest.raises(NoSuchRecord):
        get_record(ledger, read_scope("global"), ("bot-1", "a", "b"), caller=OLGA, now=service.clock.now())
    assert (service.all_in("global", ledger=ledger), names_of(service, "bot-1", "global", ledger)) == (set(), [])

    counts = [service.count("global", ledger=ledger)]
    for who, again in (("bot-1", "refuse"), ("bot-2", "refuse"), ("bot-1", "extend"), ("bot-1", "replace")):
        add(service, ledger, who, "a", "b", if_exists=IfExists(again))
        counts.append(service.count("global", ledger=ledger))
    with pytest.raises(Conflict):
        add(service, ledger, "bot-1", "a", "b")
    assert counts == [0, 1, 2, 2, 2]


@EITHER
def test_only_the_very_same_names_count_and_nothing_in_them_is_read(service: Service, ledger: Ledger[Any]) -> None:
    """Neither the case of letters nor what another program would take for its own language is looked at."""
    names = ("bot'; DROP TABLE Approvals; --", ODD, "Get")
    add(service, ledger, *names)

    assert service.check(*names, scope="global", ledger=ledger).is_allowed
    assert service.all_in("global", ledger=ledger) == {("global", *names)}
    for number, wrong in itertools.product(range(3), (str.upper, str.lower, lambda name: name + "x", lambda name: name[:-1])):
        others = [*names[:number], wrong(names[number]), *names[number + 1 :]]
        assert not service.check(*others, scope="global", ledger=ledger).is_allowed, others


# What is no other name, and could be taken for one, is said and never kept; the seed's program kept all but the empty one.
@EITHER
@pytest.mark.parametrize("name", ["", " bot", "bot ", "bo\0t", "cafe\u0301", "b" * 10_000], ids=ascii)
def test_a_name_that_can_not_be_is_refused_in_each_place(service: Service, ledger: Ledger[Any], name: str) -> None:
    for number, field in enumerate(ledger.fields):
        names = [*("a", "b", "c")[:number], name, *("a", "b", "c")[number + 1 :]]
        for ask in (partial(add, service, ledger, *names), partial(service.check, *names, scope="global", ledger=ledger)):
            with pytest.raises(InvalidRequest) as refused:
                ask()
            assert refused.value.field == field


@EITHER
def test_of_many_with_one_thing_each_is_in_the_set_and_a_stranger_or_another_scope_is_not(service: Service, ledger: Ledger[Any]) -> None:
    names = ("docs/1", "GET") if ledger is APPROVALS else ("reads", "docs/1")
    for number in range(3):
        add(service, ledger, f"bot-{number}", *names, scope="tenant:acme")

    def is_in(who: str, scope: str, thing: str) -> bool:
        wanted = (who, *(thing if name == "docs/1" else name for name in names))
        return check_set(ledger, read_scope(scope), wanted, caller=OLGA, clock=service.clock).is_allowed  # type: ignore[arg-type]

    for thing in ("docs/1", "docs/*"):
        assert [is_in(who, "tenant:acme", thing) for who in ("bot-0", "bot-2", "bot-3", "bot-")] == [True, True, False, False]
        assert not is_in("bot-0", "tenant:other", thing)


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


# The test that shows it → what the program's own tests are called after. In brackets: where ours is stricter on purpose.
BEHAVIOURS: Mapping[str, tuple[str, ...]] = {
    "test_it_counts_from_its_grant_until_it_is_removed_or_over": (
        "a bot without an approval may not",
        "a bot with an approval may",
        "a revoked approval is a no",
        "an approval that is over is a no",
        "an approval whose end lies ahead is a yes",
        "an approval's life: no, granted, revoked, granted for a time, over",
        "a relationship that is over does not count",
        "a relationship that was removed does not count",
    ),
    "test_deadlines.test_it_counts_until_its_end_and_not_at_it": ("at the very moment of its end it is over",),
    "test_each_record_counts_by_itself": (
        "another bot may not",
        "another resource is a no",
        "another action is a no",
        "several approvals of one identity, each by itself",
        "bots and resources side by side, each with its own",
        "the approvals of an identity are listed, others' are not",
        "a direct role: another subject or relation does not have it",
        "several roles of one subject",
        "the relationships of a subject are listed",
        "people and bots alike",
    ),
    "test_only_the_very_same_names_count_and_nothing_in_them_is_read": (
        "the case of an identity matters",
        "the case of a resource matters",
        "the case of an action matters",
        "special characters of a URL are taken literally",
        "what looks like SQL is taken literally, and the table lives",
    ),
    "test_a_name_that_can_not_be_is_refused_in_each_place": (
        "an empty identity, resource or action is refused",
        "an empty subject, relation or object is refused",
        "a NUL in an identity makes it no other one (refused)",
        "two Unicode spellings are not taken for one (all but NFC is refused)",
        "blanks around a name are not left out in silence (refused)",
        "a very long identity (refused)",
        "a very long resource (refused)",
    ),
    "tests.api.test_authz.test_bad_input_names_its_field": ("metadata of a megabyte (refused)",),
    "test_a_record_is_kept_with_its_giver_length_scope_and_metadata": (
        "an approval tells its names and who granted it",
        "a relationship tells its names and who made it",
        "an approval keeps its metadata",
        "a relationship keeps its metadata",
        "metadata with several entries",
        "metadata as a trail for an audit",
        "an approval with a length has an end",
        "a relationship with a length has an end",
        "a length sets the end from now on",
        "an approval with scope and length together",
        "a relationship with scope and length together",
        "scope, length and metadata at once",
    ),
    "test_what_was_never_granted_is_not_there_and_what_is_granted_again_counts_once": (
        "to get an approval that is not there finds none",
        "to get a relationship that is not there finds none",
        "an empty table counts none",
        "an empty list",
        "approvals are counted; the same one again is one",
        "relationships are counted",
    ),
    "test_of_many_with_one_thing_each_is_in_the_set_and_a_stranger_or_another_scope_is_not": (
        "in the set of the approved, among many",
        "a stranger is not in the set",
        "in the set of one scope, and not of another",
    ),
    "test_a_batch_answers_each_apart": (
        "a batch of approvals, yes and no mixed",
        "a batch of relationships, yes and no mixed",
        "an empty batch",
        "an approval and a relationship asked together",
    ),
    "test_a_large_set_is_listed_and_counted_whole": ("many approvals, counted and found", "a large graph of relationships"),
    "tests.api.test_authz.test_a_store_that_does_not_answer_is_neither_yes_nor_no": (
        "no store of approvals is an error, and no answer",
        "no store of relationships is an error, and no answer",
    ),
    "tests.engine.test_authz.test_whatever_many_do_at_once_every_answer_is_what_the_events_tell": (
        "the same approval granted by many at once is one",
        "granting and revoking at once ends in one of both",
    ),
    "test_what_is_granted_in_one_scope_is_in_no_other": (
        "approvals are kept apart by tenant",
        "approvals are kept apart by environment",
        "approvals are kept apart by tenant and environment",
        "approvals are kept apart by path",
        "relationships are kept apart by tenant",
        "relationships are kept apart by environment",
        "relationships are kept apart by tenant and environment",
        "relationships are kept apart by path",
        "approvals are listed by scope, and the global one holds none of a tenant's",
        "relationships are listed by scope, and the global one holds none of a tenant's",
        "a relationship is got from its own scope alone",
        "without a scope it is in the global one (the scope is always named; a setting refuses the global one)",
    ),
    "test_the_same_name_is_somebody_else_in_another_tenant": ("two tenants with both stores and one name",),
    "test_records.test_revoked_in_one_scope_it_stays_in_the_other": (
        "an approval revoked in one scope stays in the other",
        "a relationship removed from one scope stays in the other",
    ),
    "test_scopes.test_a_scope_is_the_text_that_it_is_read_from": ("the texts of the five scopes",),
    "test_records.test_other_programs_read_the_seeds_keys": ("the key of an approval has its scope in it",),
    "test_ends.test_the_default_policy_of_the_seed": ("the default limits",),
    "test_ends.test_the_presets_of_the_seed": ("the preset temporary", "the preset short_lived", "the preset long_lived"),
    "test_ends.test_what_is_granted_without_a_length": ("without a length there is no end (where the policy only advises)",),
    "test_from_dev_over_staging_to_prod_each_has_its_own_length": ("promotion from environment to environment",),
    "test_only_trust_and_membership_are_a_hierarchy": (
        "a chain of trust over two levels, and its direct link",
        "a chain of trust over three levels",
        "a hierarchy of memberships, and no group outside it",
        "a role does not chain",
        "delegation does not chain",
        "ownership does not chain",
        "a type of one's own stands, and does not chain",
        "which of the types carry",
        "a chain within a path",
        "no way is a plain no",
    ),
    "tests.api.test_authz.test_relationships_are_granted_and_chained": ("the types are told by their words",),
    "test_checks.test_two_and_three_levels": ("a way is told link by link, in order",),
    "test_records.test_a_chain_never_leaves_its_scope": (
        "a chain within a tenant",
        "the search for a way (leaves no scope; the program's did)",
    ),
    "test_checks.test_a_link_that_is_over_carries_nothing": ("a link that is over breaks the chain",),
    "test_two_leaves_of_one_root_do_not_trust_each_other": ("two leaves of one root trust it, and not each other",),
    "test_a_chain_of_twenty_is_too_deep_and_a_circle_ends": ("too deep is no yes", "a circle comes to its end"),
    "test_checks.test_too_deep_is_a_no_with_the_reason": ("the depth can be chosen",),
    "test_checks.test_the_shortest_way_is_told": ("the shortest of several ways is told",),
}


def test_each_behaviour_of_the_program_has_its_test() -> None:
    told = [one for behaviours in BEHAVIOURS.values() for one in behaviours]
    assert len(set(told)) == len(told)
    for name in BEHAVIOURS:
        module, _, test = name.rpartition(".")
        home = module if module.startswith("tests.") else f"tests.authz.{module or 'test_seed_program'}"
        assert callable(getattr(importlib.import_module(home), test)), name
