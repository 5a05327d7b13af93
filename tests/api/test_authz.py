"""Approvals and relationships over HTTP: the law of scopes, the end, repeated requests, bad input, and what each costs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import botocore.endpoint
import pytest
from botocore.exceptions import EndpointConnectionError

from accessportal.audit import queries as audit
from accessportal.authz import operations, queries, store
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.authz.states import TtlPolicy
from accessportal.kernel.clock import to_epoch
from accessportal.tokens.states import Scope
from tests.api.conftest import Answer, Lab
from tests.sandboxes.conftest import OLGA
from tests.sandboxes.test_requests import requests

ALICE: dict[str, Any] = {
    "kind": "approval",
    "scope": "tenant:acme",
    "identity": "alice",
    "resource": "https://api.example.com/data",
    "action": "GET",
}
EDITOR: dict[str, Any] = {"kind": "relationship", "scope": "tenant:acme", "subject": "alice", "relation": "editor", "object": "docs/1"}
HOUR: dict[str, Any] = {"ttl_seconds": 3_600}
# Every question and every write, about what is named.
CALLS: dict[str, dict[str, Any]] = {
    "grant": ALICE | HOUR,
    "extend": ALICE | HOUR,
    "revoke": ALICE,
    "get": ALICE,
    "list": {"kind": "approval", "scope": "tenant:acme"},
    "count": {"kind": "approval", "scope": "tenant:acme"},
    "check": ALICE,
    "chain": {"scope": "tenant:acme", "subject": "alice", "relation": "editor", "object": "docs/1"},
    "policy": {"scope": "tenant:acme"},
}


@dataclass
class Program:
    """A program with a token of its own."""

    lab: Lab
    token: str

    def post(self, verb: str, body: Any, **headers: str) -> Answer:
        return self.lab.send("POST", f"authz/{verb}", token=self.token, body=body, **headers)

    def told(self, verb: str, body: Any, **headers: str) -> Any:
        answer = self.post(verb, body, **headers)
        assert answer.status in {200, 201}, answer
        return answer.body

    def allows(self, body: dict[str, Any], verb: str = "check") -> bool:
        return bool(self.told(verb, body)["allowed"])


def program(lab: Lab, home: str, scope: Scope = Scope.AUTHZ_WRITE, **options: Any) -> Program:
    return Program(lab, lab.new_token(f"{scope} {home}", scope, home=home, **options))


@pytest.fixture
def everything(lab: Lab) -> Program:
    return program(lab, "global")


@pytest.fixture
def acme(lab: Lab) -> Program:
    return program(lab, "tenant:acme")


def test_what_is_granted_is_answered_until_it_is_revoked(lab: Lab, acme: Program) -> None:
    end = to_epoch(lab.pool.clock.now()) + 3_600
    made = acme.post("grant", ALICE | HOUR | {"metadata": {"ticket": "T-1"}})

    assert made.status == 201
    by = f"client:{lab.tokens[acme.token].token_id}"
    record = ALICE | {
        "granted_by": by,
        "granted_at": end - 3_600,
        "expires_at": end,
        "ttl_seconds": 3_600,
        "metadata": {"ticket": "T-1"},
        "key": "approvals:tenant:acme:alice:https://api.example.com/data:GET",
    }
    assert made.body == {"record": record, "warnings": []}
    assert acme.told("get", ALICE) == record
    yes = acme.told("check", ALICE)
    assert (yes["allowed"], yes["why"], yes["until"], yes["by"]) == (True, "granted", end, [record])
    assert yes["message"]

    longer = acme.told("extend", ALICE | {"ttl_seconds": 7_200})["record"]
    assert (longer["expires_at"], longer["granted_at"]) == (end + 3_600, end - 3_600)
    assert acme.told("revoke", ALICE) == {"revoked": True}
    no = acme.told("check", ALICE)
    assert (no["allowed"], no["why"], no["until"], no["by"]) == (False, "none", None, [])
    for verb in ("get", "extend", "revoke"):
        assert acme.post(verb, ALICE).error == (404, "RECORD_NOT_FOUND")
    events = [event.action for event in audit.history(f"approval#tenant:acme#{_names(ALICE)}").items]
    assert events == ["approval.revoked", "approval.extended", "approval.granted"]


def _names(body: dict[str, Any]) -> str:
    return "#".join(body[name] for name in ("identity", "resource", "action"))


def test_relationships_are_granted_and_chained(acme: Program) -> None:
    member = {"kind": "relationship", "scope": "tenant:acme", "relation": "member", "relation_type": "membership"}
    for subject, target in (("alice", "payments"), ("payments", "engineering")):
        made = acme.told("grant", member | HOUR | {"subject": subject, "object": target})["record"]
        assert (made["relation_type"], made["subject"], made["object"]) == ("membership", subject, target)
    asked = {"scope": "tenant:acme", "subject": "alice", "relation": "member", "object": "engineering"}

    found = acme.told("chain", asked)
    assert (found["allowed"], [link["object"] for link in found["by"]]) == (True, ["payments", "engineering"])
    assert acme.told("chain", asked | {"depth": 1}) == found | {"allowed": False, "why": "too_deep", "until": None, "by": []} | {
        "message": acme.told("chain", asked | {"depth": 1})["message"]
    }
    assert not acme.allows(asked | {"kind": "relationship"})
    assert not acme.allows(asked | {"object": "sales"}, "chain")


def test_a_set_is_asked_for_only_when_that_is_said(acme: Program) -> None:
    for resource in ("docs/1", "docs/12"):
        acme.told("grant", ALICE | HOUR | {"resource": resource})

    assert acme.allows(ALICE | {"resource": "docs/*", "in_set": True})
    assert not acme.allows(ALICE | {"resource": "docs/*"})
    assert not acme.allows(ALICE | {"resource": "do/*", "in_set": True})
    assert acme.post("check", ALICE | {"resource": "d*s", "in_set": True}).error == (400, "INVALID_REQUEST")


HOMES = ("global", "tenant:acme", "tenant:acme-corp", "env:prod", "tenant:acme:env:prod", "custom:a", "custom:a:b")
REACHED = {
    "global": set(HOMES),
    "tenant:acme": {"tenant:acme", "tenant:acme:env:prod"},
    "custom:a": {"custom:a", "custom:a:b"},
}


@pytest.mark.parametrize("home", HOMES)
def test_a_token_reaches_what_the_law_says(lab: Lab, everything: Program, home: str) -> None:
    for asked in HOMES:
        everything.told("grant", ALICE | HOUR | {"scope": asked})
    caller = program(lab, home)

    for asked, (verb, body) in itertools.product(HOMES, CALLS.items()):
        answer = caller.post(verb, body | {"scope": asked} | ({"if_exists": "replace"} if verb == "grant" else {}))
        is_reached = asked in REACHED.get(home, {home})
        assert (answer.status < 300) is is_reached, (home, asked, verb, answer)
        if not is_reached:
            assert answer.error == (403, "UNAUTHORIZED_SCOPE_ACCESS")
            assert everything.allows(ALICE | {"scope": asked}), verb
        elif verb == "revoke":
            everything.told("grant", ALICE | HOUR | {"scope": asked})


def test_what_lies_outside_answers_alike_whether_it_exists_or_not_and_is_not_read(
    lab: Lab, acme: Program, everything: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte but for the number of the request, and with the token alone read."""
    for body in (ALICE, EDITOR):
        everything.told("grant", body | HOUR | {"scope": "tenant:widgets"})
    acme.told("check", ALICE)
    heard = set[str]()
    for (verb, body), name in itertools.product(CALLS.items(), ("alice", "mallory")):
        who = {one: name for one in ("identity", "subject") if one in body}
        with requests(monkeypatch) as asked:
            answer = acme.post(verb, body | who | {"scope": "tenant:widgets"}, X_Request_ID="1", Idempotency_Key="k")
        heard.add(f"{answer.status} {answer.body} {answer.length} {sorted(answer.headers.items())}")
        assert asked == ["GetItem"], verb
    assert len(heard) == 1
    batch = acme.told("batch", {"checks": [ALICE | {"scope": "tenant:widgets", "identity": name} for name in ("alice", "mallory")]})
    assert batch["answers"][0] == batch["answers"][1]
    assert batch["answers"][0]["error"]["code"] == "UNAUTHORIZED_SCOPE_ACCESS"
    # Where it reaches, what is not there is a plain no.
    assert not acme.allows(ALICE | {"identity": "mallory"})


