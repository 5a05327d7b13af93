"""Erasing a person: afterwards no table tells who they were, and every chain holds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import boto3
import pytest
from django.apps import apps
from django.test import Client

from accessportal.access_requests import operations
from accessportal.access_requests.queries import every_request, thread_of
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.access_requests.thread import CommentKind
from accessportal.audit import config, queries
from accessportal.audit.operations import begin_erasure, pseudonyms
from accessportal.authz import operations as authz
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.authz.states import Approval
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.states import GroupRole
from accessportal.identity import erasing
from accessportal.identity.operations import ensure_user
from accessportal.kernel.actors import Actor, person, system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound, Unavailable
from accessportal.mirror import operations as mirror
from accessportal.store import replacing
from accessportal.store.erasures import find_erasure
from tests.commands.conftest import run
from tests.crashing import Killed, Process, living
from tests.evidence.conftest import Office
from tests.evidence.forging import Tables
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

ALICE, NAME = "alice@example.com", "Alice Park"


def everything() -> list[str]:
    """Each item of each table, and each row of Django's database, as text."""
    client = boto3.client("dynamodb", region_name=REGION)
    found: list[Any] = []
    for table in client.get_paginator("list_tables").paginate().search("TableNames"):
        items = client.get_paginator("scan").paginate(TableName=table).search("Items")
        found += [f"{table} {json.dumps(item, default=str)}" for item in items]
    for model in apps.get_models():
        found += [f"{model.__name__} {row}" for row in model._default_manager.values()]
    return found


def telling_of(*words: str) -> list[str]:
    return [text for text in everything() if any(word.casefold() in text.casefold() for word in words)]


def settle(story: Story) -> None:
    """What the jobs do within the next minutes."""
    for _ in range(3):
        story.clock.advance(70)
        operations.end_departed(clock=story.clock)
        story.tick()
        mirror.sweep_mirror(clock=story.clock)


def remark(story: Story, request: AccessRequest, actor: Actor, text: str) -> None:
    """Add a comment to what is decided."""
    kind = CommentKind.COMMENT
    operations.comment(request_id=request.request_id, kind=kind, text=text, submission_id="form", actor=actor, now=story.clock.now())


@pytest.fixture
def gone(story: Story) -> Story:
    """Alice signed in, asked, held, was refused, decided, and left."""
    alice, now = person(ALICE), story.clock.now()
    directory.record_sign_in(email=ALICE, identity="https://issuer#sub-77", method="openid_connect", actor=alice, now=now)
    Client().force_login(ensure_user(email=ALICE, name=NAME))
    directory.rename_person(email=ALICE, name="Alice Liddell", actor=system("test"), now=now)
    held = story.approve(story.ask_for_prod())
    denied = story.deny(story.ask_for_prod(seconds=1800))
    remark(story, denied, alice, f"{NAME} here, write to {ALICE}.")
    remark(story, denied, story.bob, f"What {ALICE.upper()} said.")
    story.tick()
    story.end(held)
    for email, role in ((ALICE, GroupRole.ADMIN), ("sam@example.com", GroupRole.READER)):
        directory.grant_membership(email=email, group_id="/engineering", role=role, actor=system("test"), now=now)
    joined = story.ask_to_join(role="contributor", actor=story.sam)
    story.approve(joined, actor=alice)
    story.tick()
    decide_in_bobs_place(story, alice)
    directory.delete_person(email=ALICE, actor=story.olga, now=story.clock.now())
    settle(story)
    return story


def decide_in_bobs_place(story: Story, actor: Actor) -> None:
    now = story.clock.now()
    operations.name_stand_in(
        email=actor.name, starts_at=now, ends_at=now + timedelta(days=9), submission_id="form", actor=story.bob, now=now
    )
    where: dict[str, Any] = {"email": story.mallory.name, "group_id": "/engineering"}
    directory.grant_membership(**where, role=GroupRole.READER, actor=system("test"), now=now)
    denied = story.deny(story.ask_for_prod(actor=story.mallory), actor=actor)
    assert denied.in_place_of == {actor.name: story.bob.name}


def ask_as_bob(story: Story, reason: str) -> AccessRequest:
    """For the development account, which its rule gives at once."""
    group = "/engineering/payments"
    directory.grant_membership(email=story.bob.name, group_id=group, role=GroupRole.READER, actor=system("test"), now=story.clock.now())
    return story.ask(actor=story.bob, reason=reason)


def erase(story: Story, email: str = "Alice@Example.com", **more: Any) -> erasing.Erased:
    return erasing.erase_person(email=email, actor=story.olga, clock=story.clock, **more)


def verified() -> None:
    told = run("verify_audit", "--json")
    assert (told.json["breaks"], told.code) == ([], 0)


