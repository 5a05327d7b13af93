"""The page of the sandboxes, through HTTP: mine, and the pool at a glance."""

from __future__ import annotations

import re

import pytest

from accessportal.sandboxes import operations as sandboxes
from accessportal.upstream import client as upstream
from tests.fixtures_pool import Labs
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of

_DAY = 86_400


def test_without_a_provider_there_is_no_pool(labs: Labs, signed_in: SignedIn) -> None:
    upstream.configure(upstream.UpstreamSettings())

    page = text_of(signed_in("alice").get("/sandboxes/"))

    assert "There is no pool here: no sandbox provider is set." in page
    assert "You have none at the moment." in page


def test_before_the_first_count(labs: Labs, signed_in: SignedIn) -> None:
    page = signed_in("alice").get("/sandboxes/")

    assert "Nothing has been counted yet." in text_of(page)
    assert "<figure" not in page.content.decode()


def test_an_empty_pool(labs: Labs, signed_in: SignedIn) -> None:
    labs.count()

    assert "The pool is empty" in text_of(signed_in("alice").get("/sandboxes/"))


def test_the_pool_is_told_in_figures_drawn_and_in_a_table(labs: Labs, signed_in: SignedIn) -> None:
    labs.fill("lab-1", "lab-2", "lab-3")
    labs.count()
    labs.story.clock.advance(600)
    labs.take_elsewhere()
    labs.count()

    page = signed_in("alice").get("/sandboxes/")

    words = text_of(page)
    assert "Free 2 to be had" in words
    assert "Lent 1 in use" in words
    assert "fewest free 2 of 3" in words
    html = page.content.decode()
    assert '<path class="area free"' in html
    assert '<path class="area lent"' in html
    assert '<path class="area stale"' not in html
    assert re.search(r"Counted Free Lent Cleaning Stale Quarantined All .* 2 1 0 0 0 3", words)
    assert "style=" not in html
    assert "<script>" not in html


def test_none_is_free(labs: Labs, signed_in: SignedIn) -> None:
    labs.fill("lab-1")
    labs.take_elsewhere()
    labs.count()
    alice = signed_in("alice")
    assert "None is free now. The next one is expected back about" in text_of(alice.get("/sandboxes/"))


def test_none_is_free_and_none_is_under_way(labs: Labs, signed_in: SignedIn) -> None:
    (lab,) = labs.fill("lab-1")
    sandboxes.quarantine(sandbox_id=lab.sandbox_id, reason="broken", actor=labs.story.olga, now=labs.story.clock.now())
    labs.count()

    assert "tell your operator" in text_of(signed_in("alice").get("/sandboxes/"))


def test_a_count_that_is_old_is_told_as_old(labs: Labs, signed_in: SignedIn) -> None:
    labs.fill("lab-1")
    labs.count()
    alice = signed_in("alice")
    assert "has not come by since" not in text_of(alice.get("/sandboxes/"))

    labs.story.clock.advance(1800)

    assert "the job that counts has not come by since" in text_of(alice.get("/sandboxes/"))


def test_a_week_can_be_looked_at(labs: Labs, signed_in: SignedIn) -> None:
    labs.fill("lab-1")
    labs.count()
    labs.story.clock.advance(3 * _DAY)
    labs.fill("lab-2")
    labs.count()
    alice = signed_in("alice")

    day, week = alice.get("/sandboxes/"), alice.get("/sandboxes/", {"range": "7d"})

    assert "fewest free 2 of 2" in text_of(day)
    assert "fewest free 1 of 1" in text_of(week)
    assert "7 d ago" in text_of(week)
    assert text_of(alice.get("/sandboxes/", {"range": "\0ever"})) == text_of(day)


def test_the_parts_refresh_themselves_only_when_they_changed(labs: Labs, signed_in: SignedIn) -> None:
    labs.fill("lab-1", "lab-2")
    labs.count()
    alice = signed_in("alice")
    page = alice.get("/sandboxes/")
    pool = {"part": "pool", "range": "24h", "mark": page.context["mark"]}
    mine = {"part": "mine", "mark": page.context["mine_mark"]}
    for given in (pool, mine):
        assert alice.get("/sandboxes/", given, headers=HTMX).status_code == 204

    labs.held()
    labs.count()

    changed = alice.get("/sandboxes/", pool, headers=HTMX)
    assert "Lent 1 in use" in text_of(changed)
    assert "<h1" not in changed.content.decode()
    changed = alice.get("/sandboxes/", mine, headers=HTMX)
    assert "Sandbox lab-" in text_of(changed)
    assert "<h1" not in changed.content.decode()


@pytest.mark.parametrize("name", ["mallory", "ana", "olga"])
def test_everybody_sees_the_pool_and_nobody_else_s_sandboxes(labs: Labs, signed_in: SignedIn, name: str) -> None:
    labs.fill("lab-secret")
    held = labs.held()
    labs.count()

    page = text_of(signed_in(name).get("/sandboxes/"))

    assert "Lent 1 in use" in page
    assert "lab-secret" not in page
    assert held.request_id not in page