@pytest.mark.parametrize(("seconds", "counts"), [(-1, True), (0, False), (1, False), (-3_000, True)])
def test_the_end_decides_everywhere_while_the_item_lies_there(lab: Lab, acme: Program, seconds: int, counts: bool) -> None:
    """At the end, a second before and after it, and with the clock set back from after it."""
    for body in (ALICE, EDITOR):
        acme.told("grant", body | HOUR)
    if seconds < -1:
        lab.pool.clock.advance(3_700)
        assert not acme.allows(ALICE)
        lab.pool.clock.advance(-3_700)
    lab.pool.clock.advance(3_600 + seconds)

    assert acme.allows(ALICE) is counts
    assert acme.allows(ALICE | {"resource": "https://api.example.com/*", "in_set": True}) is counts
    assert acme.allows(EDITOR) is counts
    assert acme.allows({name: value for name, value in EDITOR.items() if name != "kind"}, "chain") is counts
    (one,) = acme.told("batch", {"checks": [ALICE]})["answers"]
    assert one["answer"]["allowed"] is counts
    assert acme.post("get", ALICE).status == (200 if counts else 404)
    assert acme.told("count", CALLS["count"])["count"] == counts
    assert len(_every(acme, {"kind": "approval", "scope": "tenant:acme"})) == counts
    assert len(_every(acme, {"kind": "approval", "scope": "tenant:acme", "identity": "alice"})) == counts
    assert len(_every(acme, {"kind": "relationship", "scope": "tenant:acme", "object": "docs/1"})) == counts
    assert APPROVALS.get(read_scope("tenant:acme"), (ALICE["identity"], ALICE["resource"], ALICE["action"])) is not None


