"""Sandboxes held by claims: as the workflow asks for them, alone and in forced races."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from accessportal.audit.states import AuditEvent
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import ledger, models, operations, queries
from accessportal.sandboxes.states import Sandbox, Status
from accessportal.sandboxes.store import keys
from accessportal.store.transactions import Guard
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.conftest import CLIENT, OLGA, Pool
from tests.sandboxes.test_races import right_before_the_write

ALICE = "person:alice@example.com"


def hold(
    pool: Pool,
    claim: str = "one",
    *,
    key: str = "",
    track: str = ALICE,
    seconds: float = 600,
    most_held: int = 1,
    prefix: str = "",
    is_first: bool = True,
    guards: tuple[Guard, ...] = (),
) -> Proof | Waiting:
    """Until so many seconds from now; without a key of its own the claim is the first."""
    return operations.hold(
        claim=claim,
        key=f"request:{key or claim}",
        track=track,
        name_prefix=prefix,
        ends_at=ends(pool, seconds),
        most_held=most_held,
        is_first=is_first,
        guards=guards,
        actor=CLIENT,
        clock=pool.clock,
    )


def ends(pool: Pool, seconds: float) -> datetime:
    return from_epoch(to_epoch(pool.clock.now() + timedelta(seconds=seconds)))


def let_go(pool: Pool, claim: str = "one", *, key: str = "", track: str = ALICE) -> Proof | Waiting:
    return operations.let_go(claim=claim, key=f"request:{key or claim}", track=track, actor=CLIENT, clock=pool.clock)


def held(pool: Pool, key: str = "one") -> Sandbox:
    found = queries.find_by_key(key=f"request:{key}")
    assert found is not None
    assert_whole(pool, found)
    return found


def assert_whole(pool: Pool, sandbox: Sandbox) -> None:
    pool.check_whole()
    assert list(ledger.problems_of_events(queries.history(sandbox_id=sandbox.sandbox_id), pool.now_of(sandbox))) == []


def told(sandbox: Sandbox) -> list[AuditEvent]:
    return list(queries.history(sandbox_id=sandbox.sandbox_id))


def test_letting_go_ends_the_hand_over_though_somebody_deleted_its_key(pool: Pool) -> None:
    pool.fill(1)
    hold(pool)
    sandbox = held(pool)
    models.SandboxItem(*models.idempotency_item_key("request:one")).delete()

    gone = let_go(pool)

    assert isinstance(gone, Proof)
    assert (gone.is_present, gone.job_id, gone.job_status) == (False, sandbox.sandbox_id, "fence 1")
    assert pool.now_of(sandbox).status is Status.PENDING_DELETION
    assert told(sandbox)[-1].action == "sandbox.released"
    pool.check_whole()


def test_holding_again_is_the_same_and_writes_nothing(pool: Pool) -> None:
    pool.fill(2)
    end = pool.clock.now() + timedelta(seconds=600)
    first = hold(pool, seconds=600)
    pool.clock.advance(5)
    again = hold(pool, seconds=(end - pool.clock.now()).total_seconds())

    assert isinstance(first, Proof)
    assert isinstance(again, Proof)
    assert (first.job_id, first.job_status, first.is_present) == (again.job_id, "fence 1", True)
    assert again.called_at is None
    assert held(pool).version == 2


def test_a_claim_ends_no_later_than_the_lab(pool: Pool) -> None:
    pool.fill(1, hours=1)
    hold(pool, seconds=7200)

    one = held(pool)
    assert one.allocated_at is not None
    assert one.expires_at == one.allocated_at + timedelta(hours=1)


def test_letting_go_again_and_of_what_never_was_is_proved_gone(pool: Pool) -> None:
    pool.fill(1)
    hold(pool)
    assert not isinstance(let_go(pool), Waiting)
    for claim in ("one", "never"):
        gone = let_go(pool, claim)
        assert isinstance(gone, Proof)
        assert (gone.is_present, gone.kept_by, gone.called_at) == (False, (), None)


def test_somebody_else_with_the_key_neither_joins_nor_ends_it(pool: Pool) -> None:
    pool.fill(1)
    hold(pool)
    joined = hold(pool, "two", key="one", track="person:mallory@example.com", is_first=False)
    assert isinstance(joined, Waiting)
    assert joined.code == "allocation_over"
    let_go(pool, track="person:mallory@example.com")
    assert held(pool).track == ALICE


def test_no_program_gives_back_or_takes_in_a_persons_name(pool: Pool) -> None:
    pool.fill(2)
    hold(pool)
    with pytest.raises(InvalidRequest, match="people's requests"):
        pool.release(held(pool), ALICE)
    for key, track in (("key", ALICE), ("request:two", "track-1")):
        with pytest.raises(InvalidRequest, match="people's requests"):
            operations.take(key=key, track=track, actor=CLIENT, now=pool.clock.now())
    assert held(pool).track == ALICE


@pytest.mark.parametrize("reason", ["", " \n", "x" * 2_001, "a\x00", "\u202etxt.exe"])
def test_a_reason_is_short_and_can_be_seen(pool: Pool, reason: str) -> None:
    pool.fill(1)
    hold(pool)
    for change in (operations.release_by_operator, operations.quarantine):
        with pytest.raises(InvalidRequest) as caught:
            change(sandbox_id=held(pool).sandbox_id, reason=reason, actor=OLGA, now=pool.clock.now())
        assert caught.value.field == "reason"
    assert held(pool).track == ALICE


@pytest.mark.parametrize("way", ["operator", "quarantine", "expiry", "outside"])
def test_every_other_end_takes_all_claims_and_lends_nothing_for_them_again(pool: Pool, way: str) -> None:
    pool.fill(2)
    hold(pool, seconds=600)
    hold(pool, "two", key="one", seconds=900, is_first=False)
    lent = held(pool)
    now = pool.clock.now()
    if way == "operator":
        operations.release_by_operator(sandbox_id=lent.sandbox_id, reason="Needed elsewhere.", actor=OLGA, now=now)
    elif way == "quarantine":
        operations.quarantine(sandbox_id=lent.sandbox_id, reason="Smoke.", actor=OLGA, now=now)
    elif way == "outside":
        rows = seed.table_named("SandboxPool")
        rows.update_item(
            Key={"PK": f"SBX#{lent.sandbox_id}", "SK": "META"},
            UpdateExpression="SET #s = :s, deletion_requested_at = :n",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":s": "pending_deletion", ":n": to_epoch(now)},
        )
        operations.mend(sandbox_id=lent.sandbox_id, actor=CLIENT, now=now)
    else:
        pool.clock.advance(900 + 300)
        pool.expire()

    assert queries.find_by_key(key="request:one") is None
    assert pool.now_of(lent).claims == {}
    for claim in ("one", "two"):
        again = hold(pool, claim, key="one", is_first=claim == "one")
        assert isinstance(again, Waiting)
        assert (again.code, again.is_error) == ("allocation_over", True)
        gone = let_go(pool, claim, key="one")
        assert isinstance(gone, Proof)
        assert not gone.is_present
    assert_whole(pool, lent)
    # The place is free again for another request, whatever ended the first.
    assert isinstance(hold(pool, "other"), Proof)


def test_let_go_after_grace_is_the_expiry_that_no_job_has_done_yet(pool: Pool) -> None:
    pool.fill(1)
    hold(pool, seconds=600)
    lent = held(pool)
    pool.clock.advance(900)

    gone = let_go(pool)

    assert isinstance(gone, Proof)
    assert told(lent)[-1].action == "sandbox.expired"
    assert pool.status_of(lent) is Status.PENDING_DELETION


def test_a_full_limit_is_an_error_that_says_what_to_do(pool: Pool) -> None:
    pool.fill(4)
    hold(pool, "one", most_held=2)
    hold(pool, "two", most_held=2)

    third = hold(pool, "three", most_held=2)

    assert isinstance(third, Waiting)
    assert (third.code, third.is_error) == ("too_many_held", True)
    assert "2 sandboxes are held already" in third.reason
    let_go(pool, "one")
    assert isinstance(hold(pool, "three", most_held=2), Proof)
    assert isinstance(hold(pool, "four", track="person:bob@example.com"), Proof)


def test_an_empty_pool_is_no_error_and_tells_when_the_next_comes(pool: Pool) -> None:
    pool.fill(1)
    pool.take()
    waiting = hold(pool)
    assert isinstance(waiting, Waiting)
    assert (waiting.code, waiting.is_error, waiting.is_queued) == ("no_sandbox_free", False, True)
    assert waiting.retry_at == pool.clock.now() + timedelta(minutes=1)
    assert "expected at" in waiting.reason
    assert queries.none_told_at() is None, "a person who waits is no client that was told so"


def test_no_claim_is_taken_after_its_end(pool: Pool) -> None:
    pool.fill(1)
    waiting = hold(pool, seconds=0)
    assert isinstance(waiting, Waiting)
    assert waiting.code == "time_over"
    assert len(pool.free_list()) == 1


def test_what_no_client_got_is_noted_at_most_every_half_minute(pool: Pool) -> None:
    told_at = []
    for advance in (0, 29, 1):
        pool.clock.advance(advance)
        with pytest.raises(Conflict):
            pool.take()
        told_at.append(queries.none_told_at())
    assert told_at[0] == told_at[1]
    assert told_at[2] == from_epoch(to_epoch(pool.clock.now()))
    assert told_at[2] != told_at[0]


def guard_on(sandbox: Sandbox, version: int) -> Guard:
    """Any item of the store can be a guard."""
    return Guard(models.SandboxItem, models.sandbox_key(sandbox.sandbox_id)[0], models.SandboxItem.version == version, range_key="META")


def test_a_guard_that_fails_leaves_nothing_behind(pool: Pool) -> None:
    (free, other) = pool.fill(2)
    pool.take()
    lent = free if pool.status_of(free) is Status.ALLOCATED else other
    with pytest.raises(Conflict) as caught:
        hold(pool, guards=(guard_on(lent, 99),))
    assert caught.value.code == "guard_failed"
    assert queries.find_by_key(key="request:one") is None
    seen = keys.look_up("request:one", holder=ALICE)
    assert (seen.record, seen.holder.version) == (None, 0)
    assert len(pool.free_list()) == 1

    assert isinstance(hold(pool, guards=(guard_on(lent, 2),)), Proof)
    before = held(pool)
    with pytest.raises(Conflict):
        hold(pool, "two", key="one", is_first=False, seconds=900, guards=(guard_on(lent, 99),))
    assert held(pool) == before


# Forced races: the other one comes right before the first one's write.


def test_two_requests_of_one_person_at_the_limit(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(3)
    with right_before_the_write(monkeypatch, lambda: hold(pool, "two")) as others:
        mine = hold(pool, "one")

    assert isinstance(others[0], Proof)
    assert isinstance(mine, Waiting)
    assert mine.code == "too_many_held"
    assert len(pool.free_list()) == 2


def test_two_workers_with_one_claim_get_one_sandbox(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(3)
    with right_before_the_write(monkeypatch, lambda: hold(pool)) as others:
        mine = hold(pool)

    assert isinstance(others[0], Proof)
    assert isinstance(mine, Proof)
    assert mine.job_id == others[0].job_id
    assert len(pool.free_list()) == 2


def test_end_against_extension_leaves_the_extension_or_nothing(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(2)
    hold(pool)
    # The end comes first: there is nothing to go on with.
    with right_before_the_write(monkeypatch, lambda: let_go(pool)):
        late = hold(pool, "two", key="one", seconds=900, is_first=False)
    assert isinstance(late, Waiting)
    assert late.code == "allocation_over"

    hold(pool, "three")
    # The extension comes first: the end gives back its own claim alone.
    with right_before_the_write(monkeypatch, lambda: hold(pool, "four", key="three", seconds=900, is_first=False)):
        ended = let_go(pool, "three")
    assert isinstance(ended, Proof)
    assert ended.kept_by == ("four",)
    assert held(pool, "three").expires_at == ends(pool, 900)


def test_expiry_against_let_go_ends_it_once(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    hold(pool)
    lent = held(pool)
    pool.clock.advance(900)
    with right_before_the_write(monkeypatch, pool.expire):
        gone = let_go(pool)
    assert isinstance(gone, Proof)
    assert [event.action for event in told(lent)].count("sandbox.expired") == 1
    assert_whole(pool, lent)


def test_an_extension_against_expiry_never_revives_what_is_over(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    hold(pool)
    lent = held(pool)
    pool.clock.advance(899)

    def run_out() -> None:
        pool.clock.advance(1)
        pool.expire()

    with right_before_the_write(monkeypatch, run_out):
        late = hold(pool, "two", key="one", is_first=False)
    assert isinstance(late, Waiting)
    assert pool.status_of(lent) is Status.PENDING_DELETION


def test_an_extension_in_time_against_the_job_that_expires(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    hold(pool)
    pool.clock.advance(899)
    hold(pool, "two", key="one", is_first=False)
    pool.clock.advance(1)
    assert pool.expire().expired == ()
    assert list(held(pool).claims) == ["one", "two"]
