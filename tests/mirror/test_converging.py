"""Cognito follows the table: after each change, after trouble, and by the sweep; nothing is said to be done before it is."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import botocore.endpoint
import pytest
from botocore.exceptions import ClientError

from accessportal.aws import cognito
from accessportal.directory import queries
from accessportal.directory.states import Changed, GroupRole, State
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict, NoAnswer, Unavailable
from accessportal.mirror import operations as mirror
from accessportal.mirror import queries as mirror_queries
from accessportal.mirror import store as work_store
from accessportal.mirror.effects import converging
from tests.fixtures_twin import REGION
from tests.mirror import mirrored
from tests.mirror.world import ALICE, BOB, MALLORY, PAYMENTS, World

NAMES = tuple(f"{PAYMENTS}:{role}" for role in mirrored.ROLES)


@pytest.fixture(scope="module")
def idp() -> Any:
    return boto3.client("cognito-idp", region_name=REGION)


def test_every_operation_is_followed_at_once(world: World) -> None:
    world.check("built")
    changes: tuple[Callable[[], Changed[Any]], ...] = (
        lambda: world.grant(MALLORY, PAYMENTS),
        lambda: world.grant(MALLORY, PAYMENTS, GroupRole.ADMIN),
        lambda: world.set_person(ALICE, State.DISABLED),
        lambda: world.set_person(ALICE, State.ENABLED),
        lambda: world.rename_person(ALICE, "Alice Archer"),
        lambda: world.set_group(PAYMENTS, State.DISABLED),
        lambda: world.rename_group(PAYMENTS),
        lambda: world.move_group(PAYMENTS, "/security"),
        lambda: world.revoke(MALLORY, PAYMENTS),
        lambda: world.delete_person(BOB),
        lambda: world.create_group("/sales"),
        lambda: world.delete_group("/sales"),
    )
    for change in changes:
        changed = change()
        assert changed.mirror.is_done, changed.mirror.reason
        world.check()


def test_a_change_of_role_leaves_no_moment_without_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    send: Any = botocore.endpoint.Endpoint.make_request

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        answer = send(self, operation_model, request_dict)
        if operation_model.name in {"AdminAddUserToGroup", "AdminRemoveUserFromGroup"}:
            seen.append([name for name in NAMES if world.is_in(ALICE, name)])
        return answer

    monkeypatch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
    assert world.grant(ALICE, PAYMENTS, GroupRole.ADMIN).mirror.is_done
    assert seen == [[f"{PAYMENTS}:contributor", f"{PAYMENTS}:admin"], [f"{PAYMENTS}:admin"]]


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], str]]:
    """Each user that Cognito was told to make: the name, how the invitation is to be delivered, and what else is to be done with it."""
    calls: list[tuple[str, list[str], str]] = []
    send: Any = botocore.endpoint.Endpoint.make_request

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        if operation_model.name == "AdminCreateUser":
            sent = json.loads(request_dict["body"])
            calls.append((sent["Username"], sent.get("DesiredDeliveryMediums", []), sent.get("MessageAction", "")))
        return send(self, operation_model, request_dict)

    monkeypatch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
    return calls


def test_a_pool_that_gives_names_of_its_own_is_never_said_to_have_followed(world: World, idp: Any) -> None:
    pool = idp.create_user_pool(PoolName="by e-mail", UsernameAttributes=["email"])["UserPool"]["Id"]
    mirror.configure(mirror.MirrorSettings(user_pool_id=pool))
    assert not world.create_person("new@example.com").mirror.is_done
    for _ in range(2):
        world.clock.advance(301)
        assert world.sweep().done == 0
    (work,) = mirror_queries.page_of_pending().items
    assert "UserNamesNotKept" in work.error


def test_a_pool_that_tells_case_apart_is_refused_but_still_followed(world: World, idp: Any) -> None:
    """Where a pool in use is one, nobody who is disabled here stays enabled there."""
    pool = idp.create_user_pool(PoolName="two cases")["UserPool"]["Id"]
    with pytest.raises(Conflict, match="upper and lower case"):
        mirror.ensure_user_pool(name="two cases", actor=system("setup"))
    mirror.configure(mirror.MirrorSettings(user_pool_id=pool))
    with pytest.raises(Unavailable, match="upper and lower case"):
        mirror.compare_mirror(apply=True, actor=system("setup"), clock=world.clock)

    assert world.create_person("new@example.com").mirror.is_done


def test_nobody_is_invited_unless_it_is_set(world: World, created: list[tuple[str, list[str], str]]) -> None:
    assert world.create_person("new@example.com").mirror.is_done
    assert created == [("new@example.com", [], "SUPPRESS")]


def test_a_new_user_is_invited_once_by_e_mail(world: World, created: list[tuple[str, list[str], str]]) -> None:
    """Also when the answer is lost, or when another one was made beside; without an invitation nobody could ever sign in."""
    mirror.configure(mirror.MirrorSettings(user_pool_id=world.pool, user_pool_invites=True))
    assert world.create_person("new@example.com").mirror.is_done
    world.twin.settings.change({"cognito_lose_answer": 1.0})
    assert not world.create_person("lost@example.com").mirror.is_done
    world.twin.settings.change({"cognito_lose_answer": 0.0})
    cognito.create_user(world.pool, username="new@example.com", email="new@example.com", name="New", invites=True)
    world.rename_person("new@example.com", "Newer")
    world.clock.advance(301)
    world.settle()
    world.check()
    invited = [name for name, delivered, action in created if (delivered, action) == (["EMAIL"], "")]
    assert invited == [name for name, _, _ in created]
    assert "RESEND" not in {action for _, _, action in created}
    assert set(invited) == {"new@example.com", "lost@example.com"}


def test_who_is_disabled_is_not_invited(world: World, idp: Any, created: list[tuple[str, list[str], str]]) -> None:
    mirror.configure(mirror.MirrorSettings(user_pool_id=world.pool, user_pool_invites=True))
    world.set_person(ALICE, State.DISABLED)
    idp.admin_delete_user(UserPoolId=world.pool, Username=ALICE)
    work_store.ask([f"person#{ALICE}"], now=world.clock.now())
    world.settle()
    world.check()
    assert created == [(ALICE, [], "SUPPRESS")]


def test_a_disabled_group_loses_everybody_at_once_and_gets_them_back(world: World) -> None:
    world.grant(BOB, PAYMENTS)
    assert world.set_group(PAYMENTS, State.DISABLED).mirror.is_done
    assert not set(NAMES) & set(mirrored.present(world.pool).groups)
    world.check("disabled")

    assert world.set_group(PAYMENTS, State.ENABLED).mirror.is_done
    assert mirrored.pending() == [f"W:U:{ALICE}", f"W:U:{BOB}"], "each member is asked for before the group is made"
    world.clock.advance(1)
    assert world.sweep().done == 2
    world.check("enabled")


def test_a_member_can_join_a_group_that_cognito_has_lost(world: World, idp: Any) -> None:
    for name in NAMES:
        idp.delete_group(UserPoolId=world.pool, GroupName=name)
    assert world.grant(MALLORY, PAYMENTS).mirror.is_done
    world.clock.advance(1)
    world.settle()
    world.check("Alice is back too")


def test_a_removal_is_not_said_to_be_done_before_cognito_has_it(world: World) -> None:
    world.twin.settings.change({"cognito_outage": True})
    changed = world.revoke(BOB, "/security")
    assert not changed.mirror.is_done
    assert changed.mirror.reason
    work = mirror_queries.find_pending(f"person#{BOB}")
    assert work is not None
    assert (work.attempts, work.lease_until) == (1, None)
    assert "Cognito" in work.error
    assert mirror_queries.page_of_pending().items == (work,)
    assert queries.find_person(email=BOB) is None, "the change itself stands"

    world.twin.settings.change({"cognito_outage": False})
    assert world.is_in(BOB, "/security:admin")
    assert world.sweep().done == 0, "it is not due yet"
    world.clock.advance(6)
    assert world.sweep().done == 1
    assert not world.is_in(BOB, "/security:admin")
    world.check()


def test_the_gap_grows_to_five_minutes(world: World) -> None:
    world.twin.settings.change({"cognito_outage": True})
    world.set_person(ALICE, State.DISABLED)
    gaps = []
    for _ in range(9):
        work = mirror_queries.find_pending(f"person#{ALICE}")
        assert work is not None
        gaps.append((work.due_at - world.clock.now()).total_seconds())
        world.clock.advance(gaps[-1])
        report = world.sweep()
    # By chance nothing is taken off the five seconds, and waiting for a call's turn comes on top.
    assert gaps[0] < 5.5 < gaps[3] < gaps[8] <= 300
    assert [failure.item for failure in report.failures] == [f"person#{ALICE}"]
    assert report.waiting == 1


def test_a_change_starts_the_gap_anew(world: World) -> None:
    world.twin.settings.change({"cognito_outage": True})
    for state in (State.DISABLED, State.ENABLED) * 2:
        world.set_person(ALICE, state)
    work = mirror_queries.find_pending(f"person#{ALICE}")
    assert work is not None
    assert work.attempts == 1


def test_one_failing_item_stops_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.twin.settings.change({"cognito_outage": True})
    world.set_person(ALICE, State.DISABLED)
    world.set_person(BOB, State.DISABLED)
    boto3.resource("dynamodb", region_name=REGION).Table("AccessManagement").put_item(
        Item={"pk": "W:U:broken@example.com", "sk": "W:U:broken@example.com", "siKey1": "W", "dueAt": "never"}
    )
    world.twin.settings.change({"cognito_outage": False})
    get_user = cognito.get_user

    def break_for_alice(pool: str, username: str) -> Any:
        if username == ALICE:
            raise ZeroDivisionError("poisoned")
        return get_user(pool, username)

    monkeypatch.setattr(cognito, "get_user", break_for_alice)
    world.clock.advance(6)
    report = world.sweep()
    assert report.done == 1
    assert sorted(failure.item for failure in report.failures) == ["W:U:broken@example.com", f"person#{ALICE}"]
    assert mirrored.present(world.pool).users[BOB] is False


def test_another_worker_is_left_alone_and_a_dead_one_is_followed(world: World) -> None:
    """The lease of a worker that died is free after a minute."""
    world.twin.settings.change({"cognito_outage": True})
    world.set_person(ALICE, State.DISABLED)
    world.twin.settings.change({"cognito_outage": False})
    world.clock.advance(6)
    now = world.clock.now()
    held = work_store.take(f"person#{ALICE}", now=now, until=now + timedelta(seconds=60))
    assert held is not None
    assert work_store.take(f"person#{ALICE}", now=now, until=now + timedelta(seconds=61)) is None
    changed = world.rename_person(ALICE, "Alice Archer")
    assert (changed.mirror.is_done, changed.mirror.reason) == (False, "Another worker is bringing Cognito up to date.")
    assert world.sweep().done == 0

    world.clock.advance(61)
    assert world.sweep().done == 1
    assert not work_store.finish(held), "the late worker can't say that it is done"
    world.check()


def test_a_change_during_the_convergence_is_not_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    add = cognito.add_to_group
    done: list[str] = []

    def add_and_change(pool: str, *, username: str, group: str) -> None:
        add(pool, username=username, group=group)
        if not done:
            done.append(group)
            world.revoke(MALLORY, PAYMENTS)

    world.grant(MALLORY, "/engineering")
    monkeypatch.setattr(cognito, "add_to_group", add_and_change)
    assert world.grant(MALLORY, PAYMENTS).mirror.is_done
    assert done == [f"{PAYMENTS}:reader"]
    world.check()


def test_a_change_after_the_last_look_at_the_table_is_not_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was proved is not what is wanted any more: the work has a new token, and stays."""
    read, done = cognito.groups_of_user, [""]

    def read_and_change(pool: str, username: str) -> frozenset[str]:
        names = read(pool, username)
        if f"{PAYMENTS}:reader" in names and not done[0]:
            done[0] = username
            world.revoke(MALLORY, PAYMENTS)
        return names

    world.grant(MALLORY, "/engineering")
    monkeypatch.setattr(cognito, "groups_of_user", read_and_change)
    assert world.grant(MALLORY, PAYMENTS).mirror.is_done
    assert done == [MALLORY]
    world.check()


