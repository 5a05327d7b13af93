"""Taking and giving back over HTTP: every status and code, and the same body at every repetition."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from botocore.exceptions import ReadTimeoutError
from pytest_django import Settings

from accessportal.directory import operations as directory
from accessportal.directory.operations.claims import add_claim, remove_claim
from accessportal.directory.states import Claim, GroupRole
from accessportal.identity.queries import actor_named
from accessportal.kernel.clock import whole_second
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.proofs import Proof
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Status
from accessportal.tokens import operations as tokens
from accessportal.tokens import queries as queries_of_clients
from accessportal.tokens import store as token_store
from accessportal.tokens.states import ApiToken, Scope
from tests.api.conftest import Answer, Lab
from tests.fixtures_story import Story
from tests.fixtures_twin import when
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.conftest import OLGA, SETUP

HOUR = 3600
ALLOCATION = {"sandbox_id", "name", "external_id", "track_id", "allocated_at", "expires_at", "fence"}


def test_an_allocation_tells_all_that_a_track_needs(lab: Lab) -> None:
    (sandbox,) = lab.pool.fill(1)

    told = lab.allocate()

    assert told.status == 201
    assert told.body == {
        "sandbox_id": sandbox.sandbox_id,
        "name": sandbox.name,
        "external_id": sandbox.external_id,
        "track_id": "track-1",
        "allocated_at": int(lab.pool.clock.now().timestamp()),
        "expires_at": int(lab.pool.clock.now().timestamp()) + 4 * HOUR,
        "fence": 1,
    }
    assert told.headers["Location"] == f"/v1/sandboxes/{sandbox.sandbox_id}"
    assert lab.pool.now_of(sandbox).key == "track-1"


def test_a_repetition_is_told_the_same(lab: Lab) -> None:
    lab.pool.fill(3)
    first = lab.allocate()

    lab.pool.clock.advance(2 * HOUR)
    again = lab.allocate()

    assert (again.status, again.body) == (200, first.body)


def test_one_track_may_hold_several_by_keys_of_its_own(lab: Lab) -> None:
    lab.pool.fill(3)
    told = [lab.allocate(Idempotency_Key=key) for key in ("a", "b", "a")]

    assert [one.status for one in told] == [201, 201, 200]
    assert told[0].body == told[2].body
    assert told[0].body["sandbox_id"] != told[1].body["sandbox_id"]


def test_a_key_stands_for_one_request(lab: Lab) -> None:
    lab.pool.fill(3)
    lab.allocate(Idempotency_Key="key")

    assert lab.allocate(Idempotency_Key="key", X_Sandbox_Name_Prefix="lab-").error == (409, "IDEMPOTENCY_MISMATCH")
    assert "retry_after" not in lab.allocate(Idempotency_Key="key", X_Sandbox_Name_Prefix="lab-").body["error"]


def test_each_track_has_keys_of_its_own(lab: Lab) -> None:
    """Mallory's client uses the victim's name as its key, and the victim's own key; neither blocks nor tells."""
    lab.pool.fill(4)
    first = lab.allocate("mallory", Idempotency_Key="victim")
    victim = lab.allocate("victim")
    own = lab.allocate("victim", Idempotency_Key="key")
    other = lab.allocate("mallory", Idempotency_Key="key")

    assert [one.status for one in (first, victim, own, other)] == [201, 201, 201, 201]
    assert len({one.body["sandbox_id"] for one in (first, victim, own, other)}) == 4
    again = [lab.allocate("mallory", Idempotency_Key="victim"), lab.allocate("victim"), lab.allocate("victim", Idempotency_Key="key")]
    assert [(one.status, one.body) for one in again] == [(200, first.body), (200, victim.body), (200, own.body)]


def test_a_token_acts_for_its_own_tracks_alone(lab: Lab) -> None:
    lab.pool.fill(3)
    free, others = lab.track_token, lab.allocate("other").body["sandbox_id"]
    lab.track_token = lab.new_token("bound", tracks=["track-1", "lab-*"])

    assert lab.allocate("track-1").status == 201
    mine = lab.allocate("lab-7")
    assert (mine.status, lab.look(mine.body["sandbox_id"], "lab-7").status) == (201, 200)
    for track in ("track-10", "lab", "other"):
        refused = [lab.allocate(track), lab.give_back(others, track), lab.look(others, track)]
        assert [one.error for one in refused] == [(403, "TRACK_NOT_ALLOWED")] * 3
    assert lab.give_back(mine.body["sandbox_id"], "lab-7").status == 200
    lab.track_token = free
    assert lab.look(others, "other").status == 200


