"""The demo: made once, in the twin, and left alone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.authz import queries as authz
from accessportal.aws.clients import forget_clients
from accessportal.demo import history
from accessportal.demo.directory import GROUPS
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import system
from accessportal.rules import operations as rules
from accessportal.rules import queries as rule_queries
from tests.commands.conftest import run
from tests.conftest import START, FakeClock
from tests.fixtures_story import Story
from tests.fixtures_twin import plain_twin

SMALL = ("--accounts", "40", "--permission-sets", "4")


@pytest.fixture
def bare_twin(clock: FakeClock, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An AWS in which nothing exists, with the portal's tables."""
    monkeypatch.setattr("accessportal.demo.loading._PASSWORD_FILE", tmp_path / "demo-password")
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: clock)
    with plain_twin(clock) as front:
        # As while a past is made up.
        front.settings.change({"job_seconds": 0.0})
        forget_clients()
        assert run("create_tables").code == 0
        yield
    forget_clients()


def test_a_demo_is_made_and_alice_can_sign_in(bare_twin: None, client: Client) -> None:
    told = run("load_demo", *SMALL, "--json").json

    assert told["rules_loaded"] is True
    assert (told["accounts"] >= 40, told["permission_sets"]) == (True, 4)
    assert client.login(username="alice@example.com", password=told["password"])
    assert "/engineering" in directory_queries.groups_of(email="alice@example.com", now=START)
    assert [person.key for person in directory_queries.Book().crowd(directory_queries.Named(groups=("/security",)), now=START).people] == [
        "bob@example.com",
        "mei@example.com",
        "sam@example.com",
    ]
    asked = run(
        "request_access", "--as", "alice@example.com", "--account", "payments-dev", "--permission-set", "PowerUserAccess",
        "--duration", "1m", "--reason", "First try", "--json",
    )  # fmt: skip
    assert (asked.code, asked.json["status"]) == (0, "ACTIVE")


def test_what_was_changed_afterwards_stays(bare_twin: None, clock: FakeClock) -> None:
    run("load_demo", *SMALL)
    setup = system("setup")
    rules.apply_rules(text="rules: []", actor=setup, now=clock.now())
    directory.delete_group(group_id="/support", actor=setup, now=clock.now())
    directory.grant_membership(
        email="sam@example.com", group_id="/security/response", role=GroupRole.CONTRIBUTOR, actor=setup, now=clock.now()
    )
    for group_id in ("/security", "/security/response"):
        directory.revoke_membership(email="bob@example.com", group_id=group_id, actor=setup, now=clock.now())
    directory.grant_membership(email="mei@example.com", group_id="/", role=GroupRole.ADMIN, actor=setup, now=clock.now())
    directory.revoke_membership(email="olga@example.com", group_id="/", actor=setup, now=clock.now())

    told = run("load_demo", *SMALL, "--json").json

    assert told["rules_loaded"] is False
    assert rule_queries.current_rules() == ()
    assert directory_queries.find_person(email="bob@example.com") is None
    assert directory_queries.find_group(group_id="/support") is None
    assert directory_queries.role_on(email="sam@example.com", group_id="/security/response", now=START) is GroupRole.CONTRIBUTOR
    assert directory_queries.role_on(email="olga@example.com", group_id="/", now=START) is None


def test_the_demo_is_a_small_company(bare_twin: None) -> None:
    run("load_demo", *SMALL)
    found = directory_queries.tree()

    assert set(found.groups) == {"/", *GROUPS}
    assert max(len(group.ancestors) for group in found.groups.values()) == 4
    admins = {
        group_id: [one.key for one in directory_queries.Book().crowd(directory_queries.Named(admins_of=group_id), now=START).people]
        for group_id in GROUPS
    }
    assert admins["/engineering/payments/ledger/reports"] == ["mei@example.com", "olga@example.com"]
    assert admins["/finance"] == ["ines@example.com", "olga@example.com"]
    assert directory_queries.role_on(email="alice@example.com", group_id="/engineering/payments", now=START) is GroupRole.CONTRIBUTOR
    assert "/portal/operators" in directory_queries.groups_of(email="olga@example.com", now=START)
    assert run("verify_audit").code == 0


def test_some_memberships_end_by_themselves_and_one_waits(bare_twin: None, clock: FakeClock) -> None:
    run("load_demo", *SMALL)
    operations.tick(clock=clock, lookahead_seconds=0, workers=1)

    roles = {
        (email, group_id): directory_queries.role_on(email=f"{email}@example.com", group_id=group_id, now=clock.now())
        for email, group_id in (("nina", "/engineering/web"), ("tom", "/engineering/mobile"), ("femi", "/engineering/payments/on-call"))
    }
    assert list(roles.values()) == [GroupRole.READER, GroupRole.CONTRIBUTOR, None]
    assert [one.status for one in _memberships_asked("femi@example.com", clock)] == [Status.PENDING]
    clock.advance(8 * 3600)
    assert directory_queries.role_on(email="nina@example.com", group_id="/engineering/web", now=clock.now()) is None
    run("load_demo", *SMALL)
    assert len(_memberships_asked("nina@example.com", clock)) == 1