def test_without_a_pool_nothing_is_pending(world: World) -> None:
    mirror.configure(mirror.MirrorSettings())
    changed = world.grant(MALLORY, PAYMENTS)
    assert (changed.mirror.is_done, changed.mirror.reason) == (True, "")
    assert mirrored.pending() == []
    assert world.sweep().done == 0


def test_whoever_is_disabled_or_deleted_is_signed_out_everywhere(world: World, idp: Any) -> None:
    """Again after a crash: whether it was done can't be read."""
    client = idp.create_user_pool_client(UserPoolId=world.pool, ClientName="c", ExplicitAuthFlows=["ALLOW_ADMIN_USER_PASSWORD_AUTH"])
    app = client["UserPoolClient"]["ClientId"]

    def sign_in(email: str) -> str:
        idp.admin_set_user_password(UserPoolId=world.pool, Username=email, Password="Pa55word!", Permanent=True)
        answer = idp.admin_initiate_auth(
            UserPoolId=world.pool,
            ClientId=app,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": email, "PASSWORD": "Pa55word!"},
        )
        token: str = answer["AuthenticationResult"]["AccessToken"]
        assert idp.get_user(AccessToken=token)["Username"] == email
        return token

    tokens = {email: sign_in(email) for email in (ALICE, BOB)}
    world.set_person(ALICE, State.DISABLED)
    world.delete_person(BOB)
    world.set_person(ALICE, State.ENABLED)
    world.create_person(BOB)
    for token in tokens.values():
        with pytest.raises(ClientError, match="NotAuthorized"):
            idp.get_user(AccessToken=token)