def test_a_token_holds_so_many_at_a_time(lab: Lab) -> None:
    lab.pool.fill(5)
    lab.track_token = lab.new_token("small", most_held=2)
    first, second = lab.allocate("track-1"), lab.allocate("track-2")

    refused = lab.allocate("track-3")
    assert refused.error == (409, "TOO_MANY_HELD")
    assert "holds 2 sandboxes" in refused.body["error"]["message"]
    assert lab.allocate("track-1").body == first.body, "what it has is told again"
    lab.give_back(second.body["sandbox_id"], "track-2")
    assert lab.allocate("track-3").status == 201
    assert lab.allocate("track-2").error == (409, "TOO_MANY_HELD")
    # Time gives back, too, whether or not a job has come by.
    lab.pool.clock.advance(4 * 3600 + 300)
    assert lab.allocate("track-4").status == 201


def test_a_token_dies_with_its_makers_right(story: Story, lab: Lab) -> None:
    lab.pool.fill(2)
    now = lab.pool.clock.now()
    claim = Claim("r-1", GroupRole.READER, ends_at=now + timedelta(minutes=10))
    add_claim(email="sam@example.com", group_id="/portal/operators", claim=claim, guards=(), actor=SETUP, now=now)
    sam = actor_named(email="sam@example.com", now=now)
    made = {name: tokens.create_token(name=name, scope=Scope.ADMIN, actor=sam, now=now) for name in ("one", "two")}
    assert made["one"].token.expires_at == whole_second(now + timedelta(minutes=10))
    for_good = tokens.create_token(name="three", scope=Scope.ADMIN, actor=story.olga, now=now).text
    lab.admin_token = made["one"].text
    assert lab.admin("GET", "stats").status == 200

    # The right is taken away before its end.
    remove_claim(email="sam@example.com", group_id="/portal/operators", claim_id="r-1", actor=SETUP, now=now)
    assert lab.admin("GET", "stats").error == (401, "TOKEN_ORPHANED")
    lab.admin_token = for_good
    assert lab.admin("GET", "stats").status == 200
    directory.create_person(email="max@example.com", name="Max", group_id="/portal/operators", role=GroupRole.READER, actor=SETUP, now=now)
    directory.revoke_membership(email="olga@example.com", group_id="/portal/operators", actor=SETUP, now=now)
    assert lab.admin("GET", "stats").error == (401, "TOKEN_ORPHANED")
    assert {one.name for one in queries_of_clients.list_of_maker(email="Sam@example.com").items} == {"one", "two"}


def test_a_token_does_not_pass_to_whoever_has_its_makers_address_next(story: Story, lab: Lab) -> None:
    lab.pool.fill(2)
    now = lab.pool.clock.now()
    create = partial(directory.create_person, email="max@example.com", name="Max", group_id="/portal/operators", role=GroupRole.READER)
    create(actor=SETUP, now=now)
    max_ = actor_named(email="max@example.com", now=now)
    lab.admin_token = tokens.create_token(name="old", scope=Scope.ADMIN, actor=max_, now=now).text
    assert lab.admin("GET", "stats").status == 200

    directory.delete_person(email="max@example.com", actor=SETUP, now=now)
    lab.pool.clock.advance(1)
    create(actor=SETUP, now=lab.pool.clock.now())
    assert actor_named(email="max@example.com", now=lab.pool.clock.now()).is_operator
    assert lab.admin("GET", "stats").error == (401, "TOKEN_ORPHANED")


