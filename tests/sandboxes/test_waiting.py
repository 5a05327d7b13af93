"""People in line for a sandbox: what becomes free goes to the first whom it fits, and what programs may take."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta

import pytest

from accessportal.jobs import tasks
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import config, operations, queries
from accessportal.sandboxes.states import Sandbox, ServeReport, Status
from accessportal.sandboxes.store import free_list, rows
from accessportal.upstream.errors import Transient
from accessportal.waiting import operations as lines
from accessportal.waiting import queries as line
from accessportal.waiting.models import WaitingItem, place_key
from accessportal.waiting.states import SANDBOXES
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.conftest import CLIENT, OLGA, SETUP, Pool, Upstream
from tests.sandboxes.test_races import right_before_the_write
from tests.sandboxes.test_requests import requests

LONGEST = timedelta(hours=72)


def ask(pool: Pool, claim: str, *, prefix: str = "", seconds: int = 600, most_held: int = 1, person: str = "") -> Proof | Waiting:
    """A request of a person of its own, approved now; the same again, when it is asked again."""
    return operations.hold(
        claim=claim,
        key=f"request:{claim}",
        track=f"person:{person or claim}",
        name_prefix=prefix,
        ends_at=(pool.clock.now() + LONGEST).replace(microsecond=0),
        duration_seconds=seconds,
        most_held=most_held,
        guards=(),
        actor=CLIENT,
        clock=pool.clock,
    )


def wait(pool: Pool, *claims: str, prefix: str = "", seconds: int = 600) -> None:
    for claim in claims:
        assert isinstance(ask(pool, claim, prefix=prefix, seconds=seconds), Waiting)


def let_go(pool: Pool, claim: str, *, undo_seconds: int = 0) -> Proof | Waiting:
    return operations.let_go(
        claim=claim, key=f"request:{claim}", track=f"person:{claim}", undo_seconds=undo_seconds, actor=CLIENT, clock=pool.clock
    )


def held(claim: str) -> Sandbox | None:
    return queries.find_by_key(key=f"request:{claim}")


def in_line() -> list[str]:
    return [place.claim for place in line.places(SANDBOXES)]


def actions(sandbox: Sandbox) -> list[str]:
    return [event.action.removeprefix("sandbox.") for event in queries.history(sandbox_id=sandbox.sandbox_id)]


def check(pool: Pool) -> None:
    pool.check_whole()
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()
    assert line.get_line(SANDBOXES).waiting == len(in_line())


def serve(pool: Pool) -> ServeReport:
    return operations.serve_line(clock=pool.clock)


@pytest.fixture
def programs_first() -> Iterator[None]:
    former = config.current()
    config.configure(dataclasses.replace(former, programs_first=True))
    yield
    config.configure(former)


def test_what_is_cleaned_goes_to_the_first_in_the_same_write(pool: Pool, asked_of_the_queue: list[tuple[str, dict[str, str]]]) -> None:
    (sandbox,) = pool.fill(1)
    lent = pool.take().sandbox
    wait(pool, "alice", "bob", seconds=900)
    pool.release(lent)
    pool.clock.advance(60)
    asked_of_the_queue.clear()

    free_again(pool.now_of(lent), now=pool.clock.now())

    got = held("alice")
    assert got is not None
    assert (got.sandbox_id, got.fence, got.track) == (sandbox.sandbox_id, 2, "person:alice")
    assert got.expires_at == pool.clock.now() + timedelta(seconds=900)
    assert actions(sandbox) == ["added", "taken", "released", "cleaned", "taken"]
    assert in_line() == ["bob"]
    assert asked_of_the_queue == [("carry_out_served", {"request_id": "alice"})]
    pool.clock.advance(30)
    proof = ask(pool, "alice", seconds=900)
    assert isinstance(proof, Proof)
    assert (proof.job_id, proof.called_at, proof.ends_at) == (got.sandbox_id, None, got.expires_at)
    check(pool)


@pytest.mark.parametrize("way", ["added", "seen again", "made available by another program"])
def test_every_other_way_of_becoming_free_goes_to_the_line_too(upstream: Upstream, way: str) -> None:
    pool = upstream.pool
    if way == "added":
        wait(pool, "alice")
        upstream.fill(1)
    else:
        (sandbox,) = upstream.fill(1)
        lent = pool.take().sandbox
        if way == "seen again":
            pool.release(lent)
            free_again(pool.now_of(lent), now=pool.clock.now())
            upstream.twin.lose("ext-000")
            for _ in range(2):
                upstream.later()
                upstream.sync(most_share=1)
            assert pool.status_of(sandbox) is Status.STALE
            upstream.twin.create("ext-000", name="lab-000")
            wait(pool, "alice")
        else:
            wait(pool, "alice")
            pk = f"SBX#{lent.sandbox_id}"
            seed.table_named("SandboxPool").update_item(
                Key={"PK": pk, "SK": "META"},
                UpdateExpression="SET #s = :s, allocated_at = :n, updated_at = :u",
                ExpressionAttributeNames={"#s": "status"},
                ExpressionAttributeValues={":s": "available", ":n": 0, ":u": to_epoch(pool.clock.now())},
            )
        upstream.later()
        upstream.sync()

    got = held("alice")
    assert got is not None
    assert got.external_id == "ext-000"
    assert in_line() == []
    check(pool)


def test_whom_it_does_not_fit_or_who_has_enough_is_passed_over_and_keeps_the_place(pool: Pool) -> None:
    (first, second) = pool.fill(2)
    pool.add("win-1", name="win-1")
    assert isinstance(ask(pool, "has-one", prefix="lab-", person="hana"), Proof)
    pool.take("track-1")
    pool.take("track-2")
    wait(pool, "windows", prefix="mac-")
    wait(pool, "alice")
    operations.let_go(claim="has-one", key="request:has-one", track="person:hana", actor=CLIENT, clock=pool.clock)
    given_back = next(one for one in (first, second) if pool.status_of(one) is Status.PENDING_DELETION)

    free_again(pool.now_of(given_back), now=pool.clock.now())

    assert held("alice") is not None
    assert in_line() == ["windows"]
    check(pool)


def test_a_person_who_holds_as_many_as_they_may_waits_behind_and_gets_one_after_giving_back(pool: Pool) -> None:
    one, other = pool.fill(2)
    pool.take("track-1")
    pool.take("track-2")
    assert isinstance(ask(pool, "first", person="alice"), Waiting)
    assert isinstance(ask(pool, "second", person="alice"), Waiting)
    wait(pool, "bob")
    for track, sandbox in (("track-1", one), ("track-2", other)):
        lent = next(row for row in pool.everything() if row.track == track and row.status is Status.ALLOCATED)
        pool.release(lent, track)
        free_again(pool.now_of(lent), now=pool.clock.now())
        assert sandbox.sandbox_id
    assert held("first") is not None
    assert held("second") is None
    assert held("bob") is not None
    assert in_line() == ["second"]
    check(pool)


def test_nobody_overtakes_and_whoever_joins_finds_what_fits_nobody_before(pool: Pool) -> None:
    pool.fill(1)
    wait(pool, "windows", prefix="win-")
    assert pool.free_list(), "free, and it fits nobody who waits"

    proof = ask(pool, "alice")

    assert isinstance(proof, Proof)
    assert in_line() == ["windows"]
    check(pool)


def test_whoever_becomes_free_between_the_look_and_the_place_is_found(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    pool.release(lent)

    with right_before_the_write(monkeypatch, lambda: free_again(pool.now_of(lent), now=pool.clock.now())):
        proof = ask(pool, "alice")

    assert isinstance(proof, Proof)
    assert proof.ends_at == pool.clock.now() + timedelta(seconds=600)
    check(pool)


def test_two_workers_with_one_request_take_or_wait_and_never_both(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken_by_the_other() -> None:
        pool.fill(1)
        assert isinstance(ask(pool, "alice"), Proof)

    with right_before_the_write(monkeypatch, taken_by_the_other):
        assert isinstance(ask(pool, "alice"), Proof)

    assert in_line() == []
    check(pool)


def test_who_joins_while_one_is_made_free_gets_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    pool.release(lent)

    with right_before_the_write(monkeypatch, lambda: wait(pool, "alice")):
        free_again(pool.now_of(lent), now=pool.clock.now())

    assert held("alice") is not None
    check(pool)


def test_a_place_goes_with_its_request_and_coming_back_is_a_new_one(pool: Pool) -> None:
    pool.fill(1)
    pool.take()
    wait(pool, "alice", "bob")
    gone = let_go(pool, "alice")
    assert isinstance(gone, Proof)
    assert not gone.is_present
    wait(pool, "alice")
    assert in_line() == ["bob", "alice"]
    check(pool)


def test_who_is_served_while_letting_go_gives_it_back(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    wait(pool, "alice")
    pool.release(lent)

    with right_before_the_write(monkeypatch, lambda: free_again(pool.now_of(lent), now=pool.clock.now())) as done:
        let_go(pool, "alice")

    assert done[0].track == "person:alice"
    assert pool.status_of(lent) is Status.PENDING_DELETION
    assert in_line() == []
    check(pool)


def test_a_place_that_was_served_before_the_tables_were_restored_goes(pool: Pool) -> None:
    pool.fill(1)
    assert isinstance(ask(pool, "alice"), Proof)
    given_back = held("alice")
    assert given_back is not None
    now = pool.clock.now()
    wants = {"key": "request:alice", "track": "person:alice", "name_prefix": "", "most_held": 1}
    lines.join(line=SANDBOXES, claim="alice", wants=wants, duration_seconds=60, lapses_at=now + LONGEST, actor=CLIENT, now=now)
    wait(pool, "bob")
    operations.release_by_operator(sandbox_id=given_back.sandbox_id, reason="Needed.", actor=OLGA, now=now)

    free_again(pool.now_of(given_back), now=now)

    assert held("bob") is not None
    assert in_line() == []
    check(pool)


# Programs


def test_a_program_takes_what_is_free_and_is_told_the_rule_when_none_is(pool: Pool) -> None:
    pool.fill(1)
    wait(pool, "windows", prefix="win-")
    lent = pool.take().sandbox
    wait(pool, "alice")
    with pytest.raises(Conflict) as refused:
        pool.take("track-2")
    assert refused.value.message == (
        "No sandbox is free at the moment. 2 people wait in line, and what becomes free goes to them first: "
        "programs may take what nobody waits for."
    )
    pool.release(lent)
    free_again(pool.now_of(lent), now=pool.clock.now())
    with pytest.raises(Conflict, match="One person waits in line"):
        pool.take("track-2")
    check(pool)


@pytest.mark.usefixtures("programs_first")
def test_the_rule_is_turned_round_by_a_setting(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    wait(pool, "alice")
    pool.release(lent)
    free_again(pool.now_of(lent), now=pool.clock.now())
    again = pool.take("track-2").sandbox
    assert again.sandbox_id == lent.sandbox_id
    with pytest.raises(Conflict, match="programs may take what becomes free before them"):
        pool.take("track-3")

    pool.release(again, "track-2")
    free_again(pool.now_of(again), now=pool.clock.now())
    assert held("alice") is None
    assert serve(pool).served == (lent.sandbox_id,)
    assert held("alice") is not None
    check(pool)


def test_the_job_serves_what_slipped_by_in_order_and_reads_once_while_nobody_waits(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    with requests(monkeypatch) as asked:
        assert serve(pool) == ServeReport()
    assert asked == ["GetItem"]
    wait(pool, "alice", "bob")
    wait(pool, "windows", prefix="win-")
    config.configure(dataclasses.replace(config.current(), programs_first=True))
    try:
        pool.fill(3)
    finally:
        config.configure(dataclasses.replace(config.current(), programs_first=False))

    report = serve(pool)

    assert len(report.served) == 2
    assert all(held(claim) for claim in ("alice", "bob"))
    assert in_line() == ["windows"]
    assert len(pool.free_list()) == 1
    check(pool)


def test_what_is_wrong_with_the_line_for_accounts_keeps_nobody_waiting_for_a_sandbox(
    db: None, pool: Pool, monkeypatch: pytest.MonkeyPatch, programs_first: None
) -> None:
    def damaged(**_: object) -> None:
        raise NoAnswer("The head of the line can't be read.", code="item_unreadable")

    wait(pool, "alice")
    pool.fill(1)
    monkeypatch.setattr(tasks, "_CLOCK", pool.clock)
    monkeypatch.setattr("accessportal.leases.operations.serve_line", damaged)
    with pytest.raises(tasks.ItemsFailed, match="failed 1"):
        tasks.serve_line()
    assert held("alice") is not None
    check(pool)


@pytest.mark.usefixtures("quick_look")
def test_what_fits_nobody_who_waits_is_not_looked_at_one_by_one(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    wait(pool, "windows", prefix="win-")
    pool.fill(40)
    with requests(monkeypatch) as asked:
        assert serve(pool) == ServeReport()
    # The head and the places of the line, and the shards of the free list.
    assert asked == ["GetItem", *["Query"] * (1 + len(free_list.shards()))]
    with requests(monkeypatch) as asked:
        assert isinstance(ask(pool, "alice"), Proof)
    assert asked.count("TransactWriteItems") == 3
    assert asked.count("GetItem") < 10
    check(pool)


def test_for_whom_a_name_is_to_begin_otherwise_no_other_end_is_told(pool: Pool) -> None:
    pool.fill(2)
    lines.note_cleanings(line=SANDBOXES, seconds=[60])
    pool.take("track-1", seconds=600)
    pool.take("track-2", seconds=600)
    wait(pool, "alice", prefix="lab-")
    wait(pool, "windows", prefix="win-")
    turns = {}
    for claim in ("alice", "windows"):
        standing = queries.find_in_line(claim=claim)
        assert standing is not None
        assert standing.before == 0
        turns[claim] = queries.expected_turn(standing=standing, now=pool.clock.now())
    assert turns["alice"] is not None
    assert turns["windows"] is None


@pytest.mark.usefixtures("programs_first")
def test_no_turn_is_told_while_programs_may_take_what_comes_back(pool: Pool) -> None:
    pool.fill(1)
    lines.note_cleanings(line=SANDBOXES, seconds=[60])
    pool.take("track-1", seconds=600)
    wait(pool, "alice")
    standing = queries.find_in_line(claim="alice")
    assert standing is not None
    assert queries.expected_turn(standing=standing, now=pool.clock.now()) is None


def test_whoever_waits_and_can_not_be_read_stops_nobody_behind_them(pool: Pool) -> None:
    pool.fill(2)
    lent = pool.take().sandbox
    pool.take("track-2")
    wait(pool, "alice")
    wait(pool, "bob")
    wait(pool, "gina")
    WaitingItem(*place_key(SANDBOXES, 1)).update(actions=[WaitingItem.wants.set({"name_prefix": ""})])
    pool.release(lent)
    free_again(pool.now_of(lent), now=pool.clock.now())
    assert pool.now_of(lent).track == "person:bob"
    assert queries.is_waited_for(name="lab-1", track="person:alice", now=pool.clock.now())

    pool.add("ext-9")
    report = serve(pool)
    assert [failure.item for failure in report.failures] == ["alice"]
    assert "place 1 of the table WaitingLine can't be read (wants: 'key')" in report.failures[0].error


def test_a_lapsed_place_and_an_own_one_are_no_others_who_wait(pool: Pool) -> None:
    wait(pool, "alice")
    now = pool.clock.now()
    assert queries.is_waited_for(name="lab-1", track="person:bob", now=now)
    assert not queries.is_waited_for(name="lab-1", track="person:alice", now=now)
    assert not queries.is_waited_for(name="lab-1", track="person:bob", now=now + LONGEST)


@pytest.mark.usefixtures("quick_look")
def test_while_nobody_waits_a_person_takes_with_as_few_requests_as_before(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(40)
    # The first look of this table makes the head of the restores.
    pool.take("track-0")
    with requests(monkeypatch) as asked:
        ask(pool, "alice")
    assert [name for name in asked if name != "Query"] == ["BatchGetItem", "TransactWriteItems"]
    assert asked.count("Query") <= 2
    with requests(monkeypatch) as asked:
        let_go(pool, "alice")
    assert asked == ["BatchGetItem", "GetItem", "TransactWriteItems"]
    given_back = next(row for row in pool.everything() if row.status is Status.PENDING_DELETION)
    with requests(monkeypatch) as asked:
        free_again(given_back, now=pool.clock.now())
    assert asked == ["TransactWriteItems"]


@pytest.mark.usefixtures("quick_look")
def test_whoever_waits_looks_with_one_request(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    wait(pool, "alice")
    with requests(monkeypatch) as asked:
        wait(pool, "alice")
    assert asked == ["BatchGetItem"]


# The look at the provider


def be_reset(upstream: Upstream, sandbox: Sandbox, *, seconds: float = 3_600) -> None:
    """Somebody has the provider reset a free one: it is listed, and not ready for a while."""
    provided = upstream.twin.sandboxes()[sandbox.external_id]
    ready_at = upstream.pool.clock.now().timestamp() + seconds
    upstream.twin.restore(sandbox.external_id, dataclasses.replace(provided, ready_at=ready_at))


def ask_with_provider(upstream: Upstream, claim: str) -> Proof | Waiting:
    return operations.hold(
        claim=claim,
        key=f"request:{claim}",
        track=f"person:{claim}",
        name_prefix="",
        ends_at=upstream.pool.clock.now() + LONGEST,
        duration_seconds=600,
        most_held=1,
        provider=upstream.provider,
        guards=(),
        actor=CLIENT,
        clock=upstream.pool.clock,
    )


def test_one_that_is_not_ready_is_set_aside_and_the_next_goes_out(upstream: Upstream) -> None:
    bad, good = upstream.fill(2)
    be_reset(upstream, bad)

    got = [ask_with_provider(upstream, claim) for claim in ("alice", "bob")]

    assert [isinstance(one, Proof) and one.job_id for one in got] == [good.sandbox_id, False]
    assert upstream.pool.status_of(bad) is Status.STALE
    assert in_line() == ["bob"]
    be_reset(upstream, bad, seconds=0)
    upstream.later()
    upstream.sync()
    assert held("bob") is not None
    check(upstream.pool)


def test_one_that_the_provider_does_not_know_is_noted_as_missing_and_left_to_the_next_look(upstream: Upstream) -> None:
    (bad,) = upstream.fill(1)
    upstream.twin.lose(bad.external_id)
    assert isinstance(ask_with_provider(upstream, "alice"), Waiting)
    row = upstream.pool.now_of(bad)
    assert (row.status, row.missing_since) == (Status.AVAILABLE, upstream.pool.clock.now())
    check(upstream.pool)


def test_a_provider_without_answer_hinders_nobody(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.fill(1)

    def silent(external_id: str) -> None:
        raise Transient("503", external_id)

    monkeypatch.setattr(upstream.provider, "get_sandbox", silent)
    assert isinstance(ask_with_provider(upstream, "alice"), Proof)


def test_a_provider_that_shows_all_as_not_ready_sets_aside_no_more_than_the_brake_lets_go(upstream: Upstream) -> None:
    for one in upstream.fill(8):
        be_reset(upstream, one)
    assert isinstance(ask_with_provider(upstream, "alice"), Waiting)
    stale = [row for row in upstream.pool.everything() if row.status is Status.STALE]
    assert 0 < len(stale) < 8
    assert isinstance(ask_with_provider(upstream, "bob"), Waiting)
    assert len([row for row in upstream.pool.everything() if row.status is Status.STALE]) == len(stale)
    check(upstream.pool)


# Undo


def revive(pool: Pool, claim: str, former: str, *, track: str = "") -> Proof | Waiting:
    return operations.revive(
        claim=claim,
        key=f"request:{claim}",
        former_key=f"request:{former}",
        track=f"person:{track or former}",
        ends_at=(pool.clock.now() + timedelta(seconds=300)).replace(microsecond=0),
        most_held=1,
        guards=(),
        actor=CLIENT,
        clock=pool.clock,
    )


def test_what_was_given_back_goes_on_by_the_same_fence_and_is_cleaned_only_after_the_undo(pool: Pool) -> None:
    pool.fill(1)
    ask(pool, "alice")
    lent = held("alice")
    assert lent is not None
    let_go(pool, "alice", undo_seconds=120)
    assert pool.now_of(lent).due_at == pool.clock.now() + timedelta(seconds=120)
    assert queries.may_revive(key="request:alice", track="person:alice", now=pool.clock.now()).allowed

    first = revive(pool, "again", "alice")
    pool.clock.advance(5)
    again = revive(pool, "again", "alice")

    assert isinstance(first, Proof)
    assert isinstance(again, Proof)
    assert again.called_at is None
    now = pool.now_of(lent)
    assert (now.status, now.fence, now.track, list(now.claims)) == (Status.ALLOCATED, 1, "person:alice", ["again"])
    assert held("again") == now
    assert actions(lent) == ["added", "taken", "released", "revived"]
    assert isinstance(let_go(pool, "alice"), Proof)
    assert held("again") == now
    operations.let_go(claim="again", key="request:again", track="person:alice", actor=CLIENT, clock=pool.clock)
    assert pool.status_of(lent) is Status.PENDING_DELETION
    check(pool)


@pytest.mark.parametrize(
    "why", ["cleaning begun", "free again", "somebody else", "quarantined", "to be cleaned by now", "deleted", "failed"]
)
def test_what_is_not_there_any_more_is_not_revived(pool: Pool, why: str) -> None:
    pool.fill(1)
    ask(pool, "alice")
    lent = held("alice")
    assert lent is not None
    let_go(pool, "alice", undo_seconds=120)
    given_back, now = pool.now_of(lent), pool.clock.now()
    match why:
        case "cleaning begun":
            assert rows.lease(given_back, holder="cleaner", until=now + timedelta(seconds=120), now=now)
        case "free again":
            free_again(given_back, now=now)
        case "quarantined":
            operations.quarantine(sandbox_id=lent.sandbox_id, reason="Smoke.", actor=OLGA, now=now)
        case "to be cleaned by now":
            pool.clock.advance(120)
        case "deleted":
            rows.note(given_back, dataclasses.replace(given_back, delete_sent_at=now))
        case "failed":
            rows.note(given_back, dataclasses.replace(given_back, clean_error="503"))
    refused = revive(pool, "again", "alice", track="mallory" if why == "somebody else" else "")
    assert isinstance(refused, Waiting)
    assert refused.is_final
    assert held("again") is None
    check(pool)


def test_what_an_operator_took_away_is_not_had_again_by_giving_back_the_request(pool: Pool) -> None:
    pool.fill(1)
    ask(pool, "alice")
    lent = held("alice")
    assert lent is not None
    operations.release_by_operator(sandbox_id=lent.sandbox_id, reason="Misused.", actor=OLGA, now=pool.clock.now())
    let_go(pool, "alice", undo_seconds=120)

    assert not queries.may_revive(key="request:alice", track="person:alice", now=pool.clock.now()).allowed
    refused = revive(pool, "again", "alice")

    assert isinstance(refused, Waiting)
    assert (refused.code, refused.is_final) == ("cleaning_begun", True)
    assert held("alice") is None
    assert held("again") is None
    check(pool)


def test_who_has_another_by_now_does_not_get_back_one_more_than_they_may_have(pool: Pool) -> None:
    pool.fill(2)
    ask(pool, "alice")
    let_go(pool, "alice", undo_seconds=120)
    assert isinstance(ask(pool, "other", person="alice"), Proof)

    refused = revive(pool, "again", "alice")

    assert isinstance(refused, Waiting)
    assert (refused.code, refused.is_final) == ("too_many_held", True)
    assert held("again") is None
    check(pool)


def test_there_is_no_undo_past_the_end_and_none_for_programs(pool: Pool) -> None:
    pool.fill(2)
    ask(pool, "alice", seconds=600)
    lent = held("alice")
    assert lent is not None
    pool.clock.advance(590)
    let_go(pool, "alice", undo_seconds=120)
    assert pool.now_of(lent).due_at == pool.clock.now() + timedelta(seconds=10)
    other = pool.take().sandbox
    pool.release(other)
    assert pool.now_of(other).due_at == pool.clock.now()
    assert SETUP.name
