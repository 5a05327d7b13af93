"""The pages of the pool and of API tokens in a real browser: with long names, many holders and every trouble a sandbox can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import pytest
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from accessportal.kernel.actors import client
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import RunKind, RunState, Sandbox, Status
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from accessportal.twin.sandbox_provider import SandboxProviderTwin
from accessportal.upstream.client import HttpProvider
from accessportal.upstream.errors import Transient
from tests.browser.looks import look_at
from tests.fixtures_browser import Desk
from tests.fixtures_pool import Labs
from tests.fixtures_story import Story
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.cleaning_by_hand import free_again

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SignIn = Callable[[str], Client]
_MINUTE, _HOUR = 60, 3600
_LONG_NAME = "lab-" + "machine-learning-workshop-frankfurt-" * 4 + "x" * 60
_LONG_TRACK = "track-" + "f00dcafe" * 25
_TEAM = "team:maximiliana.featherstonehaugh-cholmondeley@platform-engineering.example.com"
_LONG_REASON = "Somebody left a database open to the world here. " * 4 + "See https://incidents.example.com/" + "4711-0815" * 12
_LONG_ERROR = "The provider answered 502 Bad Gateway, and this instead of a list: " + "<html><body>nginx upstream-timed-out " * 9 + "=" * 90


@dataclass(frozen=True, slots=True)
class OddPool:
    """One sandbox in every state that a page shows differently."""

    lent: Sandbox
    over: Sandbox
    cleaning: Sandbox
    stale: Sandbox
    quarantined: Sandbox
    unreadable_id: str


@pytest.fixture
def odd_pool(labs: Labs, provider_twin: SandboxProviderTwin, provider: HttpProvider) -> OddPool:
    names = ("lab-free", "lab-cleaning", "lab-stale", "lab-smoke", "lab-odd", "lab-over")
    cleaning, stale, quarantined, unreadable, over = labs.fill(*names)[1:]
    for name in names:
        if name != "lab-stale":
            provider_twin.create(f"ext-{name}", name=name)
    for _ in range(2):
        labs.story.clock.advance(5 * _MINUTE)
        operations.sync(provider=provider, apply=True, clock=labs.story.clock)
    for track, name in (("track-1", "lab-cleaning"), (_LONG_TRACK, "lab-smoke"), ("track-late", "lab-over")):
        lend(labs, track, name)
    give_back(labs, cleaning, "track-1")
    provider_twin.settings.change({"sandbox_fail_delete": 1})
    operations.clean(provider=provider, clock=labs.story.clock, limit=5, pace_seconds=0, workers=1)
    operations.quarantine(sandbox_id=quarantined.sandbox_id, reason=_LONG_REASON, actor=labs.story.olga, now=labs.story.clock.now())
    labs.story.clock.advance(12 * _HOUR)
    lent = often_lent(labs)
    spoil(unreadable)
    labs.count()
    pool = OddPool(
        lent=now_of(lent),
        over=now_of(over),
        cleaning=now_of(cleaning),
        stale=now_of(stale),
        quarantined=now_of(quarantined),
        unreadable_id=unreadable.sandbox_id,
    )
    assert (pool.lent.status, pool.over.status, pool.cleaning.status) == (Status.ALLOCATED, Status.ALLOCATED, Status.PENDING_DELETION)
    assert (pool.stale.status, pool.quarantined.status) == (Status.STALE, Status.QUARANTINED)
    assert pool.cleaning.clean_error
    return pool


def now_of(sandbox: Sandbox) -> Sandbox:
    return queries.get(sandbox_id=sandbox.sandbox_id)


def lend(labs: Labs, track: str, prefix: str) -> Sandbox:
    taken = operations.take(
        key=track, track=track, name_prefix=prefix, duration_seconds=2 * _HOUR, actor=client("labrunner"), now=labs.story.clock.now()
    )
    return taken.sandbox


def give_back(labs: Labs, sandbox: Sandbox, track: str) -> None:
    operations.release(sandbox_id=sandbox.sandbox_id, track=track, actor=client("labrunner"), now=labs.story.clock.now())


def often_lent(labs: Labs) -> Sandbox:
    """One with a very long name, several holders behind it and one now; an operator took it from somebody."""
    (lab,) = labs.fill(_LONG_NAME[:200])
    for track in ("track-8", _TEAM, _LONG_TRACK):
        lend(labs, track, "lab-machine")
        labs.story.clock.advance(50 * _MINUTE)
        if track == _TEAM:
            now = labs.story.clock.now()
            operations.release_by_operator(sandbox_id=lab.sandbox_id, reason=_LONG_REASON, actor=labs.story.olga, now=now)
        else:
            give_back(labs, lab, track)
        free_again(now_of(lab), now=labs.story.clock.now())
        labs.story.clock.advance(_MINUTE)
    lend(labs, f"{_TEAM}/2", "lab-machine")
    labs.story.clock.advance(_MINUTE)
    return lab


def spoil(sandbox: Sandbox) -> None:
    """As another program might."""
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{sandbox.sandbox_id}", "SK": "META"},
        UpdateExpression="SET lab_duration_hours = :v",
        ExpressionAttributeValues={":v": "on fire"},
    )


@pytest.fixture
def olga(story: Story, desk: Desk, live_server: LiveServer, as_person: SignIn) -> Page:
    """Her browser, at the story's own time: after the things she looks at, so that nothing lies in its future.

    The story is named first, so that it ends last: until the desk has been left, pages go on asking at its time.
    """
    context = desk.sit_down(base_url=live_server.url)
    context.add_cookies([{"name": "sessionid", "value": as_person("olga").cookies["sessionid"].value, "url": live_server.url}])
    context.clock.set_fixed_time(story.clock.now())
    return context.new_page()


def visit(page: Page, address: str, name: str, *, says: str = "") -> None:
    response = page.goto(address)
    assert response is not None
    assert response.status == 200, address
    expect(page.locator("main")).to_contain_text(says)
    look_at(page, name)


def press(page: Page, button: str, name: str, *, says: str) -> None:
    """The page that asks before it is done."""
    page.get_by_role("button", name=button).click()
    expect(page.locator("main")).to_contain_text(says)
    look_at(page, name)


def test_the_lists_of_the_pool(odd_pool: OddPool, olga: Page) -> None:
    for status, says in (
        (Status.ALLOCATED, "its time is over"),
        (Status.AVAILABLE, "lab-free"),
        (Status.PENDING_DELETION, "1 failure in a row"),
        (Status.STALE, "lab-stale"),
        (Status.QUARANTINED, "Somebody left"),
    ):
        visit(olga, f"/admin/sandboxes/?pattern={status.value}", f"pool-{status.value}", says=says)
    visit(olga, f"/admin/sandboxes/?pattern=track&q={_TEAM}/2", "pool-track", says=odd_pool.lent.name)
    visit(olga, "/admin/sandboxes/?pattern=unreadable", "pool-unreadable", says=odd_pool.unreadable_id)


def test_a_sandbox_and_what_is_asked_before_it_is_changed(odd_pool: OddPool, olga: Page) -> None:
    lent, quarantined = (f"/admin/sandboxes/{one.sandbox_id}/" for one in (odd_pool.lent, odd_pool.quarantined))
    visit(olga, lent, "sandbox-lent", says="Holds it now")
    press(olga, "Take back…", "sandbox-take-back", says="loses")
    olga.get_by_role("button", name="Take back", exact=True).click()
    expect(olga.get_by_role("alert")).to_be_visible()
    look_at(olga, "sandbox-take-back-no-reason")
    visit(olga, f"{lent}history/?check=1", "sandbox-history", says="whole")
    visit(olga, f"/admin/sandboxes/{odd_pool.cleaning.sandbox_id}/", "sandbox-cleaning", says="1 of 8 in a row")
    press(olga, "Quarantine…", "sandbox-quarantine", says="Nobody gets lab-cleaning")
    visit(olga, f"/admin/sandboxes/{odd_pool.stale.sandbox_id}/", "sandbox-stale", says="Missing since")
    visit(olga, quarantined, "sandbox-quarantined", says="Somebody left a database open")
    press(olga, "Restore…", "sandbox-restore", says="cleaned once more")


def test_many_are_restored_and_one_is_asked_about_again(odd_pool: OddPool, labs: Labs, olga: Page) -> None:
    for name in ("lab-free", "lab-cleaning"):
        (lab,) = [one for status in Status for one in queries.list_by_status(status=status).items if getattr(one, "name", "") == name]
        operations.quarantine(sandbox_id=lab.sandbox_id, reason="The disk is full.", actor=labs.story.olga, now=labs.story.clock.now())
    visit(olga, "/admin/sandboxes/?pattern=quarantined", "pool-quarantined-many", says="The disk is full.")
    olga.get_by_label("Select all on this page").check()
    press(olga, "Restore 3…", "sandboxes-restore", says="Why it is in quarantine: The disk is full.")
    olga.get_by_role("button", name="Restore 3").click()
    expect(olga.get_by_role("heading", name="Restore: 3 of 3 done")).to_be_visible()
    look_at(olga, "sandboxes-restored")

    visit(olga, f"/admin/sandboxes/{odd_pool.lent.sandbox_id}/", "sandbox-lent", says="Holds it now")
    press(olga, "Take back…", "sandbox-take-back", says=f"{_TEAM}/2 loses")
    give_back(labs, odd_pool.lent, f"{_TEAM}/2")
    free_again(now_of(odd_pool.lent), now=labs.story.clock.now())
    lend(labs, "track-next", "lab-machine")
    olga.get_by_label("Reason").fill("It mines coins.")
    press(olga, "Take back", "sandbox-take-back-moved-on", says="track-next loses")
    expect(olga.get_by_role("alert")).to_contain_text("It has changed since you were asked")
    assert now_of(odd_pool.lent).track == "track-next"


def test_runs_and_the_order_of_one(odd_pool: OddPool, labs: Labs, provider: HttpProvider, olga: Page) -> None:
    def fail() -> NoReturn:
        raise Transient("502", _LONG_ERROR)

    provider.list_sandboxes = fail  # type: ignore[method-assign]
    for kind, performer in ((RunKind.CLEANUP, None), (RunKind.SYNC, provider)):
        run = operations.order_run(kind=kind, actor=labs.story.olga, now=labs.story.clock.now())
        labs.story.clock.advance(_MINUTE)
        assert operations.perform_run(run_id=run.run_id, provider=performer, clock=labs.story.clock).state is RunState.FAILED
    visit(olga, "/admin/sandbox-runs/", "runs-failed", says="nginx")
    visit(olga, "/admin/sandbox-runs/order/cleanup/", "run-order", says="Every sandbox past its deadline")

    olga.get_by_role("button", name="Order the run").click()

    expect(olga.get_by_text("The cleanup is ordered.")).to_be_visible()
    look_at(olga, "runs-open")
    visit(olga, "/admin/sandboxes/", "pool-run-queued", says="A cleanup is queued")


def test_a_pool_without_a_provider_and_a_row(olga: Page) -> None:
    visit(olga, "/admin/sandboxes/", "pool-empty", says="The pool was never counted")
    visit(olga, "/admin/sandbox-runs/", "runs-empty", says="No run has ended")
    visit(olga, "/admin/sandbox-runs/order/sync/", "run-order-no-provider", says="No provider is set")


def test_tokens_are_listed_and_made(story: Story, olga: Page) -> None:
    made = tokens.create_token(name="Lab runner " + "x" * 69, scope=Scope.TRACK, actor=story.olga, now=story.clock.now())
    gone = tokens.create_token(name="Nightly cleaner", scope=Scope.ADMIN, actor=story.olga, now=story.clock.now())
    tokens.revoke_token(token_id=gone.token.token_id, reason=_LONG_REASON, actor=story.olga, now=story.clock.now())
    visit(olga, "/admin/tokens/?pattern=all", "tokens", says="Revoked")
    visit(olga, f"/admin/tokens/{made.token.token_id}/", "token-live", says="600 requests a minute")
    press(olga, "Revoke…", "token-revoke", says="its next request is refused")
    visit(olga, f"/admin/tokens/{gone.token.token_id}/", "token-revoked", says="Somebody left")
    visit(olga, "/admin/tokens/new/", "token-new", says="What it opens")

    olga.get_by_role("button", name="Create the token").click()
    expect(olga.get_by_text("Choose what it opens.")).to_be_visible()
    look_at(olga, "token-new-errors")
    olga.get_by_label("Name").fill("Lab runner, Frankfurt")
    olga.get_by_label("Track", exact=True).check()
    olga.get_by_role("button", name="Create the token").click()

    expect(olga.get_by_text("Copy it now.")).to_be_visible()
    look_at(olga, "token-made")
