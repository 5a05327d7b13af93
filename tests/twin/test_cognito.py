"""Cognito in the twin: faults that can be turned on, lists that page as AWS's do, and the same pool after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.stub import Stubber

from accessportal.aws import cognito
from accessportal.aws.clients import cognito_client
from accessportal.aws.errors import Gone, Refused, Throttled, Transient
from accessportal.twin.server import TwinServer
from accessportal.twin.settings import TwinSettings
from tests.fixtures_twin import REGION, Twin
from tests.twin.test_server import client, running


@pytest.fixture
def plain(twin: Twin) -> Any:
    return boto3.client("cognito-idp", region_name=REGION, config=Config(retries={"total_max_attempts": 1, "mode": "standard"}))


@pytest.fixture
def pool(plain: Any) -> str:
    """A pool with Alice in it."""
    pool_id = cognito.create_user_pool("people")
    cognito.create_user(pool_id, username="alice@example.com", email="alice@example.com", name="Alice Archer", invites=False)
    return pool_id


def test_a_pool_is_found_by_its_name(pool: str) -> None:
    assert cognito.find_user_pool("people") == pool
    assert cognito.find_user_pool("nobody") is None
    cognito.create_user_pool("people")
    with pytest.raises(Refused, match="SeveralUserPools"):
        cognito.find_user_pool("people")


@pytest.mark.parametrize("configuration", [{}, {"UsernameConfiguration": {"CaseSensitive": True}}])
def test_a_pool_that_tells_case_apart_is_refused(pool: str, plain: Any, configuration: dict[str, Any]) -> None:
    cognito.require_one_case(pool)
    other = plain.create_user_pool(PoolName="two cases", **configuration)["UserPool"]["Id"]
    with pytest.raises(Refused, match="tells upper and lower case in user names apart"):
        cognito.require_one_case(other)


def test_changes_that_are_made_already_are_fine(pool: str) -> None:
    for _ in range(2):
        cognito.create_user(pool, username="bob@example.com", email="bob@example.com", name="Bob", invites=False)
        cognito.create_group(pool, name="/eng:admin", description="/eng")
        cognito.add_to_group(pool, username="bob@example.com", group="/eng:admin")
    assert cognito.groups_of_user(pool, "bob@example.com") == {"/eng:admin"}
    assert list(cognito.list_users_in_group(pool, "/eng:admin")) == ["bob@example.com"]
    for _ in range(2):
        cognito.disable_user(pool, "bob@example.com")
        cognito.sign_out_user(pool, "bob@example.com")
        cognito.remove_from_group(pool, username="bob@example.com", group="/eng:admin")
    assert cognito.get_user(pool, "bob@example.com") == cognito.CognitoUser("bob@example.com", is_enabled=False, name="Bob")
    for _ in range(2):
        cognito.delete_user(pool, "bob@example.com")
        cognito.delete_group(pool, "/eng:admin")
        cognito.remove_from_group(pool, username="bob@example.com", group="/eng:admin")
    assert cognito.get_user(pool, "bob@example.com") is None
    assert not cognito.find_group(pool, "/eng:admin")


def test_what_is_missing_is_told_apart(pool: str) -> None:
    cognito.create_group(pool, name="/eng:admin", description="/eng")
    with pytest.raises(Gone, match="UserNotFoundException"):
        cognito.add_to_group(pool, username="bob@example.com", group="/eng:admin")
    with pytest.raises(Gone, match="ResourceNotFoundException"):
        cognito.add_to_group(pool, username="alice@example.com", group="/sales:admin")
    with pytest.raises(Gone):
        cognito.groups_of_user(pool, "bob@example.com")


def test_a_missing_pool_is_not_a_missing_user(pool: str) -> None:
    """Else a wrong setting would look as if everybody were gone, and every removal as done."""
    wrong = "eu-central-1_nopool"
    for call in (
        lambda: cognito.get_user(wrong, "alice@example.com"),
        lambda: cognito.delete_user(wrong, "alice@example.com"),
        lambda: cognito.find_group(wrong, "/eng:admin"),
        lambda: cognito.delete_group(wrong, "/eng:admin"),
        lambda: list(cognito.list_users(wrong)),
    ):
        with pytest.raises(Refused, match="UserPoolNotFound"):
            call()


def test_a_pool_that_gives_names_of_its_own_is_refused_each_time(plain: Any) -> None:
    """The first refusal leaves a user, which such a pool finds by the address: nobody is to take it for the one that was wanted."""
    pool_id = plain.create_user_pool(PoolName="by e-mail", UsernameAttributes=["email"])["UserPool"]["Id"]
    for _ in range(2):
        with pytest.raises(Refused, match="UsernameAttributes"):
            cognito.create_user(pool_id, username="alice@example.com", email="alice@example.com", name="Alice", invites=False)
    with pytest.raises(Refused, match="UserNamesNotKept"):
        cognito.get_user(pool_id, "alice@example.com")
    assert cognito.get_user(pool_id, "bob@example.com") is None


@pytest.mark.parametrize(("given", "is_kept"), [("Alice@Example.com", True), ("alice", False), ("okta_alice@example.com", False)])
def test_a_user_that_was_found_by_another_name_is_refused(given: str, is_kept: bool) -> None:
    with Stubber(cognito_client()) as stub:
        stub.add_response("admin_get_user", {"Username": given, "Enabled": True}, {"UserPoolId": "pool_1", "Username": "alice@example.com"})
        if is_kept:
            assert cognito.get_user("pool_1", "alice@example.com") == cognito.CognitoUser(given, is_enabled=True)
        else:
            with pytest.raises(Refused, match="UserNamesNotKept"):
                cognito.get_user("pool_1", "alice@example.com")


def test_lists_go_to_their_end_while_things_vanish(plain: Any, pool: str) -> None:
    for number in range(130):
        plain.admin_create_user(UserPoolId=pool, Username=f"u{number:03}@example.com", MessageAction="SUPPRESS")
        plain.create_group(UserPoolId=pool, GroupName=f"/g{number:03}:reader")
        plain.admin_add_user_to_group(UserPoolId=pool, Username="alice@example.com", GroupName=f"/g{number:03}:reader")
    assert len(cognito.groups_of_user(pool, "alice@example.com")) == 130
    assert len(list(cognito.list_groups(pool))) == 130

    users = cognito.list_users(pool)
    seen = [next(users).username]
    plain.admin_delete_user(UserPoolId=pool, Username="u059@example.com")
    seen += [user.username for user in users]

    assert len(seen) == len(set(seen))
    assert set(seen) >= {"alice@example.com", "u058@example.com", "u060@example.com", "u129@example.com"}


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [("cognito_throttle", Throttled, "TooManyRequestsException"), ("cognito_server_error", Transient, "InternalErrorException")],
)
def test_a_fault_that_is_answered_has_no_effect(twin: Twin, pool: str, fault: str, error: type[Exception], code: str) -> None:
    twin.settings.change({fault: 1.0})
    with pytest.raises(error, match=code):
        cognito.delete_user(pool, "alice@example.com")
    twin.settings.change({fault: 0.0})
    assert cognito.get_user(pool, "alice@example.com") is not None


def test_a_lost_answer_took_effect_and_an_outage_has_none(twin: Twin, plain: Any, pool: str) -> None:
    twin.settings.change({"cognito_outage": True})
    with pytest.raises(Transient):
        cognito.delete_user(pool, "alice@example.com")
    twin.settings.change({"cognito_outage": False, "cognito_lose_answer": 1.0})
    assert twin.organizations.list_roots()["Roots"], "the faults are Cognito's alone"
    with pytest.raises(ConnectionClosedError):
        plain.admin_disable_user(UserPoolId=pool, Username="alice@example.com")
    twin.settings.change({"cognito_lose_answer": 0.0})
    user = cognito.get_user(pool, "alice@example.com")
    assert user is not None
    assert not user.is_enabled


def everything(server: TwinServer) -> dict[str, Any]:
    idp = client("cognito-idp", server)
    (pool,) = idp.list_user_pools(MaxResults=60)["UserPools"]
    groups = idp.list_groups(UserPoolId=pool["Id"])["Groups"]
    members = {
        group["GroupName"]: idp.list_users_in_group(UserPoolId=pool["Id"], GroupName=group["GroupName"])["Users"] for group in groups
    }
    return {"pool": pool, "users": idp.list_users(UserPoolId=pool["Id"])["Users"], "groups": groups, "members": members}


def test_the_pool_comes_back_under_the_same_id(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        idp = client("cognito-idp", server)
        pool = idp.create_user_pool(PoolName="people")["UserPool"]["Id"]
        for name in ("alice@example.com", "bob@example.com", "mallory@example.com"):
            idp.admin_create_user(UserPoolId=pool, Username=name, MessageAction="SUPPRESS")
        idp.create_group(UserPoolId=pool, GroupName="/eng:admin")
        idp.admin_add_user_to_group(UserPoolId=pool, Username="alice@example.com", GroupName="/eng:admin")
        idp.admin_disable_user(UserPoolId=pool, Username="bob@example.com")
        idp.admin_delete_user(UserPoolId=pool, Username="mallory@example.com")
        before = everything(server)
        lines = len(journal.read_text().splitlines())
        idp.admin_get_user(UserPoolId=pool, Username="alice@example.com")
        idp.admin_list_groups_for_user(UserPoolId=pool, Username="alice@example.com")
        assert len(journal.read_text().splitlines()) == lines, "a read is not kept"
    with running(journal) as server:
        assert everything(server) == before


def test_a_server_turns_faults_on_and_off(tmp_path: Path) -> None:
    with running(tmp_path / "twin.journal", TwinSettings(cognito_throttle=1.0)) as server:
        idp = client("cognito-idp", server)
        with pytest.raises(ClientError, match="TooManyRequestsException"):
            idp.list_user_pools(MaxResults=1)
        server.front.settings.change({"cognito_throttle": 0.0, "cognito_outage": True})
        with pytest.raises(ConnectionClosedError):
            idp.list_user_pools(MaxResults=1)
        server.front.settings.change({"cognito_outage": False})
        assert idp.list_user_pools(MaxResults=1)["UserPools"] == []
