"""API tokens: made once, let in while they are live, shown and logged nowhere."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, Unavailable
from accessportal.tokens import operations, queries, store
from accessportal.tokens.guessing import KnownTokens
from accessportal.tokens.models import TokenItem
from accessportal.tokens.states import NoSuchToken, Scope, TokenRefused, TokenState
from tests.conftest import START
from tests.tokens.conftest import ANA, MALLORY, OLGA, Tokens


def code_of(tokens: Tokens, text: str) -> str:
    with pytest.raises(TokenRefused) as refused:
        tokens.use(text)
    return refused.value.code


def test_a_token_opens_until_it_is_revoked(tokens: Tokens) -> None:
    made = tokens.create("Lab runner", scope=Scope.ADMIN, rate=30)

    admitted = tokens.use(made.text)
    assert (admitted.token_id, admitted.scope, admitted.rate_per_minute) == (made.token.token_id, Scope.ADMIN, 30)
    assert made.text.startswith(f"apt_{admitted.token_id}_")

    revoked = tokens.revoke(made, reason="The lab has closed")
    assert code_of(tokens, made.text) == "token_revoked"
    tokens.clock.advance(60)
    assert tokens.revoke(made) == revoked
    assert audit.check_head(revoked.entity, version=revoked.version, audit_head=revoked.audit_head) == []


def test_time_ends_a_token(tokens: Tokens) -> None:
    made = tokens.create(expires_at=tokens.clock.now() + timedelta(days=1))
    tokens.clock.advance(86_399)
    assert tokens.use(made.text).state(tokens.clock.now()) is TokenState.LIVE
    tokens.clock.advance(1)
    assert code_of(tokens, made.text) == "token_expired"


def test_what_is_no_token_is_told_alike(tokens: Tokens) -> None:
    made, other = tokens.create(), tokens.create()
    tokens.revoke(other)
    head, secret = made.text[:17], made.text[17:]
    assert head == f"apt_{made.token.token_id}_"
    wrong = [
        "",
        "garbage",
        made.text + "x",
        made.text[:-1],
        made.text.upper(),
        f"apt_{'a' * 12}_{secret}",
        f"{head}{'A' * 43}",
        # the secret of another, and of a revoked one no word of that
        f"{other.text[:17]}{secret}",
        f"apt_RATE#{made.token.token_id}_{secret}",
        f"{head}{'ü' * 43}",
    ]
    assert {code_of(tokens, text) for text in wrong} == {"invalid_token"}


def test_a_secret_may_hold_the_separator(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.tokens.policy.new_secret", lambda: "_" * 43)
    made = tokens.create()
    assert tokens.use(made.text).token_id == made.token.token_id


def test_the_secret_is_kept_nowhere(tokens: Tokens) -> None:
    made = tokens.create()
    secret = made.text[17:]
    tokens.use(made.text)
    tokens.revoke(made)

    rows = [json.dumps(item.to_dynamodb_dict()) for item in TokenItem.scan()]
    events = [repr(event) for event in queries.history(token_id=made.token.token_id).items]
    assert len(rows) == 1
    assert len(events) == 2
    assert all(secret not in kept for kept in [*rows, *events, repr(made), str(made)])


@pytest.mark.parametrize(
    ("actor", "may", "sees"), [(OLGA, True, True), (system("setup"), True, True), (ANA, False, True), (MALLORY, False, False)]
)
def test_who_may_manage(tokens: Tokens, actor: Actor, may: bool, sees: bool) -> None:
    made = tokens.create()
    now = tokens.clock.now()
    assert queries.may_see(actor=actor).allowed is sees
    if may:
        operations.create_token(name="Another", scope=Scope.TRACK, actor=actor, now=now)
        assert operations.revoke_token(token_id=made.token.token_id, actor=actor, now=now).revoked_by == actor.name
        return
    with pytest.raises(NotAllowed):
        operations.create_token(name="Another", scope=Scope.TRACK, actor=actor, now=now)
    with pytest.raises(NotAllowed):
        operations.revoke_token(token_id=made.token.token_id, actor=actor, now=now)
    assert tokens.use(made.text)
    assert len(queries.list_tokens().items) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"rate": 0}, "rate_per_minute"),
        ({"rate": 100_001}, "rate_per_minute"),
        ({"expires_at": "now"}, "expires_at"),
    ],
)
def test_what_a_token_can_not_be(tokens: Tokens, change: dict[str, object], field: str) -> None:
    if "expires_at" in change:
        change = {"expires_at": tokens.clock.now()}
    with pytest.raises(InvalidRequest) as refused:
        tokens.create(**change)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert queries.list_tokens().items == ()


def test_a_form_sent_twice_makes_one_token(tokens: Tokens) -> None:
    def send(actor: Actor) -> str:
        sent = operations.create_token(name="Lab", scope=Scope.TRACK, submission_id="form-1", actor=actor, now=tokens.clock.now())
        return sent.token.token_id

    made = send(OLGA)
    with pytest.raises(Conflict, match="made the token “Lab”") as refused:
        send(OLGA)
    assert refused.value.present == queries.find_token(token_id=made)
    assert send(system("setup")) != made
    assert len(queries.list_tokens().items) == 2


def test_the_last_use_is_noted_once_a_minute(tokens: Tokens) -> None:
    made = tokens.create()
    first = tokens.clock.now()
    for seconds in (0, 30, 29):
        tokens.clock.advance(seconds)
        tokens.use(made.text)
        assert queries.find_token(token_id=made.token.token_id).last_used_at == first
    tokens.clock.advance(1)
    tokens.use(made.text)
    after = queries.find_token(token_id=made.token.token_id)
    assert (after.last_used_at, after.version) == (tokens.clock.now(), 1)


def test_a_use_that_can_not_be_noted_is_let_in(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tokens.create()

    def fail(*_: object, **__: object) -> None:
        raise Unavailable("The database did not answer.", code="store_unavailable")

    monkeypatch.setattr(store, "update_one", fail)
    assert tokens.use(made.text).token_id == made.token.token_id


def test_lists_go_to_their_end(tokens: Tokens) -> None:
    made = []
    for number in range(5):
        made.append(tokens.create(f"Lab {number}"))
        tokens.clock.advance(1)
    tokens.revoke(made[3])

    def names(cursor: str | None, *, everything: bool) -> list[str]:
        fetch = queries.list_tokens if everything else queries.list_unrevoked
        page = fetch(cursor=cursor, limit=2)
        return [one.name for one in page.items] + (names(page.next_cursor, everything=everything) if page.next_cursor else [])

    assert names(None, everything=True) == ["Lab 4", "Lab 3", "Lab 2", "Lab 1", "Lab 0"]
    assert names(None, everything=False) == ["Lab 4", "Lab 2", "Lab 1", "Lab 0"]
    with pytest.raises(InvalidRequest):
        queries.list_tokens(cursor=queries.list_unrevoked(limit=1).next_cursor)


def test_explaining_says_why_a_token_opens_or_not(tokens: Tokens) -> None:
    made = tokens.create(rate=40, expires_at=tokens.clock.now() + timedelta(hours=1))
    tokens.ask(made.token, 3)

    def told() -> str:
        return queries.explain(token_id=made.token.token_id, now=tokens.clock.now())

    assert "let in until 2026-03-02 10:00:00Z" in told()
    assert "Of the 40 requests of this minute, the servers have reserved 4." in told()
    tokens.clock.advance(3600)
    assert "its time was over at 2026-03-02 10:00:00Z" in told()
    tokens.revoke(made)
    assert "olga@example.com revoked it" in told()


def test_an_unknown_token_is_not_found(tokens: Tokens) -> None:
    with pytest.raises(NoSuchToken):
        queries.find_token(token_id="a" * 12)
    with pytest.raises(NoSuchToken):
        operations.revoke_token(token_id="a" * 12, actor=OLGA, now=tokens.clock.now())


def test_a_row_that_somebody_else_changed_opens_nothing(tokens: Tokens) -> None:
    made = tokens.create()
    TokenItem(made.token.token_id).update(actions=[TokenItem.scope.set("everything")])
    with pytest.raises(Unavailable, match=made.token.token_id):
        tokens.use(made.text)


def test_one_that_can_not_be_read_keeps_no_other_open(tokens: Tokens) -> None:
    changed, made = tokens.create(), tokens.create()
    TokenItem(changed.token.token_id).update(actions=[TokenItem.scope.set("everything")])
    tokens.clock.advance(10)

    with pytest.raises(Unavailable, match=changed.token.token_id):
        operations.revoke_every_token(made_before=tokens.clock.now(), keep=(), reason="Restored", actor=OLGA, now=tokens.clock.now())

    assert code_of(tokens, made.text) == "token_revoked"


def test_no_guess_waits_for_a_list_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store hangs, one of the threads that guesses come in by asks it for the list, and no other stands behind it."""
    asked, answered, known = threading.Event(), threading.Event(), KnownTokens()
    guess = f"apt_{'a' * 12}_{'a' * 43}"

    def hang(*, most: int) -> dict[str, str]:
        asked.set()
        assert answered.wait(120)
        raise Unavailable("no answer", code="store_unavailable")

    monkeypatch.setattr(store, "unrevoked_hashes", hang)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(known.holds, guess, now=START)
        assert asked.wait(60)
        try:
            assert pool.submit(known.holds, guess, now=START).result(timeout=60), "nobody can say, so the strong read tells"
        finally:
            answered.set()
        assert first.result(timeout=60)
