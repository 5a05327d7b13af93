"""How often DynamoDB is asked for a whole request, its token included, and that reading them together weakens nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accessportal.sandboxes import models
from accessportal.sandboxes.operations import taking
from accessportal.sandboxes.states import Status
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from tests.api.conftest import Lab
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.test_requests import requests

pytestmark = pytest.mark.usefixtures("quick_look")


@pytest.fixture
def lab(lab: Lab) -> Lab:
    """The token was let in before: what is used once a minute is noted, and its share of requests reserved."""
    lab.pool.fill(40)
    assert lab.allocate("track-0").status == 201
    return lab


def test_a_take_with_its_token_is_three_requests_and_a_release_two(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with requests(monkeypatch) as asked:
        lent = lab.allocate(Idempotency_Key="one").body
    assert [name for name in asked if name != "Query"] == ["BatchGetItem", "TransactWriteItems"]
    assert asked.count("Query") <= 2

    with requests(monkeypatch) as asked:
        assert lab.give_back(lent["sandbox_id"], X_Fence="1").status == 200
    assert asked == ["BatchGetItem", "TransactWriteItems"]


def test_a_token_that_is_refused_is_read_and_nothing_else(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    token_id = lab.tokens[lab.track_token].token_id
    lent = lab.allocate().body
    wrong = f"apt_{token_id}_{'a' * 43}"
    with requests(monkeypatch) as asked:
        assert lab.send("POST", "allocate", token=wrong, X_Track_ID="track-1").error == (401, "INVALID_TOKEN")
        assert lab.send("POST", "allocate", token=f"apt_{'a' * 12}_{'a' * 43}", X_Track_ID="track-1").status == 401
    assert asked == ["GetItem", "GetItem"]

    lab.revoke(lab.track_token)
    with requests(monkeypatch) as asked:
        told = [lab.give_back(lent["sandbox_id"]).error for _ in range(2)]
    assert told == [(401, "TOKEN_REVOKED")] * 2
    assert len(asked) == 2, "whatever was read with it"
    assert lab.admin("GET", f"sandboxes?status={Status.ALLOCATED}").body["items"]


def test_a_token_that_ends_or_has_used_its_minute_up_writes_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    few = lab.new_token("few", rate=1)
    lent = lab.send("POST", "allocate", token=few, X_Track_ID="track-9").body
    short = lab.new_token("short", expires_at=lab.pool.clock.now() + timedelta(seconds=30))
    assert lab.send("POST", "allocate", token=short, X_Track_ID="track-8").status == 201

    with requests(monkeypatch) as asked:
        path = f"sandboxes/{lent['sandbox_id']}/mark-for-deletion"
        assert lab.send("POST", path, token=few, X_Track_ID="track-9").error == (429, "RATE_LIMITED")
        lab.pool.clock.advance(30)
        assert lab.send("POST", "allocate", token=short, X_Track_ID="track-8", Idempotency_Key="two").error == (401, "TOKEN_EXPIRED")
    assert "TransactWriteItems" not in asked


def test_what_was_read_with_the_token_is_used_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is overtaken between the read and the write decides anew, on what stands then."""
    lend_any, others = taking.lend_any, list[str]()

    def overtaken(*args: object) -> object:
        if not others:
            others.append("")
            others.append(lab.pool.take("track-1", key="one").sandbox.sandbox_id)
        return lend_any(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(taking, "lend_any", overtaken)

    told = lab.allocate(Idempotency_Key="one")

    assert (told.status, told.body["sandbox_id"]) == (200, others[1])


def test_an_item_that_can_not_be_read_leaves_the_token_its_limit(lab: Lab) -> None:
    """The read of the token does not fail for what was to be read with it."""
    pk, sk = models.idempotency_item_key("track-1\nodd")
    seed.table_named("SandboxPool").put_item(Item={"PK": pk, "SK": sk, "fence": "nonsense"})
    few = lab.new_token("few", rate=2)

    told = [lab.send("POST", "allocate", token=few, X_Track_ID="track-1", Idempotency_Key="odd").status for _ in range(3)]

    assert told == [503, 503, 429]
    assert tokens.authenticate(text=few, now=lab.pool.clock.now()).scope is Scope.TRACK
