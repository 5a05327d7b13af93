"""The provider's list against the pool."""

from __future__ import annotations

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.errors import Unavailable
from accessportal.sandboxes import queries
from accessportal.sandboxes.states import POOL_ENTITY, NoneFree, RunKind, Sandbox, Status, SyncStopped
from accessportal.twin.sandbox_provider import PREFIX
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.conftest import Upstream, order_in_between


def test_new_ones_come_in_once_and_a_plan_changes_nothing(upstream: Upstream) -> None:
    upstream.twin.create("ext-000", name="lab-000")
    upstream.twin.settings.change({"page_size": 2})
    for number in range(5):
        upstream.twin.create(f"ext-{number:03}", name=f"lab-{number:03}")
    upstream.set(list_twice=1)

    assert len(upstream.sync(apply=False).new) == 5
    assert upstream.pool.everything() == []
    assert len(upstream.sync().new) == 5
    assert upstream.sync().new == ()
    assert len(upstream.pool.everything()) == 5
    upstream.pool.check_whole()
    stats = queries.stats()
    assert stats is not None
    assert (stats.total, stats.counts[Status.AVAILABLE]) == (5, 5)


def test_a_missing_one_goes_stale_at_the_second_look_and_comes_back(upstream: Upstream) -> None:
    missing, *_ = upstream.fill(8)
    upstream.later()
    upstream.twin.lose(missing.external_id)

    assert upstream.sync().missing == (missing.sandbox_id,)
    assert upstream.pool.status_of(missing) is Status.AVAILABLE
    # Too soon to be another look.
    upstream.later(10)
    assert upstream.sync().going_stale == ()
    upstream.later()
    assert upstream.sync().going_stale == (missing.sandbox_id,)
    assert upstream.pool.status_of(missing) is Status.STALE
    upstream.pool.check_whole()

    upstream.twin.create(missing.external_id, name=missing.name)
    upstream.later()
    assert upstream.sync().seen_again == (missing.sandbox_id,)
    assert upstream.pool.status_of(missing) is Status.AVAILABLE
    upstream.pool.check_whole()


def test_one_that_is_seen_in_between_begins_anew(upstream: Upstream) -> None:
    missing, *_ = upstream.fill(8)
    upstream.later()
    for _ in range(4):
        upstream.twin.lose(missing.external_id)
        assert upstream.sync().going_stale == ()
        upstream.later()
        upstream.twin.create(missing.external_id, name=missing.name)
        upstream.sync()
        upstream.later()


def test_a_lent_one_is_noted_and_otherwise_left_alone(upstream: Upstream) -> None:
    upstream.fill(1)
    lent = upstream.pool.take().sandbox
    upstream.twin.lose(lent.external_id)
    upstream.twin.create("ext-other", name="lab-other")
    for _ in range(3):
        upstream.later()
        assert upstream.sync().lent_but_missing == (lent.sandbox_id,)

    row = upstream.pool.now_of(lent)
    assert (row.status, row.track, row.version, row.fence) == (Status.ALLOCATED, "track-1", lent.version, lent.fence)
    assert row.missing_since is not None
    upstream.pool.release(lent)
    assert upstream.clean().removed == (lent.sandbox_id,)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_an_empty_list_and_half_a_list_are_stopped(upstream: Upstream, share: float) -> None:
    upstream.fill(20)
    upstream.later()
    upstream.set(list_share=share)
    if share:
        assert len(upstream.sync().missing) == 10
        upstream.later()

    with pytest.raises(SyncStopped, match="--most-share"):
        upstream.sync()

    assert {row.status for row in upstream.pool.everything()} == {Status.AVAILABLE}
    last = queries.last_sync()
    assert last is not None
    assert last.stopped
    upstream.set(list_share=1)
    upstream.sync()
    assert {row.missing_since for row in upstream.pool.everything()} == {None}
    last = queries.last_sync()
    assert last is not None
    assert last.stopped == ""