def test_after_it_no_table_tells_who_they_were(gone: Story) -> None:
    assert len(telling_of(ALICE, "liddell", NAME)) > 20

    counted = erase(gone, is_dry=True)
    assert telling_of(ALICE)
    done = erase(gone)

    assert telling_of(ALICE, "liddell", NAME, "sub-77") == []
    # The account of the sign-in service, two items, was let go before the walk.
    assert counted.items == {**done.items, "AccessManagement": 2, "AuditLog": done.items["AuditLog"] - 1}
    assert (done.typed, done.walks) == ((), 2)
    assert queries.chain_of(f"person#{ALICE}") == ()
    chain = queries.chain_of(f"person#{done.pseudonym}")
    assert [event.action for event in chain[-2:]] == ["user.deleted", "user.identity_forgotten"]
    assert queries.breaks_in(chain) == []
    assert [event.action for event in queries.chain_of(f"erasure#{done.pseudonym}")] == ["person.erasure_begun", "person.erased"]
    verified()
    assert erase(gone).items == {}


def test_their_words_go_and_what_others_wrote_holds(gone: Story) -> None:
    """Also what was hashed without pseudonyms; of that the text is not judged any more."""
    (denied,) = [one for one in every_request(past=print) if one.status is Status.DENIED and one.comments]
    keys = config.current()
    config.configure(replace(keys, pseudonyms=None))
    remark(gone, denied, gone.bob, f"Before the key, {ALICE}.")
    config.configure(keys)
    verified()

    pseudonym = erase(gone).pseudonym

    thread = thread_of(request=gone.now_of(denied), past=print)
    assert [(one.written_by, one.text, one.is_erased) for one in thread] == [
        (pseudonym, pseudonym, True),
        ("bob@example.com", f"What {pseudonym} said.", False),
        ("bob@example.com", f"Before the key, {pseudonym}.", False),
    ]
    assert thread[0].salt == pseudonym
    verified()


def test_every_page_that_named_them_opens(gone: Story) -> None:
    """They have no page any more, to which one of them could lead."""
    asked = [one.request_id for one in every_request(past=print) if one.subject_id == ALICE]
    pseudonym = erase(gone).pseudonym
    olga = Client()
    olga.force_login(ensure_user(email="olga@example.com", name="Olga"))
    day = f"{gone.clock.now():%Y-%m-%d}"
    urls = [
        f"/admin/audit/?pattern=day&q={day}",
        f"/admin/audit/?pattern=entity&q=person%23{pseudonym}",
        f"/admin/audit/?pattern=actor&q={pseudonym}",
        "/admin/requests/?pattern=all",
        "/admin/people/",
        "/groups/at/engineering/",
        *(f"/requests/{one}/" for one in asked),
    ]

    assert len(asked) >= 2
    assert [(url, status) for url in urls if (status := olga.get(url).status_code) != HTTPStatus.OK] == []


