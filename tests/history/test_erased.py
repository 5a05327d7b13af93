"""Somebody who was erased is told of by their pseudonym, and the history goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accessportal.history import operations, queries
from accessportal.history.states import Thing, ThingKind
from tests.evidence.test_erasing import ALICE, erase, gone, telling_of
from tests.fixtures_story import Story

__all__ = ["gone"]


@pytest.mark.django_db
def test_an_erased_person(gone: Story) -> None:
    def follow() -> None:
        gone.clock.advance(300)
        assert operations.follow(workers=1, clock=gone.clock).is_ok

    def decided() -> set[str]:
        group = Thing(ThingKind.GROUP, "/engineering")
        found = queries.who_had(thing=group, right="contributor", at=at, actor=gone.ana).page.items
        return {name for one in found for name in one.interval.decided_by}

    at = gone.clock.now()
    follow()
    assert decided() == {ALICE}
    erase(gone)
    assert telling_of(ALICE) == []
    (pseudonym,) = decided()
    assert pseudonym.startswith("person-")
    had = queries.what_had(email=pseudonym, begin=at - timedelta(days=1), end=at, actor=gone.ana).page.items
    assert {one.interval.thing.kind for one in had} == {ThingKind.ACCOUNT, ThingKind.GROUP}
    # What she decided on goes on, and ends.
    gone.clock.advance(2 * 86_400)
    gone.tick()
    follow()
    assert decided() == {pseudonym}
    assert operations.rebuild(workers=1, actor=gone.olga, clock=gone.clock).is_ok
    assert decided() == {pseudonym}
    assert telling_of(ALICE) == []
