"""The answers of the history beside the brute-force reading of all events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from accessportal.history import queries
from accessportal.history.models import HistoryItem
from accessportal.history.states import Held, Thing, ThingKind
from accessportal.kernel.pages import every
from tests.fixtures_story import Story
from tests.history.reading import Moment, every_event


def had(found: Sequence[Held]) -> set[tuple[str, str]]:
    return {(one.who, "" if one.interval.reason == "tree" else one.interval.right) for one in found if not one.who.startswith("/")}


def rows() -> dict[tuple[str, str], Any]:
    """All that is written, but for the generation."""
    found = {(item.place.partition("|")[2], item.row): item.told for item in HistoryItem.scan()}
    return {key: told for key, told in found.items() if key[1] not in ("mark", "progress")}


def check_periods(story: Story, moments: Sequence[datetime]) -> None:
    """Of who had each thing in a period, the lines that reach over a moment are what all events up to that say; none is of another time."""
    chains, third = every_event(), len(moments) // 3
    for begin, end in ((moments[0], moments[-1]), (moments[third], moments[2 * third])):
        truths = [Moment(chains, at) for at in moments if begin <= at < end]
        for thing in {thing for truth in truths for thing in (*truth.having, *(Thing(ThingKind.GROUP, name) for name in truth.parents))}:
            found = [
                one
                for one in every(lambda cursor: queries.who_had(thing=thing, at=begin, until=end, cursor=cursor, actor=story.ana).page)  # noqa: B023
                if thing.kind is not ThingKind.GROUP or not one.who.startswith("/")
            ]
            assert all(max(begin, one.from_at) < min(end, one.over_at or end) for one in found), (thing, begin, end)
            for truth in truths:
                then = [one for one in found if one.from_at <= truth.at and (one.over_at is None or truth.at < one.over_at)]
                assert had(then) == {one for one in truth.who_had(thing) if not one[0].startswith("/")}, (thing, truth.at, begin, end)


def check(story: Story, moments: Iterable[datetime], people: Sequence[str]) -> None:
    """At each moment, who had each thing, and what each of ``people`` had, is what all events up to it say."""
    chains, ana = every_event(), story.ana
    for at in moments:
        truth = Moment(chains, at)
        things = {Thing(ThingKind.GROUP, name) for name in truth.parents} | set(truth.having)
        told: dict[str, set[tuple[Thing, str]]] = {}
        for thing in things:
            found = list(every(lambda cursor: queries.who_had(thing=thing, at=at, cursor=cursor, actor=ana).page))  # noqa: B023
            wanted = {one for one in truth.who_had(thing) if not one[0].startswith("/")}
            assert had(found) == wanted, (thing, at)
            for who, right in wanted:
                if right or thing.kind is not ThingKind.GROUP:
                    told.setdefault(who, set()).add((thing, right))
        for email in people:
            begin, end = at - timedelta(hours=1), at + timedelta(seconds=1)
            found = list(every(lambda cursor: queries.what_had(email=email, begin=begin, end=end, cursor=cursor, actor=ana).page))  # noqa: B023
            now = [one for one in found if one.from_at <= at and (one.over_at is None or at < one.over_at)]
            own = {(one.interval.thing, one.interval.right) for one in now}
            # Of groups those that somebody is in themselves, disabled or not; a role that reaches down from above is no line of its own.
            groups = {(thing, right) for thing, having in truth.having.items() for who, right in having if who == email}
            wanted_own = {one for one in told.get(email, set()) | groups if one[0].kind is not ThingKind.GROUP or one in groups}
            assert own == wanted_own, (email, at)


def check_pages(story: Story, moments: Sequence[datetime], people: Sequence[str]) -> None:
    """However little a page may read, and wherever it ends for that: all pages are the one answer, in its order, nothing twice."""
    truth, ana = Moment(every_event(), moments[-1]), story.ana
    begin, end = moments[0], moments[-1] + timedelta(seconds=1)
    things = {*truth.having, *(Thing(ThingKind.GROUP, name) for name in truth.parents)}
    asked = [partial(queries.who_had, thing=thing, at=begin, until=end, actor=ana) for thing in things]
    asked += [partial(queries.what_had, email=email, begin=begin, end=end, actor=ana) for email in people]
    for ask in asked:
        told = []
        for limit in (2, 500):
            answers = []
            for most_reads in (1_000_000, 0, 3):
                with pytest.MonkeyPatch.context() as small:
                    small.setattr(queries, "_MOST_READS", most_reads)
                    answers.append(list(every(lambda cursor: ask(limit=limit, cursor=cursor).page)))  # noqa: B023
            assert answers[0] == answers[1] == answers[2], (ask, limit)
            told.append(sorted(map(repr, answers[0])))
        assert told[0] == told[1]
        assert len(set(told[0])) == len(told[0]), ask