def _every(caller: Program, body: dict[str, Any]) -> list[Any]:
    found, cursor = list[Any](), ""
    while True:
        page = caller.told("list", body | {"cursor": cursor})
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = page["next_cursor"]


def test_lists_are_narrowed_by_whatever_is_given(acme: Program) -> None:
    for who, what, scope, ttl in (
        ("alice", "docs/1", "tenant:acme", 3_600),
        ("alice", "docs/2", "tenant:acme", 7_200),
        ("bob", "docs/1", "tenant:acme", 3_600),
        ("alice", "docs/1", "tenant:acme:env:prod", 3_600),
    ):
        acme.told("grant", ALICE | {"identity": who, "resource": what, "scope": scope, "ttl_seconds": ttl})
    soon = acme.told("get", ALICE | {"resource": "docs/1"})["expires_at"]
    own = {"kind": "approval", "scope": "tenant:acme"}

    def found(**more: Any) -> set[tuple[str, str, str]]:
        return {(one["identity"], one["resource"], one["scope"]) for one in _every(acme, own | {"limit": 1} | more)}

    alice1, alice2, bob1 = (("alice", "docs/1", "tenant:acme"), ("alice", "docs/2", "tenant:acme"), ("bob", "docs/1", "tenant:acme"))
    prod = ("alice", "docs/1", "tenant:acme:env:prod")
    assert found() == {alice1, alice2, bob1}
    assert found(is_wide=True) == {alice1, alice2, bob1, prod}
    assert found(is_wide=True, identity="alice", resource="docs/1") == {alice1, prod}
    assert found(identity="alice") == {alice1, alice2}
    assert found(identity="alice", resource="docs/2") == {alice2}
    assert found(resource="docs/1", action="GET") == {alice1, bob1}
    assert found(resource="docs/1") == {alice1, bob1}
    assert found(resource="docs/1", action="POST") == set()
    assert found(ends_by=soon) == {alice1, bob1}
    assert found(identity="alice", ends_by=soon) == {alice1}
    assert [acme.told("count", own | {"is_wide": wide})["count"] for wide in (False, True)] == [3, 4]


def test_a_cursor_is_good_for_its_own_list_alone(acme: Program, everything: Program) -> None:
    for number in range(3):
        acme.told("grant", ALICE | HOUR | {"resource": f"docs/{number}"})
    own = {"kind": "approval", "scope": "tenant:acme", "identity": "alice", "limit": 1}
    cursor = acme.told("list", own)["next_cursor"]

    for other in (
        {"identity": "bob"},
        {"scope": "tenant:acme:env:prod"},
        {"identity": None},
        {"cursor": "forged"},
        {"identity": None, "cursor": "99:"},
        {"identity": None, "cursor": "²:"},
    ):
        assert acme.post("list", own | {"cursor": cursor} | other).error == (400, "INVALID_CURSOR"), other


