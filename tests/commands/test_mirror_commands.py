"""``create_user_pool`` and ``mirror_directory``: what they print, how they end, and who may run them."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from accessportal.aws import cognito
from accessportal.aws.errors import Throttled
from accessportal.directory import operations
from accessportal.directory.states import State
from accessportal.jobs import tasks
from tests.commands.conftest import run
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION
from tests.mirror import mirrored


@pytest.fixture
def pool(story: Story, user_pool: str) -> str:
    """The story's directory, already in the pool."""
    assert run("mirror_directory").code == 0
    return user_pool


def test_a_pool_is_made_once_and_the_setting_told(story: Story) -> None:
    made = run("create_user_pool", "--json")
    assert (made.code, made.json["created"]) == (0, True)
    assert made.json["setting"] == f"PORTAL_USER_POOL_ID={made.json['user_pool_id']}"
    again = run("create_user_pool", "--as", "olga@example.com")
    assert again.code == 0
    assert made.json["user_pool_id"] in again.lines[0]
    assert "exists" in again.lines[0]
    assert "PORTAL_USER_POOL_ID=" in again.out
    assert run("create_user_pool", "--name", "other", "--json").json["created"]


def test_a_new_pool_gets_everybody(pool: str, story: Story) -> None:
    assert mirrored.present(pool) == mirrored.wanted(story.clock.now())
    assert mirrored.pending() == []


def test_a_check_changes_nothing_and_tells_by_its_exit(pool: str, story: Story) -> None:
    assert run("mirror_directory", "--check").code == 0
    idp: Any = boto3.client("cognito-idp", region_name=REGION)
    idp.admin_disable_user(UserPoolId=pool, Username="bob@example.com")

    told = run("mirror_directory", "--check", "--json")
    assert told.code == 1
    assert told.json["comparison"]["differences"][0]["entity"] == "person#bob@example.com"
    assert mirrored.present(pool).users["bob@example.com"] is False
    assert "still disabled" in run("mirror_directory", "--check").out

    mended = run("mirror_directory", "--as", "olga@example.com", "--json")
    assert (mended.code, mended.json["comparison"]["mended"]) == (0, 1)
    assert run("mirror_directory", "--check").code == 0


def test_what_could_not_be_looked_at_is_said(pool: str, monkeypatch: pytest.MonkeyPatch, story: Story) -> None:
    idp: Any = boto3.client("cognito-idp", region_name=REGION)
    idp.admin_disable_user(UserPoolId=pool, Username="bob@example.com")

    def throttled(_pool: str, _name: str) -> Any:
        raise Throttled("TooManyRequestsException", "Rate exceeded")

    with monkeypatch.context() as patched:
        patched.setattr(cognito, "get_user", throttled)
        for arguments in (["--check"], []):
            told = run("mirror_directory", *arguments)
            assert told.code == 1
            assert "person#bob@example.com waits: It could not be looked at again" in told.out
        with pytest.raises(tasks.ItemsFailed, match="failed 1"):
            tasks.compare_directory()
    story.clock.advance(1)
    assert run("mirror_directory", "--json").json["sweep"]["done"] == 1
    assert mirrored.present(pool).users["bob@example.com"]


def test_what_is_pending_is_followed_first(pool: str, story: Story) -> None:
    story.twin.settings.change({"cognito_outage": True})
    operations.set_person_state(email="alice@example.com", state=State.DISABLED, actor=story.olga, now=story.clock.now())
    assert run("mirror_directory").code == 1
    story.twin.settings.change({"cognito_outage": False})
    story.clock.advance(301)
    told = run("mirror_directory", "--json")
    assert (told.code, told.json["sweep"]["done"]) == (0, 1)
    assert mirrored.present(pool).users["alice@example.com"] is False


def test_only_operators_may(pool: str) -> None:
    told = run("mirror_directory", "--as", "mallory@example.com")
    assert told.code == 1
    assert "Only operators" in told.problem
    assert run("create_user_pool", "--as", "mallory@example.com").code == 1


def test_the_brake_ends_with_1(pool: str) -> None:
    idp: Any = boto3.client("cognito-idp", region_name=REGION)
    for number in range(20):
        idp.admin_create_user(UserPoolId=pool, Username=f"u{number}@example.com", MessageAction="SUPPRESS")
    told = run("mirror_directory", "--most-share", "0.05")
    assert told.code == 1
    assert "Nothing is removed" in told.problem
    assert run("mirror_directory", "--most-share", "1").code == 0


def test_without_a_pool_the_remedy_is_named(story: Story) -> None:
    told = run("mirror_directory", "--check")
    assert told.code == 1
    assert "create_user_pool" in told.problem