def test_unknown_tokens_are_refused_sooner_and_shut_no_token_out(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.pool.fill(2)
    reads: list[str] = []
    read = token_store.get

    def counted(token_id: str) -> tuple[ApiToken, str] | None:
        reads.append(token_id)
        return read(token_id)

    monkeypatch.setattr(token_store, "get", counted)
    guesses = [f"apt_{number:012}_{'a' * 43}" for number in range(100)]

    told = [lab.send("GET", "sandboxes/x", token=guess, X_Track_ID="track-1") for guess in guesses]

    assert [one.error for one in told] == [(401, "INVALID_TOKEN")] * 30 + [(429, "RATE_LIMITED")] * 70
    assert len(reads) == 30, "beyond the limit a guess costs the table nothing"
    assert lab.allocate().status == 201, "a token from the same address is let in"
    made_since = lab.new_token("new")
    lab.pool.clock.advance(10)
    assert lab.send("POST", "allocate", token=made_since, X_Track_ID="track-2").status == 201
    lab.pool.clock.advance(60)
    assert lab.send("GET", "sandboxes/x", token=guesses[0], X_Track_ID="track-1").error == (401, "INVALID_TOKEN")


def test_a_release_closes_the_key(lab: Lab) -> None:
    lab.pool.fill(2)
    first = lab.allocate().body
    lab.give_back(first["sandbox_id"])

    anew = lab.allocate()

    assert anew.status == 201
    assert anew.body["sandbox_id"] != first["sandbox_id"]
    assert lab.allocate().body == anew.body


def test_a_prefix_chooses_by_name(lab: Lab) -> None:
    lab.pool.add("ext-1", name="linux-1")
    wanted = lab.pool.add("ext-2", name="windows-1")

    assert lab.allocate(X_Sandbox_Name_Prefix="windows-").body["sandbox_id"] == wanted.sandbox_id
    refused = lab.allocate("track-2", X_Sandbox_Name_Prefix="windows-")
    assert refused.error == (409, "NO_SANDBOXES_AVAILABLE")
    assert "windows-" in refused.body["error"]["message"]
    assert refused.body["error"]["retry_after"] == 60, "when another one comes back says nothing"


def test_an_empty_pool_says_when_to_come_again(lab: Lab) -> None:
    assert lab.allocate().body["error"]["retry_after"] == 60, "nothing is under way"
    lab.pool.fill(1)
    lab.allocate("track-2")

    refused = lab.allocate()

    assert refused.error == (409, "NO_SANDBOXES_AVAILABLE")
    assert refused.body["error"]["retry_after"] == 4 * HOUR + 300 + 60, "deadline, grace, and a run of the job"
    lab.pool.clock.advance(HOUR)
    assert lab.allocate().body["error"]["retry_after"] == 3 * HOUR + 300 + 60


def test_a_release_is_told_the_same_for_ever(lab: Lab) -> None:
    lab.pool.fill(1)
    lent = lab.allocate().body
    lab.pool.clock.advance(600)

    first = lab.give_back(lent["sandbox_id"])

    assert first.status == 200
    assert first.body == {
        "sandbox_id": lent["sandbox_id"],
        "status": "pending_deletion",
        "deletion_requested_at": lent["allocated_at"] + 600,
        "fence": 1,
    }
    lab.pool.clock.advance(5 * HOUR)
    assert lab.give_back(lent["sandbox_id"]).body == first.body


def test_nobody_elses_sandbox_is_given_back(lab: Lab) -> None:
    lab.pool.fill(1)
    lent = lab.allocate().body

    assert lab.give_back(lent["sandbox_id"], "track-2").error == (403, "NOT_SANDBOX_OWNER")
    assert lab.look(lent["sandbox_id"], "track-2").error == (403, "NOT_SANDBOX_OWNER")
    assert lab.give_back(lent["sandbox_id"], X_Fence="2").error == (403, "NOT_SANDBOX_OWNER")
    assert lab.give_back(lent["sandbox_id"], X_Fence="1").status == 200


@pytest.mark.parametrize("sandbox_id", ["nothing", "0" * 36, "x" * 300, "%00", "%F0%9F%A6%84"])
def test_an_unknown_sandbox_is_not_found(lab: Lab, sandbox_id: str) -> None:
    assert lab.give_back(sandbox_id).error == (404, "SANDBOX_NOT_FOUND")
    assert lab.look(sandbox_id).error == (404, "SANDBOX_NOT_FOUND")


def test_release_works_to_the_end_of_grace(lab: Lab) -> None:
    lab.pool.fill(2)
    early, late = lab.allocate("track-1").body, lab.allocate("track-2").body
    lab.pool.clock.advance(4 * HOUR + 299)
    assert lab.give_back(early["sandbox_id"], "track-1").status == 200

    lab.pool.clock.advance(1)
    assert lab.give_back(late["sandbox_id"], "track-2").error == (403, "ALLOCATION_EXPIRED")
    lab.pool.expire()
    assert lab.give_back(late["sandbox_id"], "track-2").error == (403, "ALLOCATION_EXPIRED")
    free_again(queries.get(sandbox_id=late["sandbox_id"]), now=lab.pool.clock.now())
    assert lab.give_back(late["sandbox_id"], "track-2", X_Fence="1").error == (403, "ALLOCATION_EXPIRED")
    assert lab.give_back(late["sandbox_id"], "track-3").error == (403, "NOT_SANDBOX_OWNER")


def test_an_allocation_that_may_no_longer_be_used_is_told_to_nobody_as_theirs(lab: Lab) -> None:
    lab.pool.fill(2)
    old = lab.allocate().body
    lab.pool.clock.advance(4 * HOUR)

    anew = lab.allocate()

    assert anew.status == 201
    assert anew.body["sandbox_id"] != old["sandbox_id"]
    assert anew.body["expires_at"] == old["expires_at"] + 4 * HOUR
    lab.pool.clock.advance(299)
    given_back = lab.give_back(old["sandbox_id"])
    assert (given_back.status, given_back.body["deletion_requested_at"]) == (200, old["expires_at"])
    assert lab.allocate().body == anew.body


def test_the_holder_sees_its_sandbox_whole(lab: Lab) -> None:
    lab.pool.fill(1)
    lent = lab.allocate().body

    seen = lab.look(lent["sandbox_id"])

    assert seen.status == 200
    assert {name: seen.body[name] for name in ALLOCATION} == lent
    assert (seen.body["status"], seen.body["grace_ends_at"]) == ("allocated", lent["expires_at"] + 300)
    lab.give_back(lent["sandbox_id"])
    assert lab.look(lent["sandbox_id"]).body["status"] == "pending_deletion"


def test_an_admin_sees_any_sandbox(lab: Lab) -> None:
    (sandbox,) = lab.pool.fill(1)

    assert lab.send("GET", f"sandboxes/{sandbox.sandbox_id}", token=lab.admin_token).body["status"] == "available"
    assert lab.send("GET", f"sandboxes/{sandbox.sandbox_id}").error == (400, "MISSING_HEADER")


@pytest.mark.parametrize("path", ["allocate", "sandboxes/some/mark-for-deletion"])
def test_a_missing_track_is_named(lab: Lab, path: str) -> None:
    refused = lab.send("POST", path)

    assert refused.error == (400, "MISSING_HEADER")
    assert refused.body["error"]["field"] == "X-Track-ID"


@pytest.mark.parametrize("name", ["X-Track-ID", "Idempotency-Key", "X-Sandbox-Name-Prefix"])
@pytest.mark.parametrize("value", ["", "x" * 201, "tab\there", "umlaut-ä", "bell\x07"])
def test_headers_that_break_a_rule_are_named(lab: Lab, name: str, value: str) -> None:
    lab.pool.fill(1)
    headers = {"X_Track_ID": "track-1"} | {name.replace("-", "_"): value}

    refused = lab.send("POST", "allocate", **headers)

    assert refused.error == (400, "INVALID_REQUEST")
    assert refused.body["error"]["field"] == name


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"X_Track_ID": "person:alice@example.com"}, "X-Track-ID"),
        ({"X_Track_ID": "person:alice@example.com", "Idempotency_Key": "one"}, "X-Track-ID"),
        ({"X_Track_ID": "request:abc"}, "X-Track-ID"),
        ({"X_Track_ID": "track-1", "Idempotency_Key": "request:abc"}, "Idempotency-Key"),
    ],
)
def test_what_stands_for_people_is_refused_by_the_header_that_was_sent(lab: Lab, headers: dict[str, str], field: str) -> None:
    lab.pool.fill(1)

    refused = lab.send("POST", "allocate", **headers)

    assert refused.error == (400, "INVALID_REQUEST")
    assert refused.body["error"]["field"] == field
    assert lab.allocate("request:abc", Idempotency_Key="one").status == 201