@pytest.mark.usefixtures("asked_of_the_queue")
def test_a_stop_is_told_although_another_event_of_the_pool_comes_between(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.fill(20)
    upstream.later()
    upstream.set(list_share=0)
    order_in_between(upstream.pool, RunKind.CLEANUP, monkeypatch)
    with pytest.raises(SyncStopped):
        upstream.sync()

    last = queries.last_sync()
    assert last is not None
    assert last.stopped
    told = audit.history(POOL_ENTITY, newest_first=False).items
    assert [one.action for one in told] == ["sandbox.run_ordered", "sandbox.sync_stopped"]
    assert told[1].prev_hash == told[0].hash


def test_an_operator_may_carry_it_out_all_the_same(upstream: Upstream) -> None:
    upstream.fill(20)
    upstream.later()
    upstream.set(list_share=0)
    upstream.sync(most_share=1)
    upstream.later()

    assert len(upstream.sync(most_share=1).going_stale) == 20
    with pytest.raises(NoneFree):
        upstream.pool.take()


def test_a_list_that_fails_or_is_malformed_changes_nothing(upstream: Upstream) -> None:
    upstream.fill(3)
    upstream.later()
    upstream.set(fail_list=1)
    with pytest.raises(Unavailable):
        upstream.sync()
    upstream.set(fail_list=0)
    upstream.later()
    upstream.twin.create("ext-odd", name="odd\nname")
    with pytest.raises(Unavailable, match="answers, but its list") as malformed:
        upstream.sync()

    assert malformed.value.code == "provider_malformed"
    assert len(upstream.pool.everything()) == 3
    assert {row.missing_since for row in upstream.pool.everything()} == {None}


def test_sync_against_take(upstream: Upstream) -> None:
    """It is missing for the second time, and lent right after the rows were read: the holder keeps it."""
    missing, *_ = upstream.fill(1)
    upstream.twin.create("ext-other", name="lab-other", lab_duration_hours=4)
    upstream.twin.lose(missing.external_id)
    upstream.later()
    upstream.sync()
    upstream.later()
    lent = upstream.pool.take("track-1", name_prefix=missing.name).sandbox

    assert upstream.sync().going_stale == ()
    assert upstream.pool.status_of(lent) is Status.ALLOCATED


def test_a_list_from_before_a_cleaning_does_not_bring_a_removed_one_back_into_use(upstream: Upstream) -> None:
    upstream.fill(2)
    given_back = upstream.given_back()
    upstream.set(recycle=0)

    def meanwhile(call: str) -> None:
        if call == "GET list":
            upstream.adapter.after = lambda _call: None
            assert upstream.clean().removed == (given_back.sandbox_id,)

    upstream.adapter.after = meanwhile
    upstream.sync()

    assert upstream.pool.status_of(given_back) is Status.PENDING_DELETION
    assert upstream.clean().removed == (given_back.sandbox_id,)
    upstream.pool.check_whole()


def write_as_another(sandbox: Sandbox, status: str, *, now: int) -> None:
    """As a program that knows the seed's attributes alone."""
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{sandbox.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #s = :a, allocated_to_track = :t, allocated_at = :n, idempotency_key = :t, updated_at = :n",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":a": status, ":t": f"track-{status}", ":n": now},
    )


def test_what_other_programs_wrote_is_caught_up_with(upstream: Upstream) -> None:
    rows = seed.table_named("SandboxPool")
    free, lent, marked = upstream.fill(3)
    now = int(upstream.pool.clock.now().timestamp())
    write_as_another(lent, "allocated", now=now)
    write_as_another(marked, "pending_deletion", now=now)
    seed.insert_available(rows, "abc123", now=now)
    upstream.twin.create("ext-abc123", name="outside")

    assert set(upstream.sync().to_mend) == {lent.sandbox_id, marked.sandbox_id, "abc123"}
    upstream.pool.check_whole()
    assert upstream.clean().cleaned == (marked.sandbox_id,)
    upstream.later(4 * 3600 + 300)
    assert upstream.pool.expire().expired == (lent.sandbox_id,)
    assert upstream.pool.status_of(free) is Status.AVAILABLE
    upstream.pool.check_whole()


@pytest.mark.parametrize(
    ("fault", "error"), [({"list_share": 0}, SyncStopped), ({"list_share": 0.5}, SyncStopped), ({"fail_list": 1}, Unavailable)], ids=str
)
def test_other_programs_are_caught_up_with_whatever_becomes_of_the_list(
    upstream: Upstream, fault: dict[str, float], error: type[Exception]
) -> None:
    """What they lent and gave back must not wait until somebody mends the provider's list."""
    found = upstream.fill(20)
    lent, marked = found[-2:]
    upstream.later()
    upstream.set(list_share=0.5 if "list_share" in fault else 1)
    upstream.sync()
    upstream.later()
    now = int(upstream.pool.clock.now().timestamp())
    write_as_another(lent, "allocated", now=now)
    write_as_another(marked, "pending_deletion", now=now)
    upstream.set(**fault)
    with pytest.raises(error):
        upstream.sync(apply=False)
    assert upstream.clean().cleaned == ()

    with pytest.raises(error):
        upstream.sync()

    counted = queries.stats()
    assert counted is not None
    assert counted.counts[Status.PENDING_DELETION] == 1
    assert upstream.pool.now_of(lent).expires_at is not None
    assert upstream.clean().cleaned == (marked.sandbox_id,)
    upstream.pool.check_whole()
    upstream.later(4 * 3600 + 300)
    assert upstream.pool.expire().expired == (lent.sandbox_id,)


@pytest.mark.parametrize("look", ["stopped", "not ready"])
def test_a_look_that_saw_it_lies_between_whatever_else_became_of_that_look(upstream: Upstream, look: str) -> None:
    """Missing, seen, missing are no two looks in a row that lack it."""
    rows = upstream.fill(20)
    missing = rows[0]
    upstream.later()
    upstream.twin.lose(missing.external_id)
    assert upstream.sync().missing == (missing.sandbox_id,)

    upstream.later()
    upstream.twin.create(missing.external_id, name=missing.name)
    if look == "stopped":
        for row in rows[10:]:
            reset_by_hand(upstream, row.external_id)
        with pytest.raises(SyncStopped):
            upstream.sync()
    else:
        # Ready again by the time at which it is asked for alone.
        reset_by_hand(upstream, missing.external_id)
        upstream.adapter.after = lambda call: upstream.later(700) if call == "GET list" else None
        upstream.sync()
        upstream.adapter.after = lambda _call: None
    upstream.later(700)
    upstream.twin.lose(missing.external_id)

    assert upstream.sync().going_stale == ()
    assert upstream.pool.status_of(missing) is Status.AVAILABLE
    upstream.later()
    assert upstream.sync().going_stale == (missing.sandbox_id,)


def test_a_row_that_cant_be_read_keeps_its_sandbox_from_coming_in_a_second_time(upstream: Upstream) -> None:
    rows = seed.table_named("SandboxPool")
    seed.insert_available(rows, "abc123", now=int(upstream.pool.clock.now().timestamp()))
    rows.update_item(
        Key={"PK": "SBX#abc123", "SK": "META"}, UpdateExpression="SET lab_duration_hours = :h", ExpressionAttributeValues={":h": "four"}
    )
    external_id = seed.get(rows, "abc123")["external_id"]
    upstream.twin.create(external_id, name="outside")
    upstream.twin.create("ext-new", name="lab-new")

    plan = upstream.sync()

    assert plan.new == ("ext-new",)
    assert [failure.item for failure in plan.failures] == ["abc123"]


def test_two_allocations_for_one_key_do_not_stop_the_next_one(upstream: Upstream) -> None:
    """Another program used a key that stood for a sandbox of ours; ours is given back first."""
    upstream.fill(3)
    ours = upstream.pool.take("track-1").sandbox
    other = next(row for row in upstream.pool.everything() if row.status is Status.AVAILABLE)
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{other.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #s = :a, allocated_to_track = :t, allocated_at = :n, idempotency_key = :t",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":a": "allocated", ":t": "track-1", ":n": int(upstream.pool.clock.now().timestamp())},
    )
    assert upstream.sync().to_mend == (other.sandbox_id,)
    upstream.pool.release(ours)

    newer = upstream.pool.take("track-1")

    assert not newer.is_repeat
    assert newer.sandbox.sandbox_id not in {ours.sandbox_id, other.sandbox_id}
    assert upstream.pool.take("track-1").sandbox == newer.sandbox
    upstream.pool.check_whole()


def test_foreign_allocations_expire_without_any_sync(upstream: Upstream) -> None:
    (lent,) = upstream.fill(1)
    rows = seed.table_named("SandboxPool")
    rows.update_item(
        Key={"PK": f"SBX#{lent.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #s = :a, allocated_to_track = :t, allocated_at = :n, idempotency_key = :t",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":a": "allocated", ":t": "track-8", ":n": int(upstream.pool.clock.now().timestamp())},
    )
    upstream.later(24 * 3600 + 301)

    report = upstream.pool.expire()

    assert (report.mended, report.expired) == ((lent.sandbox_id,), (lent.sandbox_id,))


@pytest.mark.parametrize("by", ["sync", "take"])
def test_a_lent_one_that_another_program_made_free_is_free(upstream: Upstream, by: str) -> None:
    upstream.fill(1)
    lent = upstream.pool.take("track-1").sandbox
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{lent.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #s = :a, allocated_at = :zero REMOVE allocated_to_track, idempotency_key",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":a": "available", ":zero": 0},
    )
    if by == "sync":
        assert upstream.sync().to_mend == (lent.sandbox_id,)
        assert upstream.pool.now_of(lent).lent_at is None
        upstream.pool.check_whole()

    newer = upstream.pool.take("track-1")

    assert (newer.is_repeat, newer.sandbox.sandbox_id, newer.sandbox.fence) == (False, lent.sandbox_id, 2)
    upstream.pool.check_whole()
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()


def reset_by_hand(upstream: Upstream, external_id: str) -> None:
    """Somebody has the provider reset a free one: it is listed, and not ready."""
    upstream.set(reset_seconds=600)
    upstream.twin.answer("DELETE", f"{PREFIX}/{external_id}", "", {}, b"")


def test_a_free_one_that_is_listed_as_not_ready_is_not_lent(upstream: Upstream) -> None:
    (only,) = upstream.fill(1)
    upstream.later()
    reset_by_hand(upstream, only.external_id)

    assert upstream.sync(apply=False).not_ready == (only.sandbox_id,)
    assert upstream.sync().not_ready == (only.sandbox_id,)

    assert upstream.pool.status_of(only) is Status.STALE
    assert "not ready" in queries.explain(sandbox_id=only.sandbox_id, now=upstream.pool.clock.now())
    with pytest.raises(NoneFree):
        upstream.pool.take()
    upstream.pool.check_whole()
    # Listed as before, it stays where it is; ready, it is free again.
    assert upstream.sync().seen_again == ()
    upstream.later(700)
    assert upstream.sync().seen_again == (only.sandbox_id,)
    assert upstream.pool.take().sandbox.sandbox_id == only.sandbox_id


def test_one_that_became_ready_since_the_list_stays_free(upstream: Upstream) -> None:
    (only,) = upstream.fill(1)
    upstream.later()
    reset_by_hand(upstream, only.external_id)
    upstream.adapter.after = lambda call: upstream.later(700) if call == "GET list" else None

    upstream.sync()

    assert upstream.pool.status_of(only) is Status.AVAILABLE


def test_a_provider_that_shows_all_as_not_ready_meets_the_brake(upstream: Upstream) -> None:
    rows = upstream.fill(8)
    upstream.later()
    for row in rows:
        reset_by_hand(upstream, row.external_id)

    with pytest.raises(SyncStopped, match="not ready"):
        upstream.sync()

    assert {row.status for row in upstream.pool.everything()} == {Status.AVAILABLE}


@pytest.mark.parametrize("recycle", [0, 1])
def test_a_new_one_comes_in_when_it_is_listed_as_ready_and_is_not_touched_before(upstream: Upstream, recycle: int) -> None:
    """The provider is still making it; one that forgets what is deleted would lose it before it was ever lent."""
    upstream.fill(1)
    upstream.set(reset_seconds=600)
    upstream.twin.create("ext-new", name="lab-new")
    upstream.twin.answer("DELETE", f"{PREFIX}/ext-new", "", {}, b"")
    upstream.twin.deletions.clear()
    upstream.set(recycle=recycle)
    for plan in (upstream.sync(apply=False), upstream.sync(), upstream.sync()):
        assert (plan.new, plan.new_not_ready, plan.not_ready) == ((), ("ext-new",), ())
        upstream.clean()
        upstream.later(60)
    assert [row.external_id for row in upstream.pool.everything()] == ["ext-000"]

    upstream.later(600)
    plan = upstream.sync()

    assert (plan.new, plan.new_not_ready, upstream.twin.deletions) == (("ext-new",), (), [])
    assert {row.status for row in upstream.pool.everything()} == {Status.AVAILABLE}
    upstream.pool.check_whole()


def test_rows_that_make_no_sense_are_named_until_they_are_mended(upstream: Upstream) -> None:
    rows = seed.table_named("SandboxPool")
    odd, unknown, _ = upstream.fill(3)

    def write(sandbox_id: str, name: str, value: object) -> None:
        rows.update_item(
            Key={"PK": f"SBX#{sandbox_id}", "SK": "META"},
            UpdateExpression="SET #n = :v",
            ExpressionAttributeNames={"#n": name},
            ExpressionAttributeValues={":v": value},
        )

    write(odd.sandbox_id, "lab_duration_hours", "four")
    write(unknown.sandbox_id, "status", "on_fire")
    upstream.later()
    upstream.sync()

    assert {one.sandbox_id for one in queries.unreadable()} == {odd.sandbox_id, unknown.sandbox_id}
    write(odd.sandbox_id, "lab_duration_hours", 4)
    assert {one.sandbox_id for one in queries.unreadable()} == {unknown.sandbox_id}