def test_a_batch_has_an_answer_for_each(acme: Program) -> None:
    acme.told("grant", ALICE | HOUR)
    acme.told("grant", EDITOR | HOUR)
    checks = [
        ALICE,
        ALICE | {"identity": "bob"},
        ALICE | {"scope": "tenant:widgets"},
        ALICE | {"scope": "tenant:"},
        ALICE | {"identity": " "},
        EDITOR,
        EDITOR | {"kind": "chain"},
        EDITOR | {"object": "docs/*", "in_set": True},
        EDITOR | {"kind": "chain", "depth": 99},
    ]

    answers = acme.told("batch", {"checks": checks})["answers"]
    assert [one["answer"] and one["answer"]["allowed"] for one in answers] == [True, False, None, None, None, True, True, True, None]
    told = [(one["error"]["code"], one["error"]["field"]) for one in answers if one["error"]]
    assert told == [
        ("UNAUTHORIZED_SCOPE_ACCESS", ""),
        ("INVALID_REQUEST", "scope"),
        ("INVALID_REQUEST", "identity"),
        ("INVALID_REQUEST", "depth"),
    ]
    assert acme.told("batch", {"checks": []}) == {"answers": []}
    assert len(acme.told("batch", {"checks": [ALICE] * 100})["answers"]) == 100
    assert acme.post("batch", {"checks": [ALICE] * 101}).error == (400, "INVALID_REQUEST")
    broken = acme.post("batch", {"checks": [ALICE, {**ALICE, "action": 7}]})
    assert (broken.error, broken.body["error"]["field"]) == ((400, "INVALID_REQUEST"), "checks.1.action")


def test_chains_and_sets_of_a_batch_count_as_requests_of_their_own(lab: Lab) -> None:
    slow = program(lab, "tenant:acme", rate=5)
    chain, below = EDITOR | {"kind": "chain"}, EDITOR | {"object": "docs/*", "in_set": True}
    assert [slow.post("batch", {"checks": checks}).status for checks in ([ALICE] * 100, [ALICE, chain, below])] == [200, 200]

    refused = slow.post("batch", {"checks": [chain]})

    assert refused.error == (429, "RATE_LIMITED")
    assert 1 <= refused.body["error"]["retry_after"] <= 60
    lab.pool.clock.advance(refused.body["error"]["retry_after"])
    assert slow.post("batch", {"checks": [chain, below]}).status == 200
    assert slow.post("batch", {"checks": [chain] * 100}).error == (429, "RATE_LIMITED")


