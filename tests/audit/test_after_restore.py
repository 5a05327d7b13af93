"""The tables are restored to an earlier moment: each hole that the lost time leaves is closed, wherever after_restore dies on the way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.moto_api._internal import mock_random

from accessportal.access_requests import operations as requests
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.assignments import store as assignment_store
from accessportal.assignments.effects.converging import converge
from accessportal.assignments.queries import comparisons
from accessportal.assignments.states import AssignmentState, Remedy, Unread
from accessportal.audit import operations as audit
from accessportal.audit.queries import find_breaks
from accessportal.audit.states import Draft
from accessportal.authz import operations as authz_operations
from accessportal.authz.operations import set_policy
from accessportal.authz.queries import APPROVALS, caller_of, check, read_scope
from accessportal.authz.states import Approval, TtlPolicy
from accessportal.aws import cognito
from accessportal.directory import operations as directory
from accessportal.directory import operations as directory_operations
from accessportal.directory.states import State
from accessportal.identity.operations import ensure_demo_user
from accessportal.identity.queries import actor_named
from accessportal.jobs import tasks
from accessportal.kernel.actors import system
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict, NotAllowed, Unavailable
from accessportal.mirror import operations as mirror
from accessportal.mirror import queries as mirror_queries
from accessportal.sandboxes import ledger
from accessportal.sandboxes import operations as sandbox_operations
from accessportal.sandboxes import queries as pool_queries
from accessportal.sandboxes.states import Sandbox
from accessportal.sandboxes.states import Status as PoolStatus
from accessportal.store.restores import Restore, held_restore, last_restore
from accessportal.store.transactions import Overtaken
from accessportal.tokens import operations as tokens
from accessportal.tokens.queries import find_token
from accessportal.tokens.states import NewToken, Scope, TokenRefused, TokenState
from accessportal.twin.identity_center import AssignmentKey
from accessportal.upstream import client as upstream_client
from accessportal.upstream.client import HttpProvider
from tests.audit.conftest import Topic
from tests.commands.conftest import Ran, run
from tests.crashing import Killed, Process, living
from tests.fixtures_provider import URL, TwinAdapter
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION
from tests.moto_snapshots import Tables
from tests.sandboxes.conftest import Pool, Upstream

OLGA = ("--as", "olga@example.com")
_READS = frozenset(
    {
        *("GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems", "DescribeTable"),
        *("ListUsersInGroup", "ListGroups", "ListUsers", "AdminGetUser", "AdminListGroupsForUser", "DescribeUserPool", "GetGroup"),
        *("ListInstances", "ListAccountAssignments", "ListAccountsForProvisionedPermissionSet", "DescribeUser", "DescribeGroup"),
    }
)
_SHARES = 4
SETUP = system("setup")
HOUR = 3600


def copied() -> Any:
    return copy.deepcopy(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables)


def put_back(tables: Any) -> None:
    dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables = copy.deepcopy(tables)


@dataclass
class Lost:
    """What was so at the moment ``at``, what happened after it, and the tables as they were at that moment."""

    story: Story
    labs: Upstream
    topic: Topic
    at: datetime
    tables: Any
    token: NewToken
    held: AccessRequest
    lab: Sandbox
    b_fence: int
    seen: dict[str, int]

    @property
    def at_text(self) -> str:
        return self.at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def after_restore(self, *arguments: str) -> Ran:
        return run("after_restore", "--restored-to", self.at_text, *OLGA, *arguments)

    def confirm(self, *arguments: str) -> Ran:
        return run("after_restore", "--confirm", *OLGA, *arguments)

    def publish(self) -> list[dict[str, Any]]:
        audit.publish_outbox(send=self.topic.send, actor=system("publish_events"), clock=self.story.clock)
        return self.topic.bodies()


@pytest.fixture
def labs(story: Story, provider: HttpProvider, provider_adapter: TwinAdapter, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    """Two sandboxes in the pool, in lives that are known."""
    monkeypatch.setattr(upstream_client, "_settings", upstream_client.UpstreamSettings(url=URL))
    monkeypatch.setattr(upstream_client, "_provider", provider)
    monkeypatch.setattr(tasks, "_CLOCK", story.clock)
    told = Upstream(Pool(story.clock), provider_adapter.twin, provider_adapter, provider)
    told.set(reset_seconds=0, recycle=1)
    told.fill(2)
    return told


@dataclass(frozen=True)
class Kept:
    """What was built once in this process: tables and user pool, the twins' part, and when it was ready."""

    lost: Lost
    ready_at: datetime
    tables: Tables
    assignments: frozenset[AssignmentKey]
    sandboxes: Any


