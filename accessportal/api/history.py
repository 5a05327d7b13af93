"""Who had access to what, and when, for programs of scope ``history``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from accessportal.api.auth import BearerToken, client_of
from accessportal.api.documenting import errors
from accessportal.api.schemas import NextCursor, PageCursor, PageLimit, Seconds
from accessportal.history import queries
from accessportal.history.states import Answer, Held, Interval, ThingKind
from accessportal.kernel.clock import epoch_of, from_epoch, to_epoch
from accessportal.kernel.errors import InvalidRequest
from accessportal.tokens.states import Scope

router = Router(auth=BearerToken(Scope.HISTORY), tags=["History"])
_LATEST = 253_370_764_800
Moment = Annotated[int, Query(ge=0, le=_LATEST, description="Seconds since 1970 (Unix time).", example=1759567084)]
_Epoch = Annotated[int, Field(ge=0, le=_LATEST)]
_Name = Annotated[str, Query(min_length=1, max_length=1_000)]
OptionalSeconds = Annotated[int | None, Field(description="Seconds since 1970 (Unix time); `null`: none.")]


class IntervalFacts(Schema):
    """Who had which right on what, from when to when."""

    kind: ThingKind
    name: str = Field(description="The account, group, sandbox, resource or object.")
    scope: str = Field(description="Of an approval or a relationship.")
    right: str = Field(description="The permission set, role, action or relation.")
    who: str = Field(description="A person by address, a group by path, a program by its track.")
    reason: str = Field(description="The request, or `permanent`, `direct`, `outside`, `tree`, or the key of a track.")
    request_id: str
    rule: str
    asked_by: str
    decided_by: list[str]
    from_at: Seconds
    proved_at: OptionalSeconds = Field(description="When it was proved to be there.")
    until: OptionalSeconds = Field(description="When it was to end, as last decided.")
    ended_at: OptionalSeconds = Field(description="When somebody, or its time, ended it.")
    ended_by: str
    gone_at: OptionalSeconds = Field(description="When it was proved gone.")
    begun_how: str = Field(description="What proves that it was there.")
    gone_how: str
    entity: str = Field(description="The chain of the audit log that tells it.")
    sequence: int = Field(description="The event with which it began.")
    gone_sequence: int = Field(description="The event that proves it gone; 0: none.")

    @classmethod
    def of(cls, interval: Interval) -> IntervalFacts:
        told = {name: getattr(interval, name) for name in cls.model_fields if hasattr(interval, name)}
        moments = {name: epoch_of(value) for name, value in told.items() if isinstance(value, datetime)}
        thing = {"kind": interval.thing.kind, "name": interval.thing.name, "scope": interval.thing.scope}
        return cls(**(told | thing | moments | {"decided_by": list(interval.decided_by)}))


class HeldFacts(Schema):
    """Who had it, by themselves or through groups: `path` has their membership, then the places of the groups in the tree."""

    who: str
    from_at: Seconds
    over_at: OptionalSeconds
    interval: IntervalFacts
    path: list[IntervalFacts]

    @classmethod
    def of(cls, held: Held) -> HeldFacts:
        path = [IntervalFacts.of(one) for one in held.path]
        interval = IntervalFacts.of(held.interval)
        return cls(who=held.who, from_at=to_epoch(held.from_at), over_at=epoch_of(held.over_at), interval=interval, path=path)


class HistoryPage(Schema):
    """A page of an answer. All that happened up to `known_until` is in it; of what happened since, some may be missing."""

    items: list[HeldFacts]
    unreadable: list[str] = Field(description="What should stand here and can't be read, in words.")
    unfollowed: list[str] = Field(description="Whose events could not all be read: what these tell is missing until that is mended.")
    known_until: Seconds
    next_cursor: NextCursor

    @classmethod
    def of(cls, answer: Answer) -> HistoryPage:
        page = answer.page
        return cls(
            items=[HeldFacts.of(one) for one in page.items],
            unreadable=[str(one) for one in page.unreadable],
            unfollowed=list(answer.unfollowed),
            known_until=to_epoch(answer.known_until),
            next_cursor=page.next_cursor,
        )


@router.get("who-had", response={200: HistoryPage, **errors(409)}, operation_id="who_had", summary="Who had access to something")
def who_had(
    request: HttpRequest,
    kind: ThingKind,
    name: Annotated[_Name, Query(description="As `who_had` of the commands takes it: `SCOPE/RESOURCE` of an approval.")],
    at: Annotated[_Epoch | None, Query(description="Seconds since 1970 (Unix time).", example=1759567084)] = None,
    begin: Annotated[_Epoch | None, Query(alias="from", description="In the place of `at`, with `to`.")] = None,
    end: Annotated[_Epoch | None, Query(alias="to", description="Before this moment.")] = None,
    right: Annotated[str, Query(max_length=1_000, description="Only with this permission set, role, action or relation.")] = "",
    limit: PageLimit = 50,
    cursor: PageCursor = "",
) -> HistoryPage:
    """`at` a moment, or at any time `from` one and before another (`to`), at most a year later. A group that had it is followed by whoever
    was in it then. A page may hold fewer than `limit`, or none, while more follow. `CONFLICT`: several accounts have that name."""
    since = at if begin is None else begin
    if since is None or (at is None) == (begin is None) or (begin is None) != (end is None):
        raise InvalidRequest("Give `at`, or `from` with `to`.", code="time_ambiguous", field="at")
    thing, actor = queries.find_thing(kind, name), client_of(request).actor
    until = None if end is None else from_epoch(end)
    found = queries.who_had(thing=thing, right=right, at=from_epoch(since), until=until, cursor=cursor or None, limit=limit, actor=actor)
    return HistoryPage.of(found)


@router.get("what-had", response={200: HistoryPage, **errors()}, operation_id="what_had", summary="What somebody had")
def what_had(
    request: HttpRequest,
    email: Annotated[_Name, Query(description="Whose.")],
    begin: Annotated[Moment, Query(alias="from")],
    end: Annotated[Moment, Query(alias="to")],
    limit: PageLimit = 50,
    cursor: PageCursor = "",
) -> HistoryPage:
    """From one moment on and before another, at most a year later: by themselves, and by groups that they were in."""
    actor = client_of(request).actor
    found = queries.what_had(email=email, begin=from_epoch(begin), end=from_epoch(end), cursor=cursor or None, limit=limit, actor=actor)
    return HistoryPage.of(found)