def test_whoever_has_the_address_next_gets_a_user_of_their_own(world: World, idp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when Cognito was down from the one's last moment to the other's first: password and sessions hang on the user."""

    def subject() -> str:
        attributes = idp.admin_get_user(UserPoolId=world.pool, Username=ALICE)["UserAttributes"]
        found: str = next(one["Value"] for one in attributes if one["Name"] == "sub")
        return found

    former = subject()
    world.twin.settings.change({"cognito_throttle": 1.0})
    assert not world.delete_person(ALICE).mirror.is_done
    assert not world.create_person(ALICE, "/security", GroupRole.READER).mirror.is_done
    world.twin.settings.change({"cognito_throttle": 0.0})
    world.clock.advance(10)
    with monkeypatch.context() as patched:
        patched.setattr(cognito, "create_user", lambda *_args, **_named: (_ for _ in ()).throw(RuntimeError("killed")))
        assert world.sweep().failures
    world.clock.advance(60)

    world.sweep()

    world.check()
    latter = subject()
    assert latter != former
    world.rename_person(ALICE, "Alice Next")
    assert subject() == latter, "only a deletion makes a new user"


def test_taking_away_asks_nobody_whether_grants_are_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer() -> None:
        raise NoAnswer("The database did not answer.", code="store_unavailable")

    monkeypatch.setattr(converging, "held_restore", no_answer)

    world.set_person(ALICE, State.DISABLED)
    world.delete_person(BOB)

    world.check()
    with contextlib.suppress(NoAnswer):
        world.set_person(ALICE, State.ENABLED)
    assert mirrored.present(world.pool) != mirrored.wanted(world.clock.now()), "giving waits for the answer"