def test_a_store_that_does_not_answer_is_neither_yes_nor_no(acme: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    send = botocore.endpoint.Endpoint.make_request

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        if b"ApiTokens" not in request_dict["body"]:
            raise EndpointConnectionError(endpoint_url="http://away")
        return send(self, operation_model, request_dict)

    monkeypatch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
    everyone = {**CALLS, "batch": {"checks": [ALICE, EDITOR]}}
    assert {verb: acme.post(verb, body).error for verb, body in everyone.items()} == dict.fromkeys(everyone, (503, "UNAVAILABLE"))


def test_a_check_is_one_strong_read_beside_the_tokens(acme: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    acme.told("grant", ALICE | HOUR)
    acme.told("grant", EDITOR | HOUR)
    token = "GetItem"
    counted = {
        "check": (ALICE, [token, "GetItem"]),
        "get": (ALICE, [token, "GetItem"]),
        "batch": ({"checks": [ALICE, ALICE | {"identity": "bob"}] * 50}, [token, "BatchGetItem"]),
        "chain": (CALLS["chain"], [token, "Query"]),
        "list": (CALLS["list"] | {"identity": "alice"}, [token, "Query"]),
        "extend": (ALICE | HOUR, [token, "GetItem", "BatchGetItem", "TransactWriteItems"]),
        "revoke": (ALICE, [token, "GetItem", "TransactWriteItems"]),
        "grant": (ALICE | HOUR | {"identity": "bob"}, [token, "BatchGetItem", "GetItem", "TransactWriteItems"]),
    }
    for verb, (body, expected) in counted.items():
        with requests(monkeypatch) as asked:
            acme.told(verb, body)
        assert asked == expected, verb


def test_a_repeated_request_does_nothing_twice(lab: Lab, acme: Program) -> None:
    first = acme.post("grant", ALICE | HOUR, Idempotency_Key="one")
    again = acme.post("grant", ALICE | HOUR, Idempotency_Key="one")
    assert (first.status, again.status, again.body) == (201, 200, first.body)
    assert acme.post("grant", ALICE | HOUR).error == (409, "ALREADY_GRANTED")
    assert acme.post("grant", ALICE | HOUR, Idempotency_Key="two").error == (409, "ALREADY_GRANTED")

    lab.pool.clock.advance(60)
    moved = acme.told("extend", ALICE | {"ttl_seconds": 7_200}, Idempotency_Key="three")
    lab.pool.clock.advance(60)
    assert acme.told("extend", ALICE | {"ttl_seconds": 7_200}, Idempotency_Key="three") == moved
    # Late, after another has come between: it is told how the record stands now.
    assert acme.told("grant", ALICE | HOUR, Idempotency_Key="one") == moved
    for verb, body in (("grant", ALICE | {"ttl_seconds": 60}), ("extend", ALICE | HOUR), ("revoke", ALICE), ("grant", EDITOR | HOUR)):
        assert acme.post(verb, body, Idempotency_Key="one").error == (409, "IDEMPOTENCY_MISMATCH")

    assert [acme.told("revoke", ALICE, Idempotency_Key="four") for _ in range(2)] == [{"revoked": True}] * 2
    gone = acme.post("grant", ALICE | HOUR, Idempotency_Key="one")
    assert gone.error == (409, "CONFLICT")
    assert not acme.allows(ALICE)
    events = [event.action for event in audit.history(f"approval#tenant:acme#{_names(ALICE)}").items]
    assert events == ["approval.revoked", "approval.extended", "approval.granted"]
    # Each token has keys of its own, and a key is good for a day.
    assert program(lab, "tenant:acme").post("grant", ALICE | HOUR, Idempotency_Key="one").status == 201
    lab.pool.clock.advance(86_400)
    assert acme.post("grant", ALICE | HOUR, Idempotency_Key="one").status == 201


def test_the_same_request_twice_at_once_is_written_once(acme: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is written between this one's look at the key and its own write."""
    real = store.request_of_key
    sent = list[Answer]()

    def look(name: str, **options: Any) -> str | None:
        found = real(name, **options)
        if not sent:
            sent.append(Answer(0, {}, None, 0))
            sent.append(acme.post("grant", ALICE | HOUR, Idempotency_Key="one"))
        return found

    monkeypatch.setattr(store, "request_of_key", look)
    late = acme.post("grant", ALICE | HOUR, Idempotency_Key="one")
    assert (sent[1].status, late.status, late.body) == (201, 200, sent[1].body)


def test_what_a_token_writes_ends_with_it(lab: Lab) -> None:
    end = lab.pool.clock.now() + timedelta(minutes=30)
    bound = program(lab, "tenant:acme", expires_at=end)

    sooner = f"It ends sooner, at {end:%Y-%m-%d %H:%M} UTC: what you give ends with your own right."
    for body in (ALICE | HOUR, ALICE | {"if_exists": "replace"}, ALICE | HOUR | {"if_exists": "extend"}, EDITOR):
        told = bound.told("grant", body)
        assert (told["record"]["expires_at"], told["warnings"]) == (to_epoch(end), [sooner])
    told = bound.told("extend", ALICE | {"ttl_seconds": 7_200})
    assert (told["record"]["expires_at"], told["warnings"]) == (to_epoch(end), [sooner])
    told = bound.told("extend", ALICE | {"ttl_seconds": 600})
    assert (told["record"]["expires_at"], told["warnings"]) == (to_epoch(end) - 1_200, [])


def test_the_policy_of_a_scope_bounds_and_is_shown(lab: Lab, acme: Program) -> None:
    now, operator = lab.pool.clock.now(), caller_of(OLGA)
    policy = TtlPolicy(600, 300, 900)
    operations.set_policy(scope=read_scope("tenant:acme"), policy=policy, caller=operator, now=now)

    shown = acme.told("policy", {"scope": "tenant:acme:env:prod"})
    assert (shown["policy_of"], shown["min_seconds"], shown["max_seconds"], shown["is_enforced"]) == ("tenant:acme", 300, 900, True)
    refused = acme.post("grant", ALICE | {"ttl_seconds": 299})
    assert (refused.error, refused.body["error"]["field"]) == ((400, "INVALID_REQUEST"), "ttl_seconds")
    assert "The shortest time is 5 min, by the policy of tenant:acme." in refused.body["error"]["message"]
    assert acme.told("grant", ALICE)["record"]["ttl_seconds"] == 600

    advice = TtlPolicy(600, 300, 900, is_enforced=False)
    operations.set_policy(scope=read_scope("tenant:acme"), policy=advice, caller=operator, now=now)
    (warning,) = acme.told("grant", EDITOR | HOUR)["warnings"]
    assert "The longest time is 15 min" in warning


BAD = [
    ({"scope": "tenant:acme:x"}, "scope"),
    ({"scope": "tenant:"}, "scope"),
    ({"scope": ""}, "scope"),
    ({"scope": "custom:a::b"}, "scope"),
    ({"scope": "tenant:" + "a" * 10_000}, "scope"),
    ({"identity": ""}, "identity"),
    ({"identity": " alice"}, "identity"),
    ({"identity": "a" * 10_000}, "identity"),
    ({"identity": "a\u0000b"}, "identity"),
    ({"identity": "\u202ealice"}, "identity"),
    ({"identity": "e\u0301"}, "identity"),
    ({"identity": "\u200b"}, "identity"),
    ({"identity": "é" * 400}, "identity"),
    ({"action": "é" * 400}, "action"),
    ({"resource": "a\nb"}, "resource"),
    ({"action": 7}, "action"),
    ({"action": None}, "action"),
    ({"ttl_seconds": -1}, "ttl_seconds"),
    ({"ttl_seconds": 0}, "ttl_seconds"),
    ({"ttl_seconds": 59}, "ttl_seconds"),
    ({"ttl_seconds": 10**30}, "ttl_seconds"),
    ({"ttl_seconds": 1.5}, "ttl_seconds"),
    ({"ttl_seconds": True}, "ttl_seconds"),
    ({"ttl_seconds": "60"}, "ttl_seconds"),
    ({"metadata": {"": "x"}}, "metadata"),
    ({"metadata": {"a": "x" * 501}}, "metadata"),
    ({"metadata": {"a": 7}}, "metadata"),
    ({"metadata": {str(number): "x" for number in range(21)}}, "metadata"),
    ({"if_exists": "ignore"}, "if_exists"),
    ({"kind": "grant"}, "kind"),
    ({"surprise": 1}, "surprise"),
]


@pytest.mark.parametrize("name", ["\ud800", "é" * 400, " alice", "a" * 10_000])
@pytest.mark.parametrize("verb", ["extend", "revoke", "get", "check"])
def test_a_name_that_can_not_be_is_refused_by_every_verb(acme: Program, verb: str, name: str) -> None:
    refused = acme.post(verb, ALICE | {"action": name})
    assert (refused.error, refused.body["error"]["field"]) == ((400, "INVALID_REQUEST"), "action")


@pytest.mark.parametrize("filters", [{"identity": "\ud800"}, {"resource": "\ud800", "action": "GET"}])
def test_a_name_that_can_not_be_is_refused_by_lists(acme: Program, filters: dict[str, str]) -> None:
    refused = acme.post("list", {"kind": "approval", "scope": "tenant:acme"} | filters)
    assert (refused.error, refused.body["error"]["field"]) == ((400, "INVALID_REQUEST"), next(iter(filters)))


@pytest.mark.parametrize(("given", "field"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input_names_its_field(acme: Program, given: dict[str, Any], field: str) -> None:
    refused = acme.post("grant", ALICE | HOUR | given)

    assert (refused.error, refused.body["error"]["field"]) == ((400, "INVALID_REQUEST"), field)
    assert len(refused.body["error"]["message"]) < 400
    assert acme.told("count", CALLS["count"])["count"] == 0


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'{"kind": "approval"', b'"approval"', b'{"scope": "global"}', b'{"kind": "\\ud800"}']
)
def test_what_is_no_body_is_told(acme: Program, body: bytes) -> None:
    for verb in ("grant", "check", "list", "batch"):
        assert acme.post(verb, body).error == (400, "INVALID_REQUEST"), verb


def test_names_that_read_alike_in_one_text_are_two(acme: Program) -> None:
    for identity, resource in (("a:b", "c"), ("a", "b:c")):
        acme.told("grant", ALICE | HOUR | {"identity": identity, "resource": resource})

    assert acme.told("count", CALLS["count"])["count"] == 2
    acme.told("revoke", ALICE | {"identity": "a:b", "resource": "c"})
    assert acme.allows(ALICE | {"identity": "a", "resource": "b:c"})
    assert not acme.allows(ALICE | {"identity": "a:b", "resource": "c"})


def test_a_token_that_only_checks_changes_nothing(lab: Lab) -> None:
    reader = program(lab, "tenant:acme", Scope.AUTHZ_CHECK)

    for verb, body in CALLS.items():
        expected = {"grant": 403, "extend": 403, "revoke": 403, "get": 404}.get(verb, 200)
        assert reader.post(verb, body).status == expected, verb
    assert queries.count_in_scope(APPROVALS, read_scope("tenant:acme"), caller=caller_of(OLGA), now=lab.pool.clock.now()) == 0
