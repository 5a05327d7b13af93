"""Account leases over HTTP: in whose name, with which rights, waiting, giving back, bad input, and the care of the pool."""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import system
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.ports import set_after_commit
from accessportal.leases import operations as leases
from accessportal.leases.config import current
from accessportal.tokens.states import Scope
from accessportal.waiting.operations import note_cleanings
from accessportal.waiting.states import ACCOUNTS
from tests.api.conftest import Answer, Lab
from tests.fixtures_accounts import DAY, Borrowed
from tests.sandboxes.test_requests import requests as calls

ALICE: dict[str, Any] = {
    "person": "alice@example.com",
    "pool": "labs",
    "size": "small",
    "permission_set": "PowerUserAccess",
    "duration_seconds": 3_600,
    "reason": "Workshop of 12 March",
}
WEEK: dict[str, Any] = {"duration_seconds": 7 * DAY}
WHY = {"reason": "It mines coins."}


@dataclass
class Desk:
    """A program that asks in people's names, one that looks after the pool, and the pool behind the API."""

    lab: Lab
    borrowed: Borrowed
    token: str
    admin_token: str
    queued: list[str] = field(default_factory=list)

    def ask(self, *, key: str = "one", token: str = "", **changes: Any) -> Answer:
        return self.lab.send("POST", "leases", token=token or self.token, body=ALICE | changes, Idempotency_Key=key)

    def asked(self, *, key: str = "one", **changes: Any) -> Any:
        told = self.ask(key=key, **changes)
        assert told.status == 202, told.body
        assert told.headers["Location"] == f"/v1/leases/{told.body['request_id']}"
        return told.body

    def look(self, request_id: str, *, token: str = "") -> Any:
        return self.lab.send("GET", f"leases/{request_id}", token=token or self.token).body

    def give_back(self, request_id: str) -> Answer:
        return self.lab.send("POST", f"leases/{request_id}/give-back", token=self.token)

    def admin(self, method: str, path: str, **body: Any) -> Answer:
        return self.lab.send(method, f"admin/{path}", token=self.admin_token, body=body or None)

    def carry_out(self, told: Any) -> Any:
        """Whatever the request has to be done for, until nothing moves any more at this moment."""
        self.borrowed.story.carry_out(self.record(told))
        return self.look(told["request_id"])

    def record(self, told: Any) -> AccessRequest:
        return requests.get(request_id=told["request_id"], actor=system("test"), now=self.borrowed.story.clock.now())


@pytest.fixture
def desk(borrowed: Borrowed, lab: Lab) -> Iterator[Desk]:
    desk = Desk(lab, borrowed, lab.new_token("desk", Scope.LEASES_ASK), lab.new_token("care", Scope.LEASES_ADMIN))
    replaced, settings = set_after_commit(lambda name, /, **_: desk.queued.append(name)), current()
    leases.configure(replace(settings, cleaner_arn="arn:aws:states:eu-central-1:111111111111:stateMachine:cleaner"))
    yield desk
    leases.configure(settings)
    set_after_commit(replaced)


def test_a_lease_from_asking_to_its_end(desk: Desk) -> None:
    (account_id,) = desk.borrowed.fill(1)
    now = to_epoch(desk.borrowed.story.clock.now())

    asked = desk.asked()

    assert asked | {"request_id": "", "asked_through": ""} == {
        "request_id": "",
        "stage": "starting",
        "person": "alice@example.com",
        "pool": "labs",
        "permission_set": "PowerUserAccess",
        "reason": "Workshop of 12 March",
        "ticket_id": None,
        "rule": "small-accounts",
        "asked_at": now,
        "asked_through": "",
        "duration_seconds": 3_600,
        "lease_id": None,
        "account_id": None,
        "started_at": None,
        "ends_at": None,
        "place": None,
        "spend": None,
        "problem": None,
    }
    assert asked["asked_through"] == f"client:{desk.lab.tokens[desk.token].token_id}"
    held = desk.carry_out(asked)
    assert (held["stage"], held["account_id"], held["lease_id"]) == ("active", account_id, asked["request_id"])
    assert held["ends_at"] == held["started_at"] + 3_600
    assert desk.borrowed.has_access(desk.record(held))
    assert desk.ask().body == held

    assert desk.give_back(asked["request_id"]).body["stage"] == "ending"
    ended = desk.carry_out(asked)
    assert (ended["stage"], ended["person"]) == ("ended", "alice@example.com")
    assert desk.give_back(asked["request_id"]).body == ended
    assert not desk.borrowed.has_access(desk.record(held))
    assert desk.borrowed.pool.get(account_id).state == "dirty"