_kept: list[Kept] = []


@pytest.fixture
def lost(user_pool: str, story: Story, labs: Upstream, topic: Topic) -> Lost:
    """Built once in this process, and put back after that."""
    if not _kept:
        made, provided = lose(story, labs, topic), copy.deepcopy(labs.twin._sandboxes)
        _kept.append(Kept(made, story.clock.now(), Tables.take(), frozenset(story.twin.front.assignments()), provided))
    kept = _kept[0]
    kept.tables.put_back()
    story.twin.front._assignments = set(kept.assignments)
    labs.twin._sandboxes = copy.deepcopy(kept.sandboxes)
    story.clock.advance((kept.ready_at - story.clock.now()).total_seconds())
    # What tests make gets other ids than what was made then, and forms of their own.
    mock_random.seed(2030)
    story._submissions = 100
    return replace(kept.lost, story=story, labs=labs, topic=topic)


def lose(story: Story, labs: Upstream, topic: Topic) -> Lost:
    """At T: a token opens, Mallory is enabled, track-a has a sandbox, Alice has access. In the next hour each of that ends, the sandbox
    is track-b's, all of it is published; then the tables are as at T again, and the world is not."""
    mirror.compare_mirror(apply=True, most_share=1.0, actor=SETUP, clock=story.clock)
    token = tokens.create_token(name="Lab", scope=Scope.TRACK, actor=SETUP, now=story.clock.now())
    held = story.carry_out(story.ask(seconds=4 * HOUR))
    lab = labs.pool.take("track-a", name_prefix="lab-000").sandbox
    audit.publish_outbox(send=topic.send, actor=system("publish_events"), clock=story.clock)
    seen = {body["entity"]: body["sequence"] for body in topic.bodies()}
    story.clock.advance(120)
    at, tables = story.clock.now(), copied()

    story.clock.advance(600)
    tokens.revoke_token(token_id=token.token.token_id, actor=story.olga, now=story.clock.now())
    directory.set_person_state(email="mallory@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())
    mirror.sweep_mirror(clock=story.clock)
    story.carry_out(story.end(held))
    assert story.now_of(held).status is Status.REVOKED
    labs.pool.release(lab, "track-a")
    labs.clean()
    labs.later(30)
    labs.clean()
    b = labs.pool.take("track-b", name_prefix="lab-000").sandbox
    audit.publish_outbox(send=topic.send, actor=system("publish_events"), clock=story.clock)
    for body in topic.bodies():
        seen[body["entity"]] = max(body["sequence"], seen.get(body["entity"], 0))

    story.clock.advance(HOUR)
    put_back(tables)
    return Lost(story, labs, topic, at, tables, token, held, lab, b.fence, seen)


def is_enabled_in(user_pool: str, email: str) -> bool:
    user = cognito.get_user(user_pool, email)
    assert user is not None
    return user.is_enabled


def check_held(lost: Lost) -> None:
    """Every hole is closed while the restore waits to be confirmed."""
    story, now = lost.story, lost.story.clock.now()
    with pytest.raises(TokenRefused):
        tokens.authenticate(text=lost.token.text, now=now)
    with pytest.raises(NotAllowed, match="disabled"):
        actor_named(email="mallory@example.com", now=now)
    restore = held_restore()
    assert restore is not None
    a = pool_queries.get(sandbox_id=lost.lab.sandbox_id)
    assert (a.status, a.track) == (PoolStatus.QUARANTINED, "")
    assert lost.b_fence < restore.epoch <= a.fence
    with pytest.raises(Unavailable, match="nothing is granted") as refused:
        lost.labs.pool.take("track-c")
    assert refused.value.code == "grants_held"
    assert not story.is_assigned()
    report = requests.reconcile_assignments(remedies=[Remedy.REPAIR], most_share=1.0, actor=SETUP, clock=story.clock)
    assert (len(report.missing), report.mended) == (1, 0)
    assert any("nothing is granted" in reason for reason in report.waiting)
    assert not story.is_assigned()


def check_confirmed(lost: Lost) -> None:
    story = lost.story
    story.tick()
    assert story.now_of(lost.held).status is Status.REVOKED
    lost.labs.clean()
    lost.labs.later(30)
    lost.labs.clean()
    again = lost.labs.pool.take("track-c", name_prefix="lab-000").sandbox
    restore = last_restore()
    assert restore is not None
    assert restore.confirmed_by == "olga@example.com"
    assert again.fence == restore.epoch + 1 > lost.b_fence
    requests.reconcile_assignments(remedies=[Remedy.REPAIR], most_share=1.0, actor=SETUP, clock=story.clock)
    assert not story.is_assigned()
    with pytest.raises(TokenRefused):
        tokens.authenticate(text=lost.token.text, now=story.clock.now())
    assert run("verify_audit").code == 0
    assert run("verify_sandboxes").lines[-1] == "2 sandboxes, 0 receipts, 0 problems."


def test_without_it_every_hole_is_open(lost: Lost) -> None:
    """What the tables alone say after a restore; this is why there is a command."""
    now = lost.story.clock.now()

    assert tokens.authenticate(text=lost.token.text, now=now).token_id == lost.token.token.token_id
    assert actor_named(email="mallory@example.com", now=now).name == "mallory@example.com"
    assert pool_queries.get(sandbox_id=lost.lab.sandbox_id).fence == 1 < lost.b_fence
    requests.reconcile_assignments(remedies=[Remedy.REPAIR], most_share=1.0, actor=SETUP, clock=lost.story.clock)
    assert lost.story.is_assigned()
    (behind,) = run("verify_sandboxes", "--json").json["problems"]
    assert (behind["kind"], behind["sandbox_id"]) == ("behind", lost.lab.sandbox_id)
    assert behind["words"].startswith("lent to track-a (fence 1), but the provider has reset it since")


def test_every_hole_is_closed_and_named(lost: Lost) -> None:
    user = ensure_demo_user(email="alice@example.com", name="Alice Park", password="a-password-for-tests")
    Client().force_login(user)

    shown = lost.after_restore("--dry-run", "--json").json
    assert held_restore() is None
    assert Session.objects.count() == 1
    told = lost.after_restore("--json")

    assert told.code == 0, told.problem
    assert {one["kind"]: one for one in told.json["findings"]}.keys() == {"missing", "people", "request", "rules", "sandbox"}
    assert told.json["steps"] == {
        "sessions": "sessions 1",
        "tokens": "tokens 1",
        "people": "people 1, failed 0",
        "fences": "sandboxes 2, quarantined 2, brought_in 0, accounts 0, failed 0",
    }
    assert Session.objects.count() == 0
    assert {(one["kind"], one["what"].split()[0]) for one in shown["findings"]} >= {
        ("missing", lost.story.twin.users["alice@example.com"]),
        ("people", "person#mallory@example.com"),
        ("sandbox", lost.lab.sandbox_id),
        ("rules", "rule"),
    }
    check_held(lost)
    confirmed = lost.confirm("--json")
    assert confirmed.code == 0, confirmed.problem
    assert confirmed.json["steps"] == {"ended": 1, "cleaned": 2}
    check_confirmed(lost)


def test_approvals_that_were_revoked_since_are_named_by_scope(story: Story) -> None:
    """No second place knows what was revoked, so all that count are named; programs can't ask before somebody makes tokens anew."""
    olga, now, acme = caller_of(story.olga), story.clock.now(), read_scope("tenant:acme")
    for who in ("alice@example.com", "mallory@example.com"):
        wanted = Approval(acme, who, "docs/1", "GET", "olga@example.com", now)
        authz_operations.grant(APPROVALS, wanted, ttl_seconds=86_400, caller=olga, now=now)
    set_policy(scope=read_scope("tenant:empty"), policy=TtlPolicy(), caller=olga, now=now)
    story.clock.advance(600)
    at, tables = story.clock.now(), copied()
    story.clock.advance(600)
    names = ("mallory@example.com", "docs/1", "GET")
    authz_operations.revoke(APPROVALS, acme, names, caller=olga, now=story.clock.now())
    put_back(tables)
    assert check(APPROVALS, acme, names, caller=olga, clock=story.clock).is_allowed

    told = run("after_restore", "--restored-to", at.strftime("%Y-%m-%dT%H:%M:%SZ"), *OLGA, "--json")

    (found,) = [one for one in told.json["findings"] if one["kind"] == "scope"]
    assert found["what"] == "tenant:acme"
    assert found["words"].startswith("has 2 approvals and 0 relationships that count, also those that were revoked")


def test_stand_ins_that_were_taken_back_since_are_named(story: Story) -> None:
    """They decide again, and nothing outside the tables knows better."""
    given: dict[str, Any] = {"starts_at": story.clock.now(), "ends_at": story.clock.now() + timedelta(days=9), "actor": story.bob}
    named = {
        form: requests.name_stand_in(email=email, submission_id=form, now=story.clock.now(), **given)
        for form, email in (("kept", "gina@example.com"), ("before", "ana@example.com"), ("after", "mallory@example.com"))
    }

    def end(form: str) -> None:
        one = named[form]
        requests.end_stand_in(stand_in=one.stand_in, stand_in_id=one.stand_in_id, actor=story.bob, now=story.clock.now())

    end("before")
    story.clock.advance(600)
    at, tables = story.clock.now(), copied()
    story.clock.advance(600)
    end("after")
    put_back(tables)

    told = run("after_restore", "--restored-to", at.strftime("%Y-%m-%dT%H:%M:%SZ"), *OLGA, "--json")

    found = {one["what"] for one in told.json["findings"] if one["kind"] == "stand_in"}
    assert found == {f"{named[form].stand_in} {named[form].stand_in_id}" for form in ("kept", "after")}


def test_while_somebody_can_not_be_disabled_grants_stay_held(lost: Lost, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise Conflict("Too many others change it.", code="directory_contended")

    with monkeypatch.context() as patch:
        patch.setattr(directory_operations, "set_person_state", refuse)
        told = lost.after_restore()

    assert (told.code, "people: failed: person#mallory@example.com: Too many others change it." in told.problem) == (1, True)
    assert "Not done yet: people" in lost.confirm().problem
    assert lost.after_restore().code == 0
    assert lost.confirm().code == 0
    check_confirmed(lost)


@pytest.mark.parametrize(("missed", "ends"), [("the list", True), ("all lists of the set", True), ("another list", False)])
def test_what_can_not_be_looked_at_is_ended(story: Story, missed: str, *, ends: bool) -> None:
    held = story.carry_out(story.ask())
    story.clock.advance(3)
    restored = Restore(epoch=to_epoch(story.clock.now()), restored_to=story.clock.now(), begun_by="olga@example.com")
    compared = requests.reconcile_assignments(actor=SETUP, clock=story.clock)
    account = {"the list": held.target["account_id"], "all lists of the set": "", "another list": "999999999999"}[missed]
    refused = replace(compared, unread=(Unread(held.target["permission_set_arn"], account, "AccessDeniedException"),))

    report = requests.end_lost(restored=restored, compared=refused, actor=story.olga, clock=story.clock)

    assert report.ended == ((held.request_id,) if ends else ())


def test_no_published_sequence_comes_again(lost: Lost) -> None:
    lost.after_restore()
    lost.story.ask_for_prod()
    lost.confirm()
    check_confirmed(lost)

    bodies = lost.publish()

    restore = last_restore()
    assert restore is not None
    fresh = [body for body in bodies if datetime.fromisoformat(body["at"]) > lost.at]
    assert {body["entity"] for body in fresh} & set(lost.seen)
    assert all(body["sequence"] > restore.epoch > lost.seen.get(body["entity"], 0) for body in fresh)
    # What had not left at T comes as it came before, so that consumers know it.
    assert all(body["sequence"] <= lost.seen[body["entity"]] for body in bodies if body not in fresh)
    by_entity: dict[str, list[int]] = {}
    for body in bodies:
        by_entity.setdefault(body["entity"], []).append(body["sequence"])
    assert all(sequences == sorted(set(sequences)) for sequences in by_entity.values())
    assert find_breaks(restore.entity) == []


def test_what_is_asked_meanwhile_waits_and_is_granted_after_the_confirmation(lost: Lost) -> None:
    lost.after_restore()
    asked = lost.story.carry_out(lost.story.ask(permission_set="ReadOnlyAccess"))

    assert (asked.work, asked.work_attempts) == (Work.GRANT, 0)
    assert "nothing is granted until an operator has confirmed" in asked.work_error
    lost.confirm()
    lost.story.clock.advance(61)
    lost.story.tick()
    assert lost.story.is_assigned(permission_set="ReadOnlyAccess")


def test_taking_back_goes_on_while_grants_are_held(lost: Lost) -> None:
    """The same access, but nobody ended it in the lost time: it is there, and ends at its time."""
    story = lost.story
    story.twin.sso.create_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(3)
    lost.after_restore()
    assert story.is_assigned()

    story.clock.advance(4 * HOUR)
    story.tick()

    assert story.now_of(lost.held).status is Status.REVOKED
    assert not story.is_assigned()
    assert held_restore() is not None


def test_cognito_gets_nothing_back_while_grants_are_held(lost: Lost, user_pool: str) -> None:
    lost.after_restore()
    directory.set_person_state(email="mallory@example.com", state=State.ENABLED, actor=SETUP, now=lost.story.clock.now())
    mirror.compare_mirror(apply=True, most_share=1.0, actor=SETUP, clock=lost.story.clock)
    assert not is_enabled_in(user_pool, "mallory@example.com")
    work = mirror_queries.find_pending("person#mallory@example.com")
    assert work is not None
    assert "nothing is granted" in work.error

    lost.confirm()
    lost.story.clock.advance(61)
    mirror.sweep_mirror(clock=lost.story.clock)
    assert is_enabled_in(user_pool, "mallory@example.com")


def test_access_that_was_granted_after_that_moment_is_named_and_not_taken_for_ours(lost: Lost) -> None:
    story = lost.story
    story.twin.sso.create_account_assignment(**story.twin.key("bob@example.com", "payments-dev", "ReadOnlyAccess"))
    story.clock.advance(3)

    told = lost.after_restore("--json").json

    (unknown,) = [one for one in told["findings"] if one["kind"] == "unknown"]
    assert unknown["what"].startswith(story.twin.users["bob@example.com"])


def test_a_comparison_that_was_restored_with_the_tables_is_not_believed(lost: Lost) -> None:
    """It was under way at that moment, and has seen the world of then."""
    clock = lost.story.clock
    seconds = (clock.now() - lost.at).total_seconds() + 60
    clock.advance(-seconds)
    requests.compare_assignments(until=clock.now(), clock=clock)
    clock.advance(seconds)
    opened = comparisons().open
    assert opened is not None

    told = lost.after_restore("--json").json

    last = comparisons().last
    assert last is not None
    assert opened.begun_at < lost.at < last.begun_at
    assert [one["kind"] for one in told["findings"]].count("missing") == 1


def test_a_token_that_is_kept_opens_and_the_others_do_not(lost: Lost) -> None:
    other = tokens.create_token(name="Other", scope=Scope.TRACK, actor=SETUP, now=lost.at)

    told = lost.after_restore("--keep-token", other.token.token_id)

    assert told.code == 0, told.problem
    assert tokens.authenticate(text=other.text, now=lost.story.clock.now()).name == "Other"
    with pytest.raises(TokenRefused):
        tokens.authenticate(text=lost.token.text, now=lost.story.clock.now())


def test_only_operators_tell_and_confirm_and_only_what_is_so(lost: Lost) -> None:
    assert lost.confirm("--json").json["error"]["code"] == "nothing_held"
    refused = run("after_restore", "--restored-to", lost.at_text, "--as", "bob@example.com", "--json")
    assert refused.json["error"]["code"] == "operators_only"
    assert held_restore() is None
    ahead = "2027-01-01T00:00:00Z"
    for text, code in (("yesterday", "moment_unreadable"), ("2026-03-02T09:00:00", "moment_unreadable"), (ahead, "moment_ahead")):
        assert run("after_restore", "--restored-to", text, *OLGA, "--json").json["error"]["code"] == code
    lost.after_restore()
    assert run("after_restore", "--confirm", "--as", "bob@example.com", "--json").json["error"]["code"] == "operators_only"
    lost.confirm()
    again = lost.after_restore("--json")
    assert (again.code, again.json["error"]["code"]) == (1, "restore_confirmed")


def test_a_step_that_fails_hinders_no_other_and_keeps_grants_held(lost: Lost) -> None:
    lost.labs.set(fail_list=1)

    failed = lost.after_restore("--json")

    assert failed.code == 1
    assert failed.json["steps"]["tokens"] == "tokens 1"
    assert failed.json["steps"]["fences"].startswith("failed: The provider's list could not be read")
    assert lost.confirm("--json").json["error"]["code"] == "steps_left"
    lost.labs.set(fail_list=0)
    lost.story.clock.advance(60)
    assert lost.after_restore("--json").json["steps"]["tokens"] == "done before"
    check_held(lost)


def test_operators_see_it_on_every_admin_page_and_monitoring_in_a_figure(lost: Lost, client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = "a-token-for-tests"
    olga = ensure_demo_user(email="olga@example.com", name="Olga Berg", password="a-password-for-tests")

    def figure() -> str:
        told = client.get("/metrics", headers={"authorization": "Bearer a-token-for-tests"}).content.decode()
        return next(line for line in told.splitlines() if line.startswith("accessportal_grants_held "))

    def banner(path: str) -> bool:
        client.force_login(User.objects.get(pk=olga.pk))
        return "Nothing is granted until that is confirmed" in client.get(path).content.decode()

    assert (figure(), banner("/admin/"), banner("/admin/requests/")) == ("accessportal_grants_held 0.0", False, False)
    lost.after_restore()
    assert (figure(), banner("/admin/"), banner("/admin/requests/")) == ("accessportal_grants_held 1.0", True, True)
    lost.confirm()
    assert (figure(), banner("/admin/")) == ("accessportal_grants_held 0.0", False)


def test_a_worker_that_was_in_the_middle_of_it_writes_nothing_that_it_read_before(lost: Lost) -> None:
    """It is at the same tables, with records of the lost time: refused by their conditions. What it reads anew is held."""
    story = lost.story
    now_tables = copied()
    put_back(lost.tables)
    story.end(lost.held)
    newer = story.carry_out(lost.held)
    found = assignment_store.list_by_state(AssignmentState.ABSENT, cursor=None, limit=1).items[0]
    lab = pool_queries.get(sandbox_id=lost.lab.sandbox_id)
    put_back(now_tables)
    lost.after_restore()

    draft = Draft("assignment.claimed", "alice@example.com", {"claim": "r", "claims": ["r"]})
    with pytest.raises(Overtaken):
        assignment_store.add_claim(found, "r", draft=draft, guards=(), actor=SETUP, now=story.clock.now())
    assert newer.version > story.now_of(lost.held).version
    with pytest.raises(NotAllowed, match="lent anew since then"):
        sandbox_operations.release(sandbox_id=lab.sandbox_id, track="track-a", fence=1, actor=SETUP, now=story.clock.now())
    outcome = converge(found.assignment_id, subject="alice@example.com", actor=SETUP, clock=story.clock)
    assert getattr(outcome, "code", "") == "grants_held"
    assert not story.is_assigned()


def _steps(lost: Lost) -> Iterator[Callable[[], Ran]]:
    yield lost.after_restore
    yield lost.confirm


@pytest.mark.parametrize("share", range(_SHARES))
def test_killed_anywhere_the_next_run_goes_on(lost: Lost, monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    """Right after every write of after_restore and of its confirmation, which is as right before the next one."""
    begun, clock = copied(), lost.story.clock
    began = clock.now()
    fatal, died = share, True
    while died:
        put_back(begun)
        clock.advance((began - clock.now()).total_seconds())
        process = Process(fatal=fatal, after=True)
        _live_through(lost, process, monkeypatch)
        fatal, died = fatal + _SHARES, process.died
    assert len(process.names) > 8


def _live_through(lost: Lost, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(process, monkeypatch, reads=_READS):
        for step in _steps(lost):
            for _ in range(2):
                try:
                    ran = step()
                    # Confirmed by its last write, whose answer nobody heard.
                    assert ran.code == 0 or "No restore waits to be confirmed" in ran.problem, ran.problem
                    break
                except Killed:
                    process.reboot()
                    # What the dead held (a comparison, four minutes) is let go by time alone.
                    lost.story.clock.advance(300)
            else:
                raise AssertionError("the process dies only once")
    restore = last_restore()
    assert restore is not None
    assert not restore.is_held
    assert pool_queries.get(sandbox_id=lost.lab.sandbox_id).fence == restore.epoch
    assert lost.story.now_of(lost.held).work is Work.REVOKE
    token = find_token(token_id=lost.token.token.token_id)
    assert token.state(lost.story.clock.now()) is TokenState.REVOKED


def test_receipts_of_before_are_judged_by_the_fence_that_was_raised(lost: Lost) -> None:
    """Track-b's client says that it holds it: no table knows, and that is told as such and as nothing else."""
    lost.after_restore()
    now = lost.story.clock.now().timestamp()
    receipt = ledger.Receipt("taken", "track-b", now - HOUR, now - HOUR, lost.lab.sandbox_id, lost.b_fence, "track-b")

    problems = pool_queries.verify(receipts=[receipt], slack_seconds=2).problems

    assert [(one.kind, one.sandbox_id) for one in problems] == [("orphan", lost.lab.sandbox_id)]
    assert to_epoch(lost.at) < last_epoch()


def last_epoch() -> int:
    restore = last_restore()
    assert restore is not None
    return restore.epoch
