"""Every route of the portal in one table with its rights, tried as everybody. A route that is missing from the table fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from moto.core.models import botocore_stubber

from accessportal.access_requests import operations as requests
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import AssignmentState
from accessportal.leases.states import Lease
from accessportal.sandboxes import operations as sandboxes
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from accessportal.twin.identity_center import AssignmentKey
from accessportal.web.addresses import KeyConverter
from tests.fixtures_story import Story
from tests.leases.conftest import AccountsPool
from tests.moto_snapshots import Snapshot
from tests.route_table import PEOPLE, REQUEST, ROUTES, Route, get, post


def names_of(resolver: URLResolver, namespace: str = "", prefix: str = "") -> Iterator[str]:
    """The name of every route; the admin's unnamed redirects by their path."""
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            space = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from names_of(entry, space, prefix + str(entry.pattern))
        elif isinstance(entry, URLPattern):
            is_ours = entry.name is not None and (entry.name.startswith("console_") or not namespace)
            path = prefix.removeprefix("admin/") if entry.pattern.regex.pattern.startswith("^(?P<object_id>") else ""
            yield entry.name or "" if is_ours else f"{namespace}{entry.name or path}"


def test_every_route_is_in_the_table() -> None:
    assert sorted(set(names_of(get_resolver()))) == sorted(ROUTES)


@dataclass
class Scene:
    """A pending and an active request of Alice, made anew after every route that changes something."""

    story: Story
    pending: AccessRequest
    active: AccessRequest
    token_id: str
    stand_in_id: str
    sandbox_id: str
    lease: Lease

    def keys(self) -> dict[str, str]:
        (assignment,) = assignments.list_by_state(state=AssignmentState.PRESENT).items
        user, _ = get_user_model().objects.get_or_create(username="sam@example.com")
        return {
            "pending": self.pending.request_id,
            "mine": self.pending.request_id,
            "active": self.active.request_id,
            "assignment": KeyConverter().to_url(assignment.assignment_id),
            "rule": "prod-readonly",
            "event": KeyConverter().to_url(f"request#{self.active.request_id}"),
            "account": self.story.twin.accounts["payments-dev"],
            "permission_set": KeyConverter().to_url(self.story.twin.permission_sets["PowerUserAccess"]),
            "user": str(user.pk),
            "token": self.token_id,
            "stand_in": self.stand_in_id,
            "stand_in_key": KeyConverter().to_url(f"{self.stand_in_id}/gina@example.com"),
            "sandbox": self.sandbox_id,
            "lent_account": self.lease.account_id,
            "lease": self.lease.lease_id,
        }


@dataclass(frozen=True)
class Kept:
    """What was built once in this process: moto's part of it, the twin's, and when it was ready."""

    scene: Scene
    snapshot: Snapshot
    assignments: frozenset[AssignmentKey]
    at: datetime


_kept: list[Kept] = []


def prepare(story: Story) -> Scene:
    """Build the scene once in this process, and put it back after that."""
    if not _kept:
        scene = build(story)
        _kept.append(Kept(scene, Snapshot.take(), frozenset(story.twin.front.assignments()), story.clock.now()))
    kept = _kept[0]
    kept.snapshot.put_back()
    story.twin.front._assignments = set(kept.assignments)
    story.clock.advance((kept.at - story.clock.now()).total_seconds())
    return replace(kept.scene, story=story)


def build(story: Story) -> Scene:
    made = tokens.create_token(name="Lab runner", scope=Scope.TRACK, actor=story.olga, now=story.clock.now())
    sandbox = sandboxes.add(external_id="ext-1", name="lab-1", lab_duration_hours=4, actor=story.olga, now=story.clock.now())
    active = story.carry_out(story.ask(seconds=3600))
    pool = AccountsPool(story.clock)
    pool.fill(1)
    now = story.clock.now()
    named = requests.name_stand_in(
        email="gina@example.com", starts_at=now, ends_at=now + timedelta(days=9), submission_id="form", actor=story.bob, now=now
    )
    return Scene(story, story.ask_for_prod(), active, made.token.token_id, named.stand_in_id, sandbox.sandbox_id, pool.started())