def test_a_program_keeps_what_it_asked_for_longer(desk: Desk) -> None:
    desk.borrowed.fill(2)
    held = desk.carry_out(desk.asked(size="small"))
    desk.borrowed.story.clock.advance(600)

    longer = desk.asked(key="longer", size="small", continues=held["request_id"], duration_seconds=7_200)
    kept = desk.carry_out(longer)

    assert (kept["stage"], kept["lease_id"], kept["account_id"]) == ("active", held["lease_id"], held["account_id"])
    assert kept["ends_at"] == longer["asked_at"] + 7_200
    assert desk.ask(key="longer", size="small", continues=held["request_id"], duration_seconds=7_200).body == kept
    # What others asked for is nobody else's to keep, and of what is over nothing is kept.
    own = desk.borrowed.held(actor=desk.borrowed.story.bob)
    for request_id in (own.request_id, str(uuid.uuid4())):
        assert desk.ask(key="theirs", person=own.subject_id, continues=request_id).status == 404
    desk.give_back(kept["request_id"])
    for one in (held, kept):
        desk.carry_out(one)
    told = desk.ask(key="more", size="small", continues=kept["request_id"])
    assert (told.error, told.body["error"]["field"]) == ((400, "INVALID_REQUEST"), "continues")


def test_whoever_waits_is_told_the_place_and_when(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.borrowed.fill(1)
    desk.borrowed.held(actor=desk.borrowed.story.bob)
    first, second = (desk.asked(key=key) for key in ("one", "two"))
    for told in (first, second):
        desk.carry_out(told)

    waiting = [desk.look(one["request_id"]) for one in (first, second)]

    assert [(one["stage"], one["place"]["before"], one["account_id"]) for one in waiting] == [("waiting", 0, None), ("waiting", 1, None)]
    assert all(one["place"]["lapses_at"] > to_epoch(desk.borrowed.story.clock.now()) for one in waiting)
    # No cleaning is known yet to reckon with.
    assert [one["place"]["expected"] for one in waiting] == [None, None]
    note_cleanings(line=ACCOUNTS, seconds=[600])
    earlier, later = (desk.look(one["request_id"])["place"]["expected"] for one in (first, second))
    with calls(monkeypatch) as sent:
        one_alone = desk.look(first["request_id"])["place"]
    of_one = sent.count("Query")
    with calls(monkeypatch) as sent:
        listed = desk.lab.send("GET", "leases?person=alice@example.com", token=desk.token).body["items"]
    # The page of requests, and who is before the second; the ends of what is lent are read once for both.
    assert (len(listed), sent.count("Query") - of_one) == (2, 2)
    assert one_alone in [one["place"] for one in listed]
    # Bob's day ends first, then that of who is before.
    ends_at = to_epoch(desk.borrowed.story.clock.now()) + DAY
    assert ends_at + 600 <= earlier["earliest_at"] < earlier["latest_at"] < ends_at + DAY
    assert later["earliest_at"] >= earlier["earliest_at"] + 3_600
    desk.give_back(first["request_id"])
    desk.carry_out(first)
    assert desk.look(second["request_id"])["place"]["before"] == 0


def test_what_the_person_extended_stays_theirs_when_the_program_gives_back(desk: Desk) -> None:
    (account_id,) = desk.borrowed.fill(1)
    asked = desk.asked()
    desk.carry_out(asked)
    story = desk.borrowed.story
    longer = story.carry_out(story.extend(desk.record(asked), 7_200))

    desk.give_back(asked["request_id"])
    assert desk.carry_out(asked)["stage"] == "ended"
    assert story.now_of(longer).is_granted
    assert desk.borrowed.pool.get(account_id).user == "alice@example.com"
    # The person's own giving back ends both.
    story.carry_out(story.end(longer))
    assert desk.borrowed.pool.get(account_id).state == "dirty"


def test_a_look_reads_the_token_the_request_and_its_lease(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.borrowed.fill(1)
    asked = desk.asked()
    desk.carry_out(asked)

    with calls(monkeypatch) as sent:
        assert desk.look(asked["request_id"])["stage"] == "active"
    assert sent == ["GetItem"] * 3


def test_a_list_reads_the_token_the_requests_and_their_leases_together(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.borrowed.fill(2)
    asked = [desk.asked(key=key) for key in ("one", "two")]
    for told in asked:
        desk.carry_out(told)

    with calls(monkeypatch) as sent:
        listed = desk.lab.send("GET", "leases?person=alice@example.com", token=desk.token).body["items"]
    assert {(one["stage"], one["lease_id"]) for one in listed} == {("active", told["request_id"]) for told in asked}
    assert sent == ["GetItem", "Query", "BatchGetItem"]


def test_a_token_has_its_minute_and_the_person_keeps_theirs(desk: Desk) -> None:
    few = desk.lab.new_token("few", Scope.LEASES_ASK, rate=1)

    told = [desk.ask(key=key, token=few) for key in ("one", "two")]

    assert [one.status for one in told] == [202, 429]
    assert told[1].error == (429, "RATE_LIMITED")
    assert desk.borrowed.ask().status == "ACTIVE"


def test_what_has_to_be_approved_waits_for_people_and_can_be_withdrawn(desk: Desk) -> None:
    asked = desk.asked(**WEEK)

    assert (asked["stage"], asked["rule"], asked["ends_at"]) == ("pending", "any-account", None)
    assert desk.give_back(asked["request_id"]).body["stage"] == "cancelled"
    assert desk.ask(**WEEK).body["stage"] == "cancelled"


def test_what_is_approved_right_before_it_is_withdrawn_is_given_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = desk.asked(**WEEK)
    cancel = operations.cancel

    def late(**given: Any) -> AccessRequest:
        desk.borrowed.story.approve(desk.record(asked))
        return cancel(**given)

    monkeypatch.setattr(operations, "cancel", late)
    assert desk.give_back(asked["request_id"]).body["stage"] == "ending"


def test_a_key_is_one_request_for_each_person_and_token(desk: Desk) -> None:
    asked = desk.asked()
    other = desk.lab.new_token("other", Scope.LEASES_ASK)

    assert desk.asked()["request_id"] == asked["request_id"]
    assert desk.ask(duration_seconds=7_200).error == (409, "IDEMPOTENCY_MISMATCH")
    assert desk.ask(person="ALICE@example.com").body["request_id"] == asked["request_id"]
    assert desk.ask(token=other).body["request_id"] != asked["request_id"]
    missing = desk.lab.send("POST", "leases", token=desk.token, body=ALICE)
    assert (missing.error, missing.body["error"]["field"]) == ((400, "MISSING_HEADER"), "Idempotency-Key")


@pytest.mark.parametrize("person", ["mallory@example.com", "olga@example.com", "nobody@example.com", "client:olga@example.com"])
def test_nobody_gets_what_they_could_not_ask_for(desk: Desk, person: str) -> None:
    """Olga operates, and made the token; neither lets her have more."""
    told = desk.ask(person=person, size="")

    assert told.error == (403, "REQUEST_REFUSED")
    assert requests.list_open(subject_id=person) == ()


def test_a_token_sees_and_gives_back_what_it_asked_for_and_nothing_else(desk: Desk) -> None:
    mine = desk.asked()
    other = desk.lab.new_token("other", Scope.LEASES_ASK)
    others = desk.ask(token=other).body
    own = desk.borrowed.ask(actor=desk.borrowed.story.bob)
    sandbox_of_alice = desk.borrowed.story.ask()
    person = "person=alice@example.com"

    for foreign in (others["request_id"], own.request_id, sandbox_of_alice.request_id):
        assert desk.lab.send("GET", f"leases/{foreign}", token=desk.token).error == (404, "LEASE_NOT_FOUND")
        assert desk.give_back(foreign).error == (404, "LEASE_NOT_FOUND")
    listed = desk.lab.send("GET", f"leases?{person}", token=desk.token).body
    assert listed == {"items": [mine], "unreadable": [], "next_cursor": None}
    assert desk.lab.send("GET", "leases?person=bob@example.com", token=desk.token).body["items"] == []

    everything = desk.lab.send("GET", f"leases?{person}", token=desk.admin_token).body["items"]
    assert {one["request_id"] for one in everything} == {mine["request_id"], others["request_id"]}
    assert desk.look(own.request_id, token=desk.admin_token)["asked_through"] is None
    # Care of the accounts is no care of other access.
    for verb in ("", "/give-back"):
        path = f"leases/{sandbox_of_alice.request_id}{verb}"
        assert desk.lab.send("POST" if verb else "GET", path, token=desk.admin_token).error == (404, "LEASE_NOT_FOUND")


def test_a_list_is_paged_to_its_end(desk: Desk) -> None:
    asked = [desk.asked(key=key)["request_id"] for key in ("one", "two")]
    first = desk.lab.send("GET", "leases?person=alice@example.com&limit=1", token=desk.token).body
    rest = desk.lab.send("GET", f"leases?person=alice@example.com&limit=1&cursor={first['next_cursor']}", token=desk.token).body

    assert sorted(one["request_id"] for page in (first, rest) for one in page["items"]) == sorted(asked)
    foreign = desk.lab.send("GET", f"leases?person=bob@example.com&cursor={first['next_cursor']}", token=desk.token)
    assert foreign.error == (400, "INVALID_CURSOR")


LONG = "x" * 10_000
TURNED = "a\u202eb"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        *(({"person": person}, "person") for person in ("", "alice", "@", LONG + "@example.com", f"{TURNED}@example.com", 7, None)),
        *(({"pool": pool}, "pool") for pool in ("", LONG, TURNED, 7)),
        *(({"permission_set": name}, "permission_set") for name in ("", "NoSuchAccess", LONG, "Po\u0000wer")),
        *(({"size": size}, "size") for size in (LONG, TURNED)),
        *(({"tags": tags}, "tags") for tags in ("env", "env=dev,env=prod", LONG, {"env": "dev"})),
        *(({"reason": reason}, "reason") for reason in ("", "  ", LONG, TURNED, None)),
        *(({"ticket_id": ticket}, "ticket_id") for ticket in (LONG, TURNED)),
        *(({"duration_seconds": seconds}, "duration_seconds") for seconds in (0, -1, 59, 10**9, 10**40, 1.5, "3600", True)),
        ({"account_id": "111111111111"}, "account_id"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_can_not_be_asked_for_is_told_by_its_field(desk: Desk, changes: dict[str, Any], field: str) -> None:
    told = desk.ask(**changes)

    assert told.error == (400, "INVALID_REQUEST")
    assert told.body["error"]["field"] == field
    assert told.length < 1_000
    assert requests.list_open(subject_id="alice@example.com") == ()


@pytest.mark.parametrize(
    "changes", [{"pool": "nowhere"}, {"permission_set": "ReadOnlyAccess"}, {"duration_seconds": 366 * 86_400}], ids=str
)
def test_what_no_rule_offers_is_refused_with_the_reason(desk: Desk, changes: dict[str, Any]) -> None:
    told = desk.ask(**changes)

    assert told.error in {(400, "INVALID_REQUEST"), (403, "REQUEST_REFUSED")}
    assert told.body["error"]["message"]
    assert requests.list_open(subject_id="alice@example.com") == ()


@pytest.mark.parametrize("account_id", ["1", "1111111111111", "11111111111a", "١١١١١١١١١١١١", "111111111111%0a", "x" * 10_000])
def test_what_is_no_account_id_is_no_account(desk: Desk, account_id: str) -> None:
    assert desk.admin("GET", f"accounts/{account_id}").status == 404
    assert desk.admin("POST", f"accounts/{account_id}/quarantine", **WHY).status == 404


@pytest.mark.parametrize("path", ["leases/{}", "admin/leases/{}/freeze"])
@pytest.mark.parametrize("name", ["nothing", "92FDBE9B-2727-4246-A439-EF1D1E7637E6", "x" * 10_000, str(uuid.UUID(int=0))])
def test_what_is_no_lease_is_not_found(desk: Desk, path: str, name: str) -> None:
    method = "POST" if "freeze" in path else "GET"

    assert desk.lab.send(method, path.format(name), token=desk.admin_token, body=WHY).error == (404, "LEASE_NOT_FOUND")


def test_the_pool_is_listed_shown_and_looked_after(desk: Desk) -> None:
    free, other = desk.borrowed.fill(2)
    new = "111111111111"
    desk.borrowed.pool.add([new], pool="labs")

    listed: dict[str, str] = {}
    cursor: str | None = ""
    while cursor is not None:
        page = desk.admin("GET", f"accounts?limit=1{cursor and '&cursor='}{cursor}").body
        listed |= {one["account_id"]: one["state"] for one in page["items"]}
        cursor = page["next_cursor"]
    assert listed == {free: "available", other: "available", new: "initial"}
    (only,) = desk.admin("GET", "accounts?pool=labs&state=initial").body["items"]
    assert (only["account_id"], only["is_being_cleaned"], only["certificate"]) == (new, False, None)
    shown = desk.admin("GET", f"accounts/{free}").body
    assert (shown["size"], shown["certificate"]["removed"], shown["person"], shown["fence"]) == ("small", 3, None, 0)

    kept = desk.admin("POST", f"accounts/{free}/quarantine", **WHY).body
    assert (kept["state"], kept["problem"]) == ("failed", "It mines coins.")
    assert desk.admin("POST", f"accounts/{free}/restore").body["state"] == "dirty"
    assert desk.admin("POST", f"accounts/{free}/restore").error == (409, "CONFLICT")
    assert desk.admin("POST", f"accounts/{other}/retire", **WHY).status == 200
    assert desk.admin("GET", f"accounts/{other}").error == (404, "ACCOUNT_NOT_FOUND")
    for verb in ("quarantine", "retire"):
        told = desk.admin("POST", f"accounts/{free}/{verb}", reason=" ")
        assert (told.error, told.body["error"]["field"]) == ((400, "INVALID_REQUEST"), "reason")


MANUAL = Path(__file__).parents[2] / "docs/leases.md"
NAMED = "3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11"


def test_the_calls_of_the_manual_do_what_it_says(desk: Desk) -> None:
    desk.borrowed.fill(1)
    desk.borrowed.pool.add(["111111111111"], pool="labs")
    held = desk.borrowed.held(actor=desk.borrowed.story.bob).request_id
    asking, caring = re.findall(r"(?ms)^(call [A-Z]+ .*?)^```", MANUAL.read_text())
    token = desk.token

    def say(line: str, named: str) -> Answer:
        method, path, *words = shlex.split(line.replace("workshop", "labs").replace(NAMED, named))
        given = dict(zip(words[::2], words[1::2], strict=True))
        key = given.get("-H", "").removeprefix("Idempotency-Key: ")
        headers = {"Idempotency_Key": key} if key else {}
        return desk.lab.send(method, path, token=token, body=given.get("-d", "").encode(), **headers)

    first, *lines = re.split(r"(?m)^call ", asking)[1:]
    asked = say(first, "")
    told = [say(line, asked.body["request_id"]) for line in lines]
    assert [asked.status, *(one.status for one in told)] == [202, 200, 200, 200]
    assert told[-1].body["stage"] == "ending"
    token = desk.admin_token
    told = [say(line, held) for line in re.split(r"(?m)^call ", caring)[1:]]
    assert [one.status for one in told] == [200, 200, 200, 200, 200, 202, 200, 200, 200]


def test_cleaning_is_ordered_of_the_job(desk: Desk) -> None:
    told = desk.admin("POST", "accounts-cleaning")

    assert (told.status, told.body) == (202, {"ordered": True})
    assert desk.queued == ["clean_accounts"]

    leases.configure(replace(current(), cleaner_arn=""))
    refused = desk.admin("POST", "accounts-cleaning")
    assert (refused.error, "No cleaner is set" in refused.body["error"]["message"]) == ((409, "CONFLICT"), True)
    assert desk.queued == ["clean_accounts"]


def test_a_lease_is_frozen_and_unfrozen_by_order(desk: Desk) -> None:
    (account_id,) = desk.borrowed.fill(1)
    asked = desk.asked()
    desk.carry_out(asked)
    path = f"leases/{asked['request_id']}"

    ordered = desk.admin("POST", f"{path}/freeze", **WHY).body
    assert (ordered["state"], ordered["wanted"], ordered["freeze_reason"]) == ("active", "frozen", "It mines coins.")
    leases.note_access_off(lease_id=asked["request_id"], actor=system("test"), now=desk.borrowed.story.clock.now())
    assert desk.look(asked["request_id"])["stage"] == "frozen"
    (listed,) = desk.admin("GET", "leases?pool=labs").body["items"]
    assert (listed["state"], listed["account_id"], listed["request_ids"]) == ("frozen", account_id, [asked["request_id"]])
    assert desk.admin("POST", f"{path}/unfreeze").body["wanted"] == "active"
    assert desk.admin("POST", f"leases/{uuid.uuid4()}/unfreeze").error == (404, "LEASE_NOT_FOUND")


def test_figures_have_their_time_and_nothing_is_no_zero(desk: Desk) -> None:
    desk.borrowed.fill(1)

    assert desk.carry_out(desk.asked())["spend"] is None