@pytest.mark.parametrize("fence", ["0", "-1", "one", "1.5", "9" * 30])
def test_a_fence_is_a_number_above_zero(lab: Lab, fence: str) -> None:
    assert lab.give_back("some", X_Fence=fence).body["error"]["field"] == "X-Fence"


def test_a_store_that_does_not_answer_is_our_fault_and_to_be_tried_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise Unavailable("secret host 10.0.0.7 did not answer", code="store_unavailable")

    monkeypatch.setattr(operations, "take", fail)

    refused = lab.allocate()

    assert refused.error == (503, "UNAVAILABLE")
    assert refused.headers["Retry-After"] == "2"
    assert "10.0.0.7" not in refused.body["error"]["message"]


@pytest.mark.parametrize("operation", ["GetItem", "Query", "TransactWriteItems"])
def test_an_answer_that_is_lost_on_the_way_is_our_fault_and_to_be_tried_again(lab: Lab, operation: str) -> None:
    lab.pool.fill(1)

    def lose(_parameters: object) -> None:
        raise ReadTimeoutError(endpoint_url="https://10.0.0.7")

    with when(operation, lose):
        refused = lab.allocate()

    assert refused.error == (503, "UNAVAILABLE")
    assert lab.allocate().status in {200, 201}


def test_an_operator_may_take_it_away_and_the_track_is_told(lab: Lab) -> None:
    (sandbox,) = lab.pool.fill(1)
    lab.allocate()
    operations.quarantine(sandbox_id=sandbox.sandbox_id, reason="Broken", actor=OLGA, now=lab.pool.clock.now())

    assert lab.give_back(sandbox.sandbox_id).error == (403, "NOT_SANDBOX_OWNER")
    assert lab.pool.status_of(sandbox) is Status.QUARANTINED