def test_killed_after_every_single_write_the_job_goes_on(gone: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = queries.chain_of(f"person#{ALICE}")
    lives = 0
    while True:
        process = Process(fatal=0, after=True)
        with living(process, monkeypatch, reads=frozenset({"Scan", "Query", "GetItem", "BatchGetItem"})):
            try:
                erase(gone) if lives == 0 else erasing.go_on_erasing(actor=system("test"), clock=gone.clock)
            except Killed:
                process.reboot()
        if not process.died:
            break
        lives += 1
        if lives % 12 == 3:
            verified()
    assert lives > 20
    assert telling_of(ALICE, "liddell", "sub-77") == []
    kept = queries.chain_of(f"person#{pseudonyms().of(ALICE)}")
    assert [event.hash for event in kept[:-1]] == [event.hash for event in chain]
    verified()


def test_two_at_once_lose_nothing(gone: Story) -> None:
    """The second one comes to each item that the first has written since it was read."""
    written = len(queries.chain_of(f"person#{ALICE}"))
    pseudonym = pseudonyms().of(ALICE)
    real = replacing._write
    overtaken = []

    def after_another(model: Any, raw: Any, after: Any, **more: Any) -> bool:
        assert real(model, raw, after, **more)
        overtaken.append(raw)
        return real(model, raw, after, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacing, "_write", after_another)
        erase(gone)
    assert overtaken
    assert len(queries.chain_of(f"person#{pseudonym}")) == written + 1
    assert telling_of(ALICE) == []
    verified()


def test_events_of_before_pseudonyms_are_sealed_and_whoever_seals_them_falsely_is_found(gone: Story, installed: Office) -> None:
    keys = config.current()
    config.configure(replace(keys, pseudonyms=None))
    asked = ask_as_bob(gone, f"As {ALICE.upper()} said")
    config.configure(keys)
    gone.end(asked, actor=gone.bob)

    done = erase(gone)

    assert telling_of(ALICE) == []
    verified()
    chain = queries.chain_of(asked.entity)
    assert [bool(event.seal) for event in chain] == [True, False]
    assert done.pseudonym in chain[0].data["reason"]
    for forged in (
        replace(chain[0], actor="mallory@example.com"),
        replace(chain[0], seal=":".join((*chain[0].seal.split(":")[:1], "", "0"))),
    ):
        assert [one.problem for one in queries.breaks_in([forged, chain[1]])] == ["was changed after it was written"]
    installed.clock.advance(26 * 3600)
    installed.export()
    assert installed.breaks() == []
    assert ALICE.encode() not in b"".join(gzip.decompress(path.read_bytes()) for path in installed.folder.glob("events/*"))


def test_whoever_comes_back_goes_on_and_may_be_erased_again(gone: Story) -> None:
    first = erase(gone)
    length = len(queries.chain_of(f"person#{first.pseudonym}"))
    begin_erasure(pseudonym=first.pseudonym, further=(), actor=gone.olga, now=gone.clock.now())
    with pytest.raises(Conflict, match="being erased"):
        directory.create_person(email=ALICE, name=NAME, actor=gone.olga, now=gone.clock.now())
    erasing.go_on_erasing(actor=system("test"), clock=gone.clock)

    directory.create_person(email=ALICE, name=NAME, actor=gone.olga, now=gone.clock.now())
    verified()
    assert [event.sequence for event in queries.chain_of(f"person#{ALICE}")] == list(range(1, length + 2))
    with pytest.raises(Conflict, match="still in the directory"):
        erase(gone)

    directory.delete_person(email=ALICE, actor=gone.olga, now=gone.clock.now())
    settle(gone)
    erase(gone)
    assert telling_of(ALICE, NAME) == []
    verified()


def test_who_is_here_or_unknown_is_not_erased(gone: Story) -> None:
    for email, error, words in (
        ("bob@example.com", Conflict, "Delete the person first"),
        ("nobody@example.com", NotFound, "Nobody with this address"),
        ("a#b@example.com", InvalidRequest, "can't be told apart"),
    ):
        with pytest.raises(error, match=words):
            erase(gone, email)
    with pytest.raises(NotAllowed, match="Only operators"):
        erasing.erase_person(email=ALICE, actor=gone.bob, clock=gone.clock)
    keys = config.current()
    config.configure(replace(keys, pseudonyms=None))
    with pytest.raises(Conflict, match="PORTAL_PSEUDONYM_KEY"):
        erase(gone)
    config.configure(keys)
    assert find_erasure(pseudonyms().of(ALICE)) is None


def damaged(table: str, **values: Any) -> Callable[[Story], None]:
    """Some item of the table that names Alice has these values."""

    def forge(_story: Story) -> None:
        client = boto3.client("dynamodb", region_name=REGION)
        item = next(one for one in client.scan(TableName=table)["Items"] if ALICE in json.dumps(one))
        client.put_item(TableName=table, Item={name: value for name, value in (item | values).items() if value is not None})

    return forge


def a_damaged_approval(story: Story) -> None:
    caller, now = caller_of(story.olga), story.clock.now()
    approval = Approval(read_scope("tenant:acme-corp"), ALICE, "docs/plan", "GET", granted_by="olga@example.com", granted_at=now)
    authz.grant(APPROVALS, approval, ttl_seconds=3600, caller=caller, now=now)
    damaged("Approvals", granted_at={"S": "one day"})(story)


UNREAD: dict[str, tuple[Callable[[Story], None], str]] = {
    "an approval": (a_damaged_approval, "table Approvals can't be read"),
    "a request that is nobody's": (damaged("ActiveRequests", subject_id=None), "table ActiveRequests can't be read"),
    "an event": (damaged("AuditLog", at={"S": "one day"}), "names the person and can't be read"),
    "data of an event": (damaged("AuditLog", data={"S": "none"}), "names the person and can't be read"),
    "an item of a newer version": (damaged("ActiveRequests", schema_version={"N": "99"}), "newer version"),
}


@pytest.mark.parametrize("what", UNREAD)
def test_nothing_is_begun_while_what_may_name_them_can_not_be_read(gone: Story, what: str) -> None:
    damage, words = UNREAD[what]
    damage(gone)
    before = telling_of(ALICE)

    with pytest.raises((Conflict, Unavailable), match=words):
        erase(gone)

    assert telling_of(ALICE) == before
    assert find_erasure(pseudonyms().of(ALICE)) is None


def test_the_job_tells_of_each_person_with_whom_it_can_not_go_on(gone: Story) -> None:
    pseudonym = pseudonyms().of(ALICE)
    for one in (pseudonym, "person-damaged", "person-of-nobody"):
        begin_erasure(pseudonym=one, further=(), actor=gone.olga, now=gone.clock.now())
    damaged("ActiveRequests", schema_version={"N": "99"})(gone)
    client = boto3.client("dynamodb", region_name=REGION)
    item = client.get_item(TableName="Erasures", Key={"pseudonym": {"S": "person-damaged"}})["Item"]
    client.put_item(TableName="Erasures", Item=item | {"begun_at": {"S": "one day"}})

    report = erasing.go_on_erasing(actor=system("test"), clock=gone.clock)

    assert {one.item for one in report.failures} == {pseudonym, "person-damaged"}
    assert (report.erased, report.is_ok) == (1, False)


@pytest.mark.parametrize("seen", [(), (1, 2), (1, 2, 5, 6)], ids=["nothing", "the beginning", "a hole"])
def test_a_chain_that_moves_on_below_the_walk_is_no_break(gone: Story, installed: Office, seen: tuple[int, ...]) -> None:
    """The walk sees of it, under the address, what was there in the moments in which its pages were read."""
    installed.clock.advance(26 * 3600)
    installed.export()
    verified()
    address = f"person#{ALICE}"
    assert len(queries.chain_of(address)) > 6
    chains = dict(queries.every_chain(segment=0, segments=1))
    chains[address] = [event for event in chains[address] if event.sequence in seen]
    erase(gone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "every_chain", lambda **_segment: ((name, events) for name, events in chains.items() if events))
        told = run("verify_audit", "--json", "--workers", "1")

    assert told.json["breaks"] == []


def test_what_is_known_of_a_chain_that_is_moved_is_not_judged_before_it_has_moved(gone: Story) -> None:
    """Chains of an approval are named by the person, too."""
    caller, now = caller_of(gone.olga), gone.clock.now()
    approval = Approval(read_scope("tenant:acme-corp"), ALICE, "docs/plan", "GET", granted_by="olga@example.com", granted_at=now)
    authz.grant(APPROVALS, approval, ttl_seconds=3600, caller=caller, now=now)
    authz.revoke(APPROVALS, approval.scope, approval.names, caller=caller, now=now)
    found: list[Any] = []

    def after_one(model: Any, raw: Any, after: Any, **more: Any) -> bool:
        written = real(model, raw, after, **more)
        if raw.get("entity") != after.get("entity") and "approval#" in raw["entity"]["S"] and not found:
            gone.clock.advance(60)
            found.append(run("verify_audit", "--json").json["breaks"])
        return written

    real = replacing._write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacing, "_write", after_one)
        erase(gone)

    assert found == [[]]