def sign_in(name: str, client: Client | None = None) -> Client:
    """In ``client``, which knows nothing of before, or in a new one: that takes longer than most pages."""
    client = client or Client()
    client.logout()
    if name != "anonymous":
        email = f"{name}@example.com"
        client.force_login(get_user_model().objects.get_or_create(username=email, defaults={"email": email})[0])
    return client


def to_its_end(answer: Any) -> Any:
    """Sent to its end, as a server does: what streams takes a place until then."""
    if answer.streaming:
        b"".join(answer.streaming_content)
    return answer


def send(client: Client, route: Route, keys: dict[str, str]) -> int:
    path = route.path.format(**keys)
    if route.data is None:
        return int(to_its_end(client.get(path)).status_code)
    return client.post(path, {name: value.format(**keys) for name, value in route.data}).status_code


@pytest.fixture
def changes(story: Story, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of AWS so far that may have changed something."""
    found: list[str] = []
    answer = botocore_stubber.process_request

    def process_request(request: Any) -> Any:
        operation = str(request.headers["X-Amz-Target"]).rpartition(".")[2].rstrip("'")
        if not operation.startswith(("Get", "Query", "Scan", "BatchGet", "TransactGet", "List", "Describe")):
            found.append(operation)
        return answer(request)

    monkeypatch.setattr(botocore_stubber, "process_request", process_request)
    return found


@pytest.mark.parametrize("who", PEOPLE)
def test_everybody_may_what_the_table_says_and_no_more(story: Story, changes: list[str], who: str) -> None:
    wrong: list[str] = []
    keys, client = prepare(story).keys(), sign_in(who)
    for name, routes in ROUTES.items():
        for route in routes:
            status = send(client, route, keys)
            expected = route.answers[PEOPLE.index(who)]
            if status != expected:
                wrong.append(f"{name}: {'GET' if route.data is None else 'POST'} {route.path} gave {status}, not {expected}")
            if changes:
                keys = prepare(story).keys()
                changes.clear()
            if route.data is not None:
                sign_in(who, client)
    assert wrong == [], json.dumps(wrong, indent=1)


@pytest.mark.parametrize("who", ["alice", "olga"])
def test_every_whole_page_has_one_heading_above_all_others(story: Story, who: str) -> None:
    client, keys = sign_in(who), prepare(story).keys()
    looked_at = [route.path for routes in ROUTES.values() for route in routes if route.data is None]
    answers = {path: to_its_end(client.get(path.format(**keys))) for path in looked_at}
    pages = {path: answer.content.decode() for path, answer in answers.items() if answer.status_code == 200 and not answer.streaming}
    whole = {path: page.count("<h1") for path, page in pages.items() if page.lstrip().lower().startswith("<!doctype html")}
    assert any(path.startswith("/requests/new/group/") for path in whole)
    # A script draws the heading of the API's pages; tests/browser looks at it.
    assert {path: count for path, count in whole.items() if count != 1 and path != "/v1/docs"} == {}


@pytest.mark.parametrize("who", ["alice", "bob", "olga"])
def test_no_address_to_which_a_page_sends_something_is_blank_when_it_is_opened(story: Story, who: str) -> None:
    """Signing in again, Back and bookmarks open it with a GET: there is always a page, the question or the record."""
    client, keys = sign_in(who), prepare(story).keys()
    posted = [route.path.format(**keys) for name, routes in ROUTES.items() for route in routes if route.data is not None]
    # Programs get an answer in JSON; these two begin and end the way to an issuer, and there is none here.
    paths = sorted({path for path in posted if not path.startswith(("/v1/", "/sign-in/"))})
    answers = {path: client.get(path) for path in paths}
    assert len(paths) > 50
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code == 405 or not _tells(answer)} == {}
    assert story.pending_of("alice@example.com") != []


def _tells(answer: Any) -> bool:
    return answer.status_code in {301, 302} or b"<h1" in answer.content or b"id=" in answer.content


GROUP_ADMIN_MAY = [
    (get("/groups/add/at/engineering/payments/"), 200),
    (get("/groups/add/at/security/"), 403),
    (get("/groups/add/at/"), 403),
    (get("/people/alice@example.com/"), 200),
    (get("/people/bob@example.com/"), 404),
    (get("/people/alice@example.com/disable/"), 403),
    (post("/groups/add/at/engineering/payments/", email="sam@example.com", role="admin"), 302),
    (post("/groups/add/at/security/", email="gina@example.com", role="admin"), 403),
    (post("/groups/add/at/", email="gina@example.com", role="admin"), 403),
    (post("/groups/remove/at/engineering/payments/", email="alice@example.com"), 302),
    (post("/groups/remove/at/security/", email="sam@example.com"), 403),
    (post("/groups/create/at/engineering/", name="Ledger", part="ledger"), 302),
    (post("/groups/create/at/", name="Ledger", part="ledger"), 403),
    (post("/groups/move/at/engineering/payments/", parent_id="/security"), 403),
    (post("/groups/move/at/engineering/", parent_id="/security"), 403),
    (
        post(
            "/groups/delete/at/",
        ),
        403,
    ),
    (post("/groups/disable/at/engineering/payments/"), 302),
    (post("/people/alice@example.com/delete/"), 403),
]
"""What Gina gets, who is admin of ``/engineering`` and so of everything below it."""


@pytest.mark.parametrize(
    ("route", "status"), GROUP_ADMIN_MAY, ids=[f"{'GET' if r.data is None else 'POST'} {r.path}" for r, _ in GROUP_ADMIN_MAY]
)
def test_a_group_admin_reaches_as_far_as_the_group(story: Story, route: Route, status: int) -> None:
    assert send(sign_in("gina"), route, {}) == status


def test_status_and_actor_fields_of_a_form_count_for_nothing(story: Story) -> None:
    alice = sign_in("alice")
    forged = {**REQUEST, "account": "payments-prod", "permission_set": "ReadOnlyAccess", "ticket_id": "CHG-1"}
    alice.post("/requests/new/aws_account/", {**forged, "status": "ACTIVE", "approval_required": "false", "decided_by": "bob@example.com"})

    (asked,) = story.pending_of("alice@example.com")
    assert (asked.status, asked.decided_by, asked.requested_by) == (Status.PENDING, "", "alice@example.com")
    sign_in("bob").post(f"/requests/{asked.request_id}/approve/", {"actor": "sam@example.com", "decided_by": "sam@example.com"})
    assert story.now_of(asked).decided_by == "bob@example.com"


@pytest.mark.parametrize(
    "path",
    [
        "/groups/delete/at/engineering/payments/",
        "/people/alice@example.com/delete/",
        "/requests/{pending}/approve/",
        "/admin/requests/bulk/approve/",
        "/sign-out/",
    ],
)
def test_a_post_without_its_token_is_refused(story: Story, path: str) -> None:
    scene = prepare(story)
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.get_or_create(username="bob@example.com", defaults={"email": "bob@example.com"})[0])

    response = client.post(path.format(**scene.keys()), {"confirmed": "yes"})

    assert response.status_code == 403
    assert story.now_of(scene.pending).status is Status.PENDING


def test_a_cursor_of_another_list_is_refused(story: Story) -> None:
    for number in range(30):
        story.ask_for_prod(seconds=3600 + number)
    olga = sign_in("olga")
    page = olga.get("/admin/requests/?pattern=pending")
    (cursor,) = parse_qs(urlsplit(page.context["next_url"]).query)["cursor"]

    assert olga.get("/admin/requests/", {"pattern": "pending", "cursor": cursor}).status_code == 200
    assert olga.get("/admin/requests/", {"pattern": "active", "cursor": cursor}).status_code == 400
    assert olga.get("/admin/requests/", {"pattern": "pending", "cursor": cursor[:-4] + "AAAA"}).status_code == 400
