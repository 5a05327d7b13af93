"""Forgeries by boto3 on the tables, each found by verify_audit with its entity and the event that tells otherwise; and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from accessportal.access_requests.thread import Threaded
from accessportal.audit.queries import chain_of
from accessportal.audit.states import AuditEvent
from accessportal.commands import audit_items
from accessportal.commands.audit_items import Item, Past
from accessportal.evidence.replay import differences, replay
from accessportal.evidence.replay.requests import REQUEST
from accessportal.kernel.clock import to_epoch
from accessportal.sandboxes.models import free_key
from accessportal.sandboxes.operations.tending import sandbox_id_for
from accessportal.sandboxes.queries import problems_beside_rows
from tests.commands.conftest import run
from tests.evidence.conftest import Office
from tests.evidence.forging import DOCS, Raw, World
from tests.fixtures_story import Story

Break = tuple[str, int, str]
Forgery = Callable[[World], Break]
EVENT = "AuditLog"


@pytest.fixture
def world(story: Story, office: Office) -> World:
    """Written with a key in the hashes, and whole."""
    found = World(story)
    found.fill()
    story.clock.advance(60)
    assert breaks() == set()
    return found


def breaks() -> set[Break]:
    return {(one["entity"], one["sequence"], one["problem"]) for one in run("verify_audit", "--json").json["breaks"]}


def number(value: float) -> Raw:
    return {"N": str(value)}


def text(value: str) -> Raw:
    return {"S": value}


def changed(table: str, told: dict[str, Raw], entity: str, sequence: int, problem: str, **values: Raw | None) -> Forgery:
    """Of the one item that tells so, these attributes are others, or are not there."""

    def forge(world: World) -> Break:
        item = world.tables.find(table, **told)
        kept = {name: value for name, value in item.items() if name not in values}
        world.tables.put(table, kept | {name: value for name, value in values.items() if value is not None})
        return entity, sequence, problem

    return forge


def request(name: str, sequence: int, problem: str, **values: Raw | None) -> Forgery:
    def forge(world: World) -> Break:
        one = world.requests[name]
        end = to_epoch(one.expires_at)
        return changed("ActiveRequests", {"request_id": text(one.request_id)}, one.entity, sequence, problem.format(end=end), **values)(
            world
        )

    return forge


def token(name: str, sequence: int, problem: str, **values: Raw | None) -> Forgery:
    def forge(world: World) -> Break:
        one = world.tokens[name]
        assert one.expires_at is not None
        words = problem.format(end=to_epoch(one.expires_at))
        return changed("ApiTokens", {"token_id": text(one.token_id)}, one.entity, sequence, words, **values)(world)

    return forge


def in_directory(pk: str, sk: str, entity: str, sequence: int, problem: str, **values: Raw | None) -> Forgery:
    return changed("AccessManagement", {"pk": text(pk), "sk": text(sk)}, entity, sequence, problem, **values)


def a_bare_operator(world: World) -> Break:
    key = {"pk": text("U:mallory@example.com"), "sk": text("G:/portal/operators")}
    world.tables.put("AccessManagement", key | {"siKey1": text("M:/portal/operators"), "role": text("contributor")})
    return "person#mallory@example.com", 1, "in /portal/operators by permanent is contributor, and no event tells of it"


def a_person_of_nowhere(world: World) -> Break:
    item = world.tables.find("AccessManagement", pk=text("U:erin@example.com"), sk=text("U:erin@example.com"))
    nobody = {"pk": text("U:eve@example.com"), "sk": text("U:eve@example.com"), "email": text("eve@example.com")}
    world.tables.put("AccessManagement", item | nobody)
    return "person#eve@example.com", 2, "there is an item, and no event tells of it"


def a_token_that_no_list_shows(world: World) -> Break:
    item = world.tables.find("ApiTokens", token_id=text(world.tokens["raised"].token_id))
    shown = {name: value for name, value in item.items() if name not in ("list", "unrevoked")}
    world.tables.put("ApiTokens", shown | {"token_id": text("hidden"), "created_by": text("system:demo")})
    return "token#hidden", 1, "there is an item, and no event tells of it"


def a_chain_of_a_person_is_gone(world: World) -> Break:
    for sequence in (1, 2):
        world.tables.delete(EVENT, world.tables.event("person#gus@example.com", sequence))
    return "person#gus@example.com", 2, "there is an item, and no event tells of it"


def a_request_is_gone(world: World) -> Break:
    one = world.requests["deleted"]
    world.tables.delete("ActiveRequests", {"request_id": text(one.request_id)})
    return one.entity, 3, "the item is gone, and no event tells that it went"


def an_approver_is_another(world: World) -> Break:
    """With the hashes of all later events made anew, as far as one can without the key."""
    one = world.requests["approved by another"]
    world.tables.put(EVENT, world.tables.event(one.entity, 2) | {"actor": text("mallory@example.com")})
    return one.entity, 2, "was changed after it was written"


def the_clock_back(world: World) -> Break:
    one = world.requests["other reason"]
    world.tables.put(EVENT, world.tables.event(one.entity, 2) | {"at": number(to_epoch(one.requested_at) - 1)})
    return one.entity, 2, "was changed after it was written"


def an_old_item_again(world: World) -> Break:
    """Gina is enabled as she was before she was disabled, version and head included."""
    kept = world.tables.find("AccessManagement", pk=text("U:gina@example.com"), sk=text("U:gina@example.com"))
    world.disable("gina@example.com")
    world.tables.put("AccessManagement", kept)
    return "person#gina@example.com", 2, "the item is at version 2 but the chain ends at 3 or with another hash"


def an_event_between(world: World) -> Break:
    world.tables.put(EVENT, world.tables.event("group#/security", 1) | {"sequence": number(2)})
    return "group#/security", 2, "does not continue the event before it"


def a_cut_chain_and_its_item(world: World) -> Break:
    world.tables.delete(EVENT, world.tables.event("person#sam@example.com", 1))
    return "person#sam@example.com", 1, "event 1 is missing; 2 follows"


def two_chains_swapped(world: World) -> Break:
    one, other = (world.tables.event(f"group#/{name}", 1) for name in ("guild", "engineering"))
    for first, second in ((one, other), (other, one)):
        world.tables.put(EVENT, second | {name: first[name] for name in ("entity", "day#shard")})
    return "group#/guild", 1, "was changed after it was written"


def a_holder_of_a_free_account(world: World) -> Break:
    """Who had it last could take it back."""
    item = world.tables.find("AccountPool", data=text("available"))
    world.tables.put("AccountPool", item | {"user": text("mallory@example.com")})
    return f"account#{item['account_id']['S']}", 2, "user is mallory@example.com, and the events tell nothing"


def a_claim_on_an_assignment(world: World) -> Break:
    item = world.tables.find("Assignments", permission_set_arn=text(world.story.twin.permission_sets["PowerUserAccess"]))
    world.tables.put("Assignments", item | {"claims": {"SS": ["mine"]}})
    claimed = len(world.requests["kept"].approvals) + 7
    return f"assignment#{item['assignment_id']['S']}", claimed, "claims is ['mine'], and the events tell ["


def a_holder_of_a_relationship(world: World) -> Break:
    item = world.tables.find("Relationships", subject=text("alice"))
    world.tables.put("Relationships", item | {"held_until": {"M": item["held_until"]["M"] | {"mine": number(1)}}})
    entity = f"relationship#{DOCS}#alice#editor#docs/plan"
    return entity, 1, "holders is ['direct', 'mine'], and the events tell ['direct']"


def a_place_before_all(world: World) -> Break:
    place = world.tables.find("WaitingLine", PK=text("LINE#sandbox"), SK=text("000000000002"))
    mine = {"SK": text("000000000000"), "number": number(0), "claim": text("mallory")}
    world.tables.put("WaitingLine", place | mine)
    return "line#sandbox", 2, "place 0 is mallory, and no event tells of it"


def a_bare_stand_in(world: World) -> Break:
    item = world.tables.find("StandIns", stand_in=text("gina@example.com"))
    mine = item["stand_in_id"]["S"][:11] + "mine"
    world.tables.put("StandIns", item | {"stand_in": text("mallory@example.com"), "stand_in_id": text(mine)})
    return f"stand_in#{mine}", 1, "there is an item, and no event tells of it"


def a_stand_in_from_the_beginning(world: World) -> Break:
    item = world.tables.find("StandIns", stand_in=text("gina@example.com"))
    world.tables.put("StandIns", item | {"starts_at": number(1)})
    return world.stand_ins["gina@example.com"].entity, 1, "starts_at is 1, and the events tell "


def a_stand_in_that_was_taken_back(world: World) -> Break:
    item = world.tables.find("StandIns", ended_by=text("olga@example.com"))
    kept = {name: value for name, value in item.items() if name not in ("ended_by", "ended_at")}
    world.tables.put("StandIns", kept)
    return world.stand_ins["mallory@example.com"].entity, 2, "ended_by is nothing, and the events tell olga@example.com"


def a_decision_in_the_place_of_another(world: World) -> Break:
    one = world.requests["kept"]
    item = world.tables.find("ActiveRequests", request_id=text(one.request_id))
    world.tables.put("ActiveRequests", item | {"in_place_of": {"M": {"mallory@example.com": text("bob@example.com")}}})
    return one.entity, 1, "in_place_of is {'mallory@example.com': 'bob@example.com'}, and the events tell nothing"


LEASE_END = 1_800_000_000
FORGERIES: tuple[Forgery, ...] = (
    # the five that passed before
    an_approver_is_another,
    a_bare_operator,
    a_token_that_no_list_shows,
    a_chain_of_a_person_is_gone,
    a_request_is_gone,
    # requests
    request("reopened", 5, "status is ACTIVE, and the events tell REVOKED", status=text("ACTIVE")),
    request("never taken back", 4, "work is nothing, and the events tell REVOKE", work=None, work_due_at=None),
    request("longer", 1, "expires_at is 1900000000, and the events tell {end}", expires_at=number(1_900_000_000)),
    request(
        "another's", 1, "subject_id is mallory@example.com, and the events tell alice@example.com", subject_id=text("mallory@example.com")
    ),
    request("undecided", 1, "approvals is ['mallory@example.com'], and the events tell nothing", approvals={"SS": ["mallory@example.com"]}),
    the_clock_back,
    # who decides in whose place
    a_stand_in_that_was_taken_back,
    a_bare_stand_in,
    a_stand_in_from_the_beginning,
    a_decision_in_the_place_of_another,
    # people and groups
    a_person_of_nowhere,
    an_old_item_again,
    a_cut_chain_and_its_item,
    in_directory(
        "U:erin@example.com",
        "G:/engineering",
        "person#erin@example.com",
        2,
        "in /engineering by permanent is admin, and the events tell reader",
        claims={"M": {"permanent": {"M": {"role": text("admin")}}}},
    ),
    in_directory(
        "U:fay@example.com",
        "U:fay@example.com",
        "person#fay@example.com",
        3,
        "state is enabled, and the events tell disabled",
        state=text("enabled"),
    ),
    in_directory(
        "U:bob@example.com",
        "U:bob@example.com",
        "person#bob@example.com",
        3,
        "identity is name-",
        identity=text("https://idp.example#mallory"),
    ),
    in_directory("G:/crowd", "G:/crowd", "group#/crowd", 2, "state is enabled, and the events tell disabled", state=text("enabled")),
    in_directory(
        "G:/engineering/payments",
        "G:/engineering/payments",
        "group#/engineering/payments",
        1,
        "parent_id is /security, and the events tell /engineering",
        ancestors={"L": [text("/"), text("/security")]},
    ),
    in_directory(
        "G:/portal/auditors",
        "G:/portal/auditors",
        "group#/portal/auditors",
        1,
        "it stands below /security and /portal, and its parent does not",
        ancestors={"L": [text("/security"), text("/portal")]},
    ),
    an_event_between,
    two_chains_swapped,
    # what programs may, and what is lent
    token("revoked", 2, "revoked_by is nothing, and the events tell olga@example.com", revoked_by=None),
    token("raised", 1, "scope is admin, and the events tell track", scope=text("admin")),
    token("lost", 1, "check is ", secret_hash=text("0" * 64)),
    token("longer", 1, "expires_at is nothing, and the events tell {end}", expires_at=None),
    changed(
        "SandboxPool",
        {"name": text("lab-1")},
        f"sandbox#{sandbox_id_for('ext-lab-1')}",
        2,
        "track is track-2, and the events tell track-1",
        allocated_to_track=text("track-2"),
    ),
    a_holder_of_a_free_account,
    changed(
        "AccountPool",
        {"pk": text("lease_id#lease-1")},
        "lease#lease-1",
        1,
        "claims is ['claim-1', 'mine'], and the events tell ['claim-1']",
        claims={"M": {"claim-1": number(LEASE_END), "mine": number(LEASE_END)}},
    ),
    a_place_before_all,
    # what gives by itself
    changed(
        "Approvals",
        {"identity": text("alice")},
        f"approval#{DOCS}#alice#docs/plan#GET",
        1,
        f"expires_at is {LEASE_END}, and the events tell ",
        expires_at=number(LEASE_END),
        held_until={"M": {"direct": number(LEASE_END)}},
    ),
    a_holder_of_a_relationship,
    changed(
        "AuthzScopes",
        {"scope": text(DOCS)},
        f"scope#{DOCS}",
        1,
        "policy is {'min_seconds': 1",
        policy={"M": {"min_seconds": number(1), "max_seconds": number(1), "is_enforced": {"BOOL": False}}},
    ),
    changed(
        "AccessRules",
        {"rule_name": text("prod-power"), "version": number(1)},
        "rule#prod-power",
        1,
        "version 1 is ",
        subjects={"M": {"groups": {"L": [text("/")]}, "users": {"L": []}}},
    ),
    a_claim_on_an_assignment,
    changed(
        "Relationships",
        {"subject": text("bob")},
        f"relationship#{DOCS}#bob#editor#docs/plan",
        1,
        "relation_type is membership, and the events tell role",
        relation_type=text("membership"),
    ),
)


FURTHER = {
    # the other one of two, and the rules in force that can't be read any more
    ("group#/engineering", 1),
    ("group#/security", 1),
    ("ruleset#current", 0),
    # its key is of the former track
    (f"sandbox#{sandbox_id_for('ext-lab-1')}", 0),
}


def test_each_forgery_is_found_and_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [forge(world) for forge in FORGERIES]
    # As a process that has read no rules.
    monkeypatch.setattr("accessportal.rules.store._cached", None)

    found = breaks()

    assert [one for one in made if not any(told[:2] == one[:2] and told[2].startswith(one[2]) for told in found)] == []
    assert {one[:2] for one in found} - {one[:2] for one in made} == FURTHER


def test_work_that_no_list_shows_is_found(world: World) -> None:
    """Nobody would ever take the access back."""
    one = world.requests["never taken back"]
    request("never taken back", 0, "", work_due_at=None)(world)

    assert breaks() == {(one.entity, 4, "work is nothing, and the events tell REVOKE")}


MINE: dict[str, tuple[str, int, dict[str, Raw | None]]] = {
    "granted_at": ("kept", 2, {"granted_at": number(1_700_000_000)}),
    "revoked_at": ("reopened", 5, {"revoked_at": number(1_700_000_000)}),
    "end_code": ("reopened", 1, {"end_code": text("subject_disabled")}),
    "was_to_end_at": ("never taken back", 4, {"was_to_end_at": number(1_900_000_000)}),
    "receipts": ("reopened", 5, {"receipts": None}),
    "approval": (
        "undecided",
        1,
        {"approval": {"M": {"required": {"BOOL": True}, "quorum": number(1), "groups": {"L": []}, "users": {"L": [text("mallory@a.b")]}}}},
    ),
    "evidence": ("longer", 1, {"evidence": {"M": {"max_duration_seconds": number(10**6)}}}),
    "identities": ("approved by another", 2, {"identities": {"M": {"bob@example.com": text("https://idp.example#mallory")}}}),
    "account_id": ("another's", 1, {"account_id": text("999999999999")}),
    "permission_set": ("kept", 1, {"permission_set": text("AdministratorAccess")}),
    "held_since": ("other reason", 1, {"held_since": number(1_700_000_000)}),
}


def test_every_attribute_of_a_request_that_decides_something_is_held_against_its_events(world: World) -> None:
    for name, sequence, values in MINE.values():
        request(name, sequence, "", **values)(world)

    found = breaks()

    told = {(world.requests[name].entity, sequence, field) for field, (name, sequence, _) in MINE.items()}
    assert {(entity, sequence, problem.partition(" is ")[0]) for entity, sequence, problem in found} == told


def test_an_event_without_checks_is_of_an_older_version_and_leaves_open_what_it_changed(story: Story, office: Office) -> None:
    asked = story.carry_out(story.approve(story.ask_for_prod()))
    *chain, granted = chain_of(asked.entity)
    older = replace(granted, data={name: value for name, value in granted.data.items() if name != "checks"})

    def wrong(last: AuditEvent, **values: Any) -> list[str]:
        told, facts = replay(REQUEST, [*chain, last]), REQUEST.facts(Threaded(replace(asked, **values), (), is_purged=False))
        found = differences(REQUEST, told, facts, entity=asked.entity, version=asked.version)
        return [one.problem.partition(" is ")[0] for one in found]

    demand = replace(asked.approval, quorum=9)
    assert wrong(granted) == []
    assert wrong(granted, receipts=(), approval=demand) == ["approval", "receipts"]
    assert wrong(older, receipts=(), approval=demand) == ["approval"]


FREE, LENT = "lab-2", "lab-1"


def beside(world: World, kind: str, **told: Raw) -> Raw:
    """The one item of the pool whose key begins so."""
    items = world.tables.client.scan(TableName="SandboxPool")["Items"]
    (found,) = (one for one in items if one["PK"]["S"].startswith(kind) and all(one.get(name) == value for name, value in told.items()))
    return dict(found)


def a_lent_one_in_the_free_list(world: World) -> None:
    lent, line = world.tables.find("SandboxPool", name=text(LENT)), beside(world, "FREE#")
    sandbox_id = lent["sandbox_id"]["S"]
    world.tables.put(
        "SandboxPool", line | {"PK": text(free_key(sandbox_id)[0]), "SK": text(f"SBX#{sandbox_id}")} | {"sandbox_id": text(sandbox_id)}
    )


BESIDE: dict[str, tuple[Callable[[World], object], set[tuple[str, str]]]] = {
    "a line of a lent one": (a_lent_one_in_the_free_list, {(LENT, "the free list has a line of it, and it is allocated")}),
    "a line of another": (
        lambda world: world.tables.put("SandboxPool", beside(world, "FREE#") | {"external_id": text("ext-lab-1")}),
        {(FREE, "its line of the free list is of lab-2 (ext-lab-1)")},
    ),
    "a line taken away": (
        lambda world: world.tables.delete("SandboxPool", beside(world, "FREE#")),
        {(FREE, "it is free, and the free list has no line of it")},
    ),
    "a key of another track": (
        lambda world: world.tables.put("SandboxPool", beside(world, "KEY#") | {"track": text("track-2")}),
        {
            (LENT, "the idempotency key track-1 k1 is open for it, and it is lent for another"),
            (LENT, "it is lent, and its idempotency key does not stand for it"),
        },
    ),
    "a further key": (
        lambda world: world.tables.put("SandboxPool", beside(world, "KEY#") | {"PK": text("KEY#mine")}),
        {(LENT, "the idempotency key mine is open for it, and it is lent for another")},
    ),
    "a key to another sandbox": (
        lambda world: world.tables.put("SandboxPool", beside(world, "KEY#") | {"sandbox_id": beside(world, "FREE#")["sandbox_id"]}),
        {(LENT, "it is lent, and its idempotency key does not stand for it")},
    ),
    "a closed key": (
        lambda world: world.tables.put("SandboxPool", beside(world, "KEY#") | {"state": text("closed")}),
        {(LENT, "it is lent, and its idempotency key does not stand for it")},
    ),
}


def test_the_free_list_and_the_keys_of_sandboxes_are_held_against_the_rows(world: World) -> None:
    """One after the other, each undone again."""
    before = {(one["PK"]["S"], one["SK"]["S"]): one for one in world.tables.client.scan(TableName="SandboxPool")["Items"]}
    for what, (forge, problems) in BESIDE.items():
        forge(world)
        found = {(one.sandbox_id, one.words) for one in problems_beside_rows(past=print)}
        assert found == {(sandbox_id_for(f"ext-{name}"), words) for name, words in problems}, what
        for one in world.tables.client.scan(TableName="SandboxPool")["Items"]:
            if (one["PK"]["S"], one["SK"]["S"]) not in before:
                world.tables.delete("SandboxPool", one)
        for one in before.values():
            world.tables.put("SandboxPool", one)

    BESIDE["a further key"][0](world)
    assert breaks() == {
        (f"sandbox#{sandbox_id_for('ext-lab-1')}", 0, "the idempotency key mine is open for it, and it is lent for another")
    }


def test_a_stand_in_for_longer_than_its_key_tells_is_found(world: World) -> None:
    item = world.tables.find("StandIns", stand_in=text("gina@example.com"))
    world.tables.put("StandIns", item | {"ends_at": number(LEASE_END)})

    assert {one[:2] for one in breaks()} == {(f"gina@example.com, {item['stand_in_id']['S']}", 0)}


@pytest.mark.parametrize("whose", ["aaron@example.com", "mallory@example.com", "zoe@example.com", "x@example.com"])
def test_a_stand_in_that_is_copied_to_another_is_found_beside_the_true_one(world: World, whose: str) -> None:
    """Whichever of the two is read first."""
    item = world.tables.find("StandIns", stand_in=text("gina@example.com"))
    world.tables.put("StandIns", item | {"stand_in": text(whose)})

    assert breaks() == {(world.stand_ins["gina@example.com"].entity, 1, f"stand_in is {whose}, and the events tell gina@example.com")}


def test_an_assignment_of_another_person_is_found(world: World) -> None:
    """Else the portal would take the access of somebody else away in AWS, and tell that of Alice as gone."""
    item = world.tables.find("Assignments", permission_set_arn=text(world.story.twin.permission_sets["PowerUserAccess"]))
    world.tables.put("Assignments", item | {"principal_id": text("mallory")})

    assert {one[:2] for one in breaks()} == {(item["assignment_id"]["S"], 0)}


UNREAD: dict[str, tuple[str, dict[str, Raw], dict[str, Raw], set[tuple[str, int]]]] = {
    "the head of a line": (
        "WaitingLine",
        {"PK": text("LINE#sandbox"), "SK": text("HEAD")},
        {"schema_version": number(99)},
        {("LINE#sandbox, HEAD", 0)},
    ),
    "the head of the pool": ("SandboxPool", {"PK": text("POOL"), "SK": text("META")}, {"schema_version": number(99)}, {("POOL, META", 0)}),
    "which rules are in force": (
        "AccessRules",
        {"rule_name": text("#set"), "version": number(0)},
        {"schema_version": number(99)},
        {("#set, 0", 0), ("ruleset#current", 0)},
    ),
    "the rules in force": (
        "AccessRules",
        {"rule_name": text("#set"), "version": number(1)},
        {"entries": {"L": [text("mine")]}},
        {("ruleset#current", 0), ("ruleset#current", 1)},
    ),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_stands_alone_and_can_not_be_read_hides_no_forgery(world: World, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    table, told, values, found = UNREAD[what]
    world.tables.put(table, world.tables.find(table, **told) | values)
    monkeypatch.setattr("accessportal.rules.store._cached", None)
    a_bare_operator(world)

    assert {one[:2] for one in breaks()} == found | {("person#mallory@example.com", 1)}


def test_what_becomes_unreadable_during_the_check_does_not_end_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person and a group that are read once more, because they differ."""
    erin, group = "U:erin@example.com", "G:/portal/auditors"
    in_directory(erin, erin, "", 0, "", state=text("disabled"))(world)
    in_directory(group, group, "", 0, "", ancestors={"L": [text("/security"), text("/portal")]})(world)
    a_bare_operator(world)
    real = audit_items.every_item

    def read(past: Past) -> Iterator[Item]:
        yield from real(past)
        for key in (erin, group):
            in_directory(key, key, "", 0, "", state=number(1))(world)

    monkeypatch.setattr("accessportal.commands.audit.every_item", read)

    assert {one[:2] for one in breaks()} == {
        (erin, 0),
        ("person#erin@example.com", 1),
        (group, 0),
        ("person#mallory@example.com", 1),
    }


def test_what_can_not_be_read_hides_no_forgery(world: World) -> None:
    membership = world.tables.find("AccessManagement", pk=text("U:erin@example.com"), sk=text("G:/engineering"))
    world.tables.put("AccessManagement", membership | {"createdAt": text("one day")})
    a_bare_operator(world)

    assert {one[:2] for one in breaks()} == {
        ("U:erin@example.com, G:/engineering", 0),
        ("person#erin@example.com", 2),
        ("person#mallory@example.com", 1),
    }