def test_a_name_that_somebody_typed_stays_and_is_told(gone: Story) -> None:
    asked = ask_as_bob(gone, f"{NAME} asked me to")

    told = run("erase_person", ALICE, "--as", "olga@example.com")

    assert told.code == 0
    assert told.lines[0].startswith(f"{pseudonyms().of(ALICE)} is in the place of the person now. Items that named them:")
    assert {line.partition(": ")[2] for line in told.lines[1:]} == {f"ActiveRequests: {asked.request_id}", f"AuditLog: {asked.entity} 1"}


def test_operators_can_tell_whose_a_pseudonym_is_until_the_person_is_erased(gone: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of somebody who has left, and by the name of somebody who is here. Afterwards it is said that nobody can."""
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: gone.clock)
    made = pseudonyms()

    def asked(pseudonym: str, actor: str = "olga@example.com") -> Any:
        ran = run("whose_pseudonym", pseudonym, "--as", actor, "--json")
        return ran.json["person"] if ran.code == 0 else ran.json["error"]["code"]

    bob = directory_queries.get_person_for(email="bob@example.com", actor=gone.olga, now=gone.clock.now())
    assert [asked(made.of(email)) for email in (ALICE, bob.email)] == [ALICE, bob.email]
    assert asked(made.of_name(bob.name)) == bob.email
    assert asked("person-nobody") == "pseudonym_unknown"
    for actor in ("ana@example.com", "mallory@example.com"):
        assert asked(made.of(ALICE), actor) == "operators_only"
    erase(gone)
    assert asked(made.of(ALICE)) == "person_erased"
    # Who comes back is known again.
    directory.create_person(email=ALICE, name=NAME, actor=gone.olga, now=gone.clock.now())
    assert asked(made.of(ALICE)) == ALICE
    # Nobody is told to be unknown while one of those who are here can't be read.
    tables, is_bob = Tables(), {"S": f"U:{bob.key}"}
    tables.put("AccessManagement", tables.find("AccessManagement", pk=is_bob, sk=is_bob) | {"state": {"S": "neither"}})
    assert [asked(one) for one in (made.of_name(bob.name), made.of(ALICE), made.of(bob.email))] == ["item_unreadable", ALICE, bob.email]