def _memberships_asked(email: str, clock: FakeClock) -> list[AccessRequest]:
    found = queries.list_by_subject(subject_id=email, actor=system("test"), now=clock.now()).items
    return [one for one in found if one.kind == "group"]


def test_the_bot_has_a_yes_a_no_and_one_that_is_over(bare_twin: None, clock: FakeClock) -> None:
    run("load_demo", *SMALL)
    operations.tick(clock=clock, lookahead_seconds=0, workers=1)
    releases = ("deploy-bot", "https://deploy.example.com/releases", "POST")

    def may(scope: str, *names: str, command: str = "check_approval") -> bool:
        return run(command, *names, "--scope", scope, "--as", "ana@example.com").code == 0

    tenants = ("acme-corp:env:prod", "widgets-inc:env:prod", "acme-corp:env:dev", "widgets-inc:env:dev")
    assert [may(f"tenant:{one}", *releases) for one in tenants] == [True, False, False, True]
    over = authz.APPROVALS.get(authz.read_scope("tenant:acme-corp:env:dev"), releases)
    assert over is not None
    assert over.expires_at is not None
    assert over.expires_at < clock.now()
    assert may("tenant:acme-corp:env:prod", "deploy-bot", "member", "deployers", "--chain", command="check_relationship")
    assert may("tenant:acme-corp:env:dev", "tom@example.com", "https://docs.example.com/runbook", "GET")
    asked = queries.list_by_subject(subject_id="tom@example.com", actor=system("test"), now=clock.now()).items
    assert {(one.kind, one.status) for one in asked} >= {("approval", Status.ACTIVE), ("relationship", Status.PENDING)}


def test_data_of_the_first_version_is_taken_in(bare_twin: None) -> None:
    """Without a root, places or admins in the groups, and with everybody in one group at most."""
    run("load_demo", *SMALL)
    for item in list(DirectoryItem.scan()):
        if "G:/" in (item.pk, item.sk) or item.pk == "C:groups":
            item.delete()
        elif item.si_key1 == "G":
            item.update([DirectoryItem.ancestors.remove(), DirectoryItem.tree_version.remove(), DirectoryItem.admins.remove()])

    told = run("load_demo", *SMALL)

    assert told.code == 0, told.problem
    found = directory_queries.tree()
    assert set(found.groups) == {"/", *GROUPS}
    assert found.children["/"] == ("/contractors", "/data", "/engineering", "/finance", "/portal", "/security", "/support")
    assert directory_queries.role_on(email="olga@example.com", group_id="/data/analytics", now=START) is GroupRole.ADMIN
    assert run("verify_audit").code == 0
    assert run("load_demo", *SMALL).code == 0


def test_the_password_is_kept_or_given(bare_twin: None, client: Client, settings: Settings, tmp_path: Path) -> None:
    first = run("load_demo", *SMALL, "--json").json["password"]
    assert run("load_demo", *SMALL, "--json").json["password"] == first
    assert (tmp_path / "demo-password").stat().st_mode & 0o777 == 0o600

    settings.DEMO_PASSWORD = "given-by-hand"
    told = run("load_demo", *SMALL)

    assert "given-by-hand" in told.lines[-1]
    assert client.login(username="bob@example.com", password="given-by-hand")
    assert not client.login(username="bob@example.com", password=first)


@pytest.mark.django_db(transaction=True)
def test_a_past_is_made_of_every_sort_of_request(bare_twin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.demo.history._THREADS", 1)
    run("load_demo", *SMALL, "--requests", "20")
    statuses = [request["status"] for request in run("list_requests", "--subject", "alice@example.com", "--json").json["requests"]]

    assert {status: statuses.count(status) for status in sorted(set(statuses))} == {
        "ACTIVE": 2,
        "CANCELLED": 2,
        "DENIED": 3,
        "LAPSED": 2,
        "PENDING": 1,
        "REVOKED": 11,
    }
    assert run("verify_audit").code == 0
    run("load_demo", *SMALL, "--requests", "20")
    assert len(queries.list_by_subject(subject_id="alice@example.com", actor=system("test"), now=START).items) == 21


def test_nobody_loads_a_demo_into_production(settings: Settings, db: None) -> None:
    settings.DEMO = False

    told = run("load_demo")

    assert told.code == 1
    assert "PORTAL_DEMO" in told.problem


def test_numbers_are_numbers(db: None) -> None:
    assert run("load_demo", "--accounts", "many").code == 2


def test_a_worker_faster_than_the_history_does_not_stop_it(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in the past is due as soon as it is written, and the worker of a running portal comes by."""
    submit = operations.submit

    def submit_and_tick(**asked: Any) -> AccessRequest:
        made = submit(**asked)
        story.tick()
        return made

    monkeypatch.setattr(operations, "submit", submit_and_tick)

    made = [history._live(number, fate, story.clock.now()) for number, fate in enumerate(history._FATES)]

    assert {request.status for request in made} == {Status.LAPSED, Status.REVOKED, Status.PENDING, Status.ACTIVE}
