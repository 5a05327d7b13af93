"""The pool in the console: what is where, one sandbox with everybody who held it, and what may be done by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from django.test import Client

from accessportal.kernel.clock import to_epoch
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Run, RunKind, RunState, Sandbox, Status
from accessportal.upstream.client import HttpProvider
from tests.fixtures_pool import Labs
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.test_races import right_before_the_write

SignIn = Callable[[str], Client]
BASE = "/admin/sandboxes/"
RUNS = "/admin/sandbox-runs/"


def page_of(sandbox: Sandbox) -> str:
    return f"{BASE}{sandbox.sandbox_id}/"


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def fields_of(page: str) -> dict[str, list[str]]:
    """What the form of the page that asks before would send along."""
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page):
        fields.setdefault(name, []).append(value)
    return fields


def asked(client: Client, address: str, *, keys: Sequence[str] = ()) -> dict[str, list[str]]:
    return fields_of(client.post(address, {"key": keys}).content.decode())


def do(client: Client, sandbox: Sandbox, verb: str, **data: str) -> int:
    """Asked, and pressed at once."""
    address = f"{page_of(sandbox)}do/{verb}/"
    return client.post(address, {"confirmed": "yes", **asked(client, address), **data}).status_code


def now_of(sandbox: Sandbox) -> Sandbox:
    return queries.get(sandbox_id=sandbox.sandbox_id)


def release(labs: Labs, sandbox: Sandbox, track: str) -> None:
    operations.release(sandbox_id=sandbox.sandbox_id, track=track, actor=labs.story.alice, now=labs.story.clock.now())


def test_lists_by_status_and_by_track_with_the_pool_on_top(labs: Labs, as_person: SignIn) -> None:
    labs.fill("lab-one", "lab-two", "lab-three")
    labs.take_elsewhere("team:sam@example.com/7")
    labs.count()
    ana = as_person("ana")

    first = shown(ana, BASE)
    assert "team:sam@example.com/7" in first
    assert "<strong>2</strong>" in first
    assert first.count("/history/") == 0
    assert shown(ana, f"{BASE}?pattern=available").count('class="what"') == 2
    assert "team:sam@example.com/7" in shown(ana, f"{BASE}?pattern=track&q=team:sam@example.com/7")
    for pattern in ("pending_deletion", "stale", "quarantined", "unreadable", "track&q=nobody"):
        assert 'class="nothing"' in shown(ana, f"{BASE}?pattern={pattern}")
    assert "Sync now" not in first
    assert "Sync now" in shown(as_person("olga"), BASE)


def test_a_pool_that_was_never_counted_and_has_no_provider_says_so(story: object, as_person: SignIn) -> None:
    page = shown(as_person("olga"), BASE)

    assert "never counted" in page
    assert "PORTAL_SANDBOX_PROVIDER_URL" in page
    assert "No sandbox is lent" in page


def test_a_sandbox_tells_everybody_who_held_it(labs: Labs, as_person: SignIn) -> None:
    (lab,) = labs.fill("lab-one")
    labs.take_elsewhere("track-1")
    release(labs, lab, "track-1")
    operations.quarantine(sandbox_id=lab.sandbox_id, reason="Smoke.", actor=labs.story.olga, now=labs.story.clock.now())

    page = as_person("ana").get(page_of(lab))

    (held,) = page.context["holdings"]
    assert (held.fence, held.track, held.how) == (1, "track-1", "given back")
    words = page.content.decode()
    assert "Smoke." in words
    assert "The chain is whole" in words
    assert "In quarantine" in words
    assert not page.context["deeds"]
    assert {one.name for one in as_person("olga").get(page_of(lab)).context["deeds"]} == {"restore"}


def test_a_holder_that_never_gave_it_back_holds_it_now(labs: Labs, as_person: SignIn) -> None:
    (lab,) = labs.fill("lab-one")
    labs.take_elsewhere("track-1")

    words = shown(as_person("ana"), page_of(lab))

    assert "Holds it now" in words
    assert "hand-over 1" in words


def test_operators_take_back_quarantine_and_restore_and_nobody_else(labs: Labs, as_person: SignIn) -> None:
    (lab,) = labs.fill("lab-one")
    labs.take_elsewhere("track-1")
    olga = as_person("olga")
    for name, verb in (("ana", "release"), ("ana", "quarantine"), ("bob", "release"), ("mallory", "quarantine")):
        assert do(as_person(name), lab, verb, reason="Mine.") in {403, 404}, (name, verb)
    assert queries.get(sandbox_id=lab.sandbox_id).status is Status.ALLOCATED

    assert do(olga, lab, "release") == 400
    assert do(olga, lab, "release", reason="The student left.") == 302
    (held,) = olga.get(page_of(lab)).context["holdings"]
    assert (held.how, held.by, held.reason) == ("taken back", "olga@example.com", "The student left.")
    assert queries.get(sandbox_id=lab.sandbox_id).status is Status.PENDING_DELETION
    assert do(olga, lab, "release", reason="Again.") == 409
    assert do(as_person("ana"), lab, "release", reason="Again.") == 403
    assert do(olga, lab, "quarantine", reason="Smoke.") == 302
    assert queries.get(sandbox_id=lab.sandbox_id).status is Status.QUARANTINED
    assert do(olga, lab, "restore") == 302
    assert queries.get(sandbox_id=lab.sandbox_id).status is Status.PENDING_DELETION
    assert do(olga, lab, "restore") == 409
    assert olga.get(f"{BASE}no-such-sandbox/").status_code == 404


def test_the_page_before_says_whom_it_hits(labs: Labs, as_person: SignIn) -> None:
    (lab,) = labs.fill("lab-one")
    labs.take_elsewhere("track-1")

    asked = as_person("olga").post(f"{page_of(lab)}do/quarantine/").content.decode()

    assert "track-1 loses it at once" in asked
    assert queries.get(sandbox_id=lab.sandbox_id).status is Status.ALLOCATED


def pass_on(labs: Labs, lab: Sandbox) -> Sandbox:
    """Track 1 gives it back, it is cleaned, and track 2 takes it."""
    release(labs, lab, "track-1")
    free_again(now_of(lab), now=labs.story.clock.now())
    labs.take_elsewhere("track-2")
    return now_of(lab)


def lend_elsewhere(labs: Labs, lab: Sandbox, track: str) -> None:
    """As another program does, which knows of no fence."""
    labs.story.clock.advance(60)
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{lab.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #s = :a, allocated_to_track = :t, allocated_at = :n, idempotency_key = :t",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":a": "allocated", ":t": track, ":n": to_epoch(labs.story.clock.now())},
    )


@pytest.mark.parametrize("verb", ["release", "quarantine"])
def test_who_gets_it_before_the_button_is_pressed_keeps_it(labs: Labs, as_person: SignIn, verb: str) -> None:
    (lab,) = labs.fill("lab-one")
    labs.take_elsewhere("track-1")
    olga, address = as_person("olga"), f"{page_of(lab)}do/{verb}/"
    about_the_first = asked(olga, address)
    second = pass_on(labs, lab)

    # Also without the reason: the page that asks for it would be about somebody else.
    for reason in ("Track 1 mines coins.", ""):
        late = olga.post(address, {**about_the_first, "reason": reason})
        assert late.status_code == 409
        assert "It has changed since you were asked, so nothing was done" in late.content.decode()
        assert "track-2 loses" in late.content.decode()
        assert now_of(lab) == second

    about_the_second = fields_of(late.content.decode())
    assert olga.post(address, {**about_the_second, "reason": "Track 2, too."}).status_code == 302
    assert now_of(lab).status is not Status.ALLOCATED
    assert olga.post(address, {**about_the_second, "reason": "Twice."}).status_code == 409


@pytest.mark.parametrize("verb", ["release", "quarantine"])
def test_who_gets_it_while_the_button_is_pressed_keeps_it(
    labs: Labs, as_person: SignIn, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    (lab,) = labs.fill("lab-one")
    labs.take_elsewhere("track-1")
    olga, address = as_person("olga"), f"{page_of(lab)}do/{verb}/"
    about_the_first = asked(olga, address)

    with right_before_the_write(monkeypatch, lambda: pass_on(labs, lab)) as others:
        late = olga.post(address, {**about_the_first, "reason": "Track 1 mines coins."})

    assert late.status_code == 409
    assert "hand-over 2 now, lent to track-2" in late.content.decode()
    assert now_of(lab) == others[0]


def test_another_programs_next_holder_keeps_it(labs: Labs, as_person: SignIn) -> None:
    """Both hand-overs have one fence, because no program of ours has met the first."""
    (lab,) = labs.fill("lab-one")
    lend_elsewhere(labs, lab, "track-8")
    olga, address = as_person("olga"), f"{page_of(lab)}do/release/"
    about_the_first = asked(olga, address)
    lend_elsewhere(labs, lab, "track-9")

    assert olga.post(address, {**about_the_first, "reason": "Track 8 mines coins."}).status_code == 409

    assert now_of(lab).track == "track-9"
    assert do(olga, lab, "release", reason="Track 9, too.") == 302
    assert now_of(lab).last_released_by == "track-9"


@pytest.mark.parametrize("mark", [{}, {"mark": "forged"}], ids=["none", "forged"])
@pytest.mark.parametrize("verb", ["release", "quarantine"])
def test_a_form_that_does_not_say_whom_it_means_is_asked_again(labs: Labs, as_person: SignIn, verb: str, mark: dict[str, str]) -> None:
    (lab,) = labs.fill("lab-one")
    labs.take_elsewhere("track-1")
    held = now_of(lab)
    named = {f"mark-{lab.sandbox_id}": words for words in mark.values()}

    answer = as_person("olga").post(f"{page_of(lab)}do/{verb}/", {"confirmed": "yes", "reason": "Smoke.", **named})

    assert answer.status_code == 409
    assert "track-1 loses" in answer.content.decode()
    assert now_of(lab) == held


def test_one_that_was_put_in_quarantine_anew_stays_there(labs: Labs, as_person: SignIn) -> None:
    (lab,) = labs.fill("lab-one")
    olga, address = as_person("olga"), f"{page_of(lab)}do/restore/"
    assert do(olga, lab, "quarantine", reason="Smoke.") == 302
    about_the_smoke = asked(olga, address)
    assert do(olga, lab, "restore") == 302
    assert do(olga, lab, "quarantine", reason="Evidence, don’t touch.") == 302

    assert olga.post(address, about_the_smoke).status_code == 409

    assert now_of(lab).quarantine_reason == "Evidence, don’t touch."
    assert do(olga, lab, "restore") == 302


def out_of_use(labs: Labs, *names: str) -> list[Sandbox]:
    """In quarantine, all but the first, which is stale."""
    stale, *broken = labs.fill(*names)
    for one in broken:
        operations.quarantine(sandbox_id=one.sandbox_id, reason="Smoke.", actor=labs.story.olga, now=labs.story.clock.now())
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{stale.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #s = :s",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":s": "stale"},
    )
    return [stale, *broken]


def test_many_that_are_out_of_use_are_restored_at_once(labs: Labs, as_person: SignIn) -> None:
    stale, first, second, evidence = out_of_use(labs, "lab-stale", "lab-one", "lab-two", "lab-evidence")
    (free,) = labs.fill("lab-free")
    olga, many = as_person("olga"), f"{BASE}bulk/restore/"
    keys = [one.sandbox_id for one in (stale, first, second, evidence, free)]
    page = olga.post(many, {"key": keys})
    assert page.context["title"] == "Restore 4 sandboxes"
    assert page.content.decode().count("Why it is in quarantine: Smoke.") == 3
    operations.restore(sandbox_id=evidence.sandbox_id, actor=labs.story.olga, now=labs.story.clock.now())
    assert do(olga, evidence, "quarantine", reason="Evidence, don’t touch.") == 302

    told = olga.post(many, fields_of(page.content.decode()), follow=True)

    assert [(one.title, one.is_done) for one in told.context["batch"].told] == [
        ("lab-evidence", False),
        ("lab-stale", True),
        ("lab-one", True),
        ("lab-two", True),
    ]
    assert "It has changed since you were asked" in told.content.decode()
    assert {now_of(one).status for one in (stale, first, second)} == {Status.PENDING_DELETION}
    assert now_of(evidence).quarantine_reason == "Evidence, don’t touch."
    again = olga.post(many, fields_of(page.content.decode()), follow=True)
    assert not any(one.is_done for one in again.context["batch"].told)


@pytest.mark.parametrize("name", ["ana", "bob", "mallory"])
def test_nobody_restores_many_who_may_not(labs: Labs, as_person: SignIn, name: str) -> None:
    broken = out_of_use(labs, "lab-stale", "lab-one")
    keys = [one.sandbox_id for one in broken]
    asked_by_olga = asked(as_person("olga"), f"{BASE}bulk/restore/", keys=keys)

    answer = as_person(name).post(f"{BASE}bulk/restore/", asked_by_olga, follow=True)

    assert answer.status_code == 403 or not any(one.is_done for one in answer.context["batch"].told)
    assert [now_of(one).status for one in broken] == [Status.STALE, Status.QUARANTINED]


def test_many_are_ticked_only_where_they_can_be_restored(labs: Labs, as_person: SignIn) -> None:
    _, unreadable, _ = out_of_use(labs, "lab-stale", "lab-odd", "lab-one")
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{unreadable.sandbox_id}", "SK": "META"},
        UpdateExpression="SET lab_duration_hours = :v",
        ExpressionAttributeValues={":v": "on fire"},
    )
    labs.fill("lab-free")
    labs.take_elsewhere("track-1")
    olga, ana = as_person("olga"), as_person("ana")

    for status in Status:
        is_restorable = status in {Status.STALE, Status.QUARANTINED}
        page = shown(olga, f"{BASE}?pattern={status.value}")
        assert ("Restore selected" in page) is is_restorable, status
        # One each; what can't be read can't be restored.
        assert page.count('name="key"') == (1 if is_restorable else 0), status
        assert "Restore selected" not in shown(ana, f"{BASE}?pattern={status.value}")
    assert unreadable.sandbox_id in shown(olga, f"{BASE}?pattern=quarantined")


def test_runs_are_ordered_listed_and_told_how_they_ended(labs: Labs, as_person: SignIn) -> None:
    olga, ana = as_person("olga"), as_person("ana")
    assert "Order the run" in shown(olga, f"{RUNS}order/sync/")
    assert ana.get(f"{RUNS}order/sync/").status_code == 403
    assert ana.post(f"{RUNS}order/sync/").status_code == 403
    assert olga.post(f"{RUNS}order/brew/").status_code == 404
    assert queries.open_runs().items == ()

    assert olga.post(f"{RUNS}order/cleanup/").status_code == 302

    (run,) = queries.open_runs().items
    assert (run.kind, run.ordered_by) == (RunKind.CLEANUP, labs.story.olga.name)
    assert "Queued" in shown(ana, f"{RUNS}?pattern=open")
    assert "A cleanup is queued" in shown(ana, BASE)
    ended = _performed(labs, run)
    assert ended.state is RunState.FAILED
    assert "No sandbox provider is set" in shown(ana, RUNS)


def test_a_run_names_what_it_did_and_nothing_else(labs: Labs, as_person: SignIn, provider: HttpProvider) -> None:
    labs.fill("lab-one")
    labs.take_elsewhere("track-1")
    olga, ana = as_person("olga"), as_person("ana")
    assert olga.post(f"{RUNS}order/cleanup/").status_code == 302
    assert "nothing yet" in shown(ana, f"{RUNS}?pattern=open")
    (run,) = queries.open_runs().items
    operations.perform_run(run_id=run.run_id, provider=provider, clock=labs.story.clock)
    assert "there was nothing to do" in shown(ana, RUNS)

    labs.story.clock.advance(13 * 3600)
    olga.post(f"{RUNS}order/cleanup/")
    (run,) = queries.open_runs().items
    _performed(labs, run)
    (row, _) = ana.get(RUNS).context["rows"]
    assert row.context == {"expired": 1}


def _performed(labs: Labs, run: Run) -> Run:
    return operations.perform_run(run_id=run.run_id, provider=None, clock=labs.story.clock)


@pytest.mark.parametrize("attribute", ["status", "lab_duration_hours"])
def test_a_row_that_makes_no_sense_is_named_and_hides_no_other(labs: Labs, as_person: SignIn, attribute: str) -> None:
    odd, _ = labs.fill("lab-odd", "lab-fine")
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{odd.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #n = :v",
        ExpressionAttributeNames={"#n": attribute},
        ExpressionAttributeValues={":v": "on fire"},
    )
    labs.count()
    ana = as_person("ana")

    assert "lab-fine" in shown(ana, f"{BASE}?pattern=available")
    assert ana.get(page_of(odd)).status_code == 503
    if attribute == "lab_duration_hours":
        assert odd.sandbox_id in shown(ana, f"{BASE}?pattern=unreadable")
        assert odd.sandbox_id in shown(ana, f"{BASE}?pattern=available")


def test_long_names_and_strange_tracks_are_shown_as_they_are(labs: Labs, as_person: SignIn) -> None:
    (lab,) = labs.fill("lab-" + "x" * 200)
    track = '<b>"track & co"</b>' + "y" * 200
    labs.take_elsewhere(track)

    words = shown(as_person("ana"), page_of(lab))

    assert "&lt;b&gt;" in words
    assert '<b>"track' not in words