def test_who_took_and_released_is_in_the_history(lab: Lab) -> None:
    lab.pool.fill(1)
    lent = lab.allocate().body
    lab.give_back(lent["sandbox_id"])

    events = queries.history(sandbox_id=lent["sandbox_id"])

    client = f"client:{lab.tokens[lab.track_token].token_id}"
    assert [(event.action, event.actor) for event in events[1:]] == [("sandbox.taken", client), ("sandbox.released", client)]


def test_what_people_hold_by_request_is_out_of_reach(lab: Lab) -> None:
    """The limit for each person and the keys of requests are the portal's to keep."""
    lab.pool.fill(2)
    proof = operations.hold(
        claim="r-1",
        key="request:r-1",
        track="person:alice@example.com",
        name_prefix="",
        ends_at=lab.pool.clock.now() + timedelta(hours=1),
        most_held=1,
        guards=(),
        actor=OLGA,
        clock=lab.pool.clock,
    )
    assert isinstance(proof, Proof)

    for told, field in (
        (lab.allocate("person:alice@example.com"), "X-Track-ID"),
        (lab.allocate("person:alice@example.com", Idempotency_Key="k"), "X-Track-ID"),
        (lab.allocate(Idempotency_Key="request:r-2"), "Idempotency-Key"),
        (lab.give_back(proof.job_id, "person:alice@example.com"), "X-Track-ID"),
    ):
        assert (told.error, told.body["error"]["field"]) == ((400, "INVALID_REQUEST"), field)
    assert lab.look(proof.job_id, "person:alice@example.com").error == (403, "NOT_SANDBOX_OWNER")
    held = queries.get(sandbox_id=proof.job_id)
    assert (held.status, held.track) == (Status.ALLOCATED, "person:alice@example.com")
    assert lab.allocate().status == 201


def test_behind_a_proxy_wrong_tokens_count_for_who_sent_them(lab: Lab, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = 1
    guess = f"apt_{'a' * 12}_{'a' * 43}"

    def told(address: str) -> Answer:
        return lab.send("GET", "sandboxes/x", token=guess, X_Track_ID="track-1", X_Forwarded_For=address)

    assert [told("192.0.2.1").status for _ in range(31)] == [401] * 30 + [429]
    assert told("192.0.2.2").status == 401
    assert [told("2001:db8::1").status for _ in range(30)] == [401] * 30
    assert told("2001:db8::2").status == 429, "whoever has one address of IPv6 has its neighbours, too"
