"""The twin as a server: everything is there again after a restart, under the same ids and times, whatever ended the last run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from accessportal.twin import server as server_module
from accessportal.twin.journal import Journal, JournalError
from accessportal.twin.server import TwinServer
from accessportal.twin.settings import TwinSettings

REGION = "eu-central-1"
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running(journal: Path, settings: TwinSettings | None = None) -> Iterator[TwinServer]:
    """A twin in this process; moto's state is forgotten at the end, as the end of a process would."""
    from moto.core.base_backend import BackendDict

    server = TwinServer(host="127.0.0.1", port=0, journal_path=journal, settings=settings or TwinSettings(calls_per_second=0))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(timeout=60)
        BackendDict.reset()
    assert not thread.is_alive()


def client(service: str, server: TwinServer) -> Any:
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"}, connect_timeout=5, read_timeout=60)
    return boto3.Session().client(service, region_name=REGION, endpoint_url=server.url, config=config)  # type: ignore[call-overload]


def build_world(server: TwinServer) -> dict[str, str]:
    organizations, sso, store = client("organizations", server), client("sso-admin", server), client("identitystore", server)
    organizations.create_organization(FeatureSet="ALL")
    root = organizations.list_roots()["Roots"][0]["Id"]
    unit = organizations.create_organizational_unit(ParentId=root, Name="Workloads")["OrganizationalUnit"]["Id"]
    made = organizations.create_account(AccountName="payments-dev", Email="p@example.com", Tags=[{"Key": "env", "Value": "dev"}])
    account = made["CreateAccountStatus"]["AccountId"]
    organizations.move_account(AccountId=account, SourceParentId=root, DestinationParentId=unit)
    instance = sso.list_instances()["Instances"][0]
    arn = instance["InstanceArn"]
    permission_set = sso.create_permission_set(InstanceArn=arn, Name="ReadOnlyAccess", SessionDuration="PT8H")["PermissionSet"]
    user = store.create_user(
        IdentityStoreId=instance["IdentityStoreId"],
        UserName="alice@example.com",
        DisplayName="Alice",
        Name={"GivenName": "Alice", "FamilyName": "Archer"},
        Emails=[{"Value": "alice@example.com", "Primary": True}],
    )
    return {"instance": arn, "account": account, "permission_set": permission_set["PermissionSetArn"], "user": user["UserId"]}


def key(world: dict[str, str]) -> dict[str, str]:
    return {
        "InstanceArn": world["instance"],
        "TargetId": world["account"],
        "TargetType": "AWS_ACCOUNT",
        "PermissionSetArn": world["permission_set"],
        "PrincipalType": "USER",
        "PrincipalId": world["user"],
    }


def facts(server: TwinServer) -> dict[str, Any]:
    """Everything that a client can see of the world."""
    organizations, sso, store = client("organizations", server), client("sso-admin", server), client("identitystore", server)
    instance = sso.list_instances()["Instances"][0]
    sets = sso.list_permission_sets(InstanceArn=instance["InstanceArn"])["PermissionSets"]
    root = organizations.list_roots()["Roots"][0]["Id"]
    return {
        "organization": organizations.describe_organization()["Organization"],
        "units": organizations.list_organizational_units_for_parent(ParentId=root)["OrganizationalUnits"],
        "accounts": organizations.list_accounts()["Accounts"],
        "instance": instance,
        "sets": [sso.describe_permission_set(InstanceArn=instance["InstanceArn"], PermissionSetArn=one)["PermissionSet"] for one in sets],
        "users": store.list_users(IdentityStoreId=instance["IdentityStoreId"])["Users"],
    }


def make_table(dynamodb: Any) -> None:
    dynamodb.create_table(
        TableName="Requests",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "status")],
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[
            {
                "IndexName": "ByStatus",
                "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def scan(dynamodb: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = dynamodb.scan(TableName="Requests", ConsistentRead=True)["Items"]
    return items


def test_the_world_comes_back_under_the_same_ids_and_times(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        build_world(server)
        before = facts(server)
    with running(journal) as server:
        assert facts(server) == before


def test_a_read_that_makes_ids_is_kept_too(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        before = client("sso-admin", server).list_instances()["Instances"]
    with running(journal) as server:
        assert client("sso-admin", server).list_instances()["Instances"] == before


def test_items_come_back_as_every_kind_of_write_left_them(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        dynamodb = client("dynamodb", server)
        make_table(dynamodb)
        for number in range(6):
            dynamodb.put_item(
                TableName="Requests",
                Item={
                    "pk": {"S": f"request-{number}"},
                    "sk": {"S": "1"},
                    "data": {"M": {"list": {"L": [{"N": "1.50"}, {"NULL": True}, {"BOOL": False}]}, "ü": {"S": "€"}}},
                    "claims": {"SS": ["a", "b"]},
                    "seal": {"B": b"\x00\xff"},
                    "seals": {"M": {"inner": {"BS": [b"\x01", b"\x02"]}}},
                },
            )
        dynamodb.update_item(
            TableName="Requests",
            Key={"pk": {"S": "request-1"}, "sk": {"S": "1"}},
            UpdateExpression="SET #s = :s REMOVE seal ADD claims :c",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":s": {"S": "ACTIVE"}, ":c": {"SS": ["c"]}},
        )
        dynamodb.delete_item(TableName="Requests", Key={"pk": {"S": "request-2"}, "sk": {"S": "1"}})
        dynamodb.batch_write_item(
            RequestItems={
                "Requests": [
                    {"DeleteRequest": {"Key": {"pk": {"S": "request-3"}, "sk": {"S": "1"}}}},
                    {"PutRequest": {"Item": {"pk": {"S": "request-9"}, "sk": {"S": "1"}}}},
                ]
            }
        )
        dynamodb.transact_write_items(
            TransactItems=[
                {
                    "ConditionCheck": {
                        "TableName": "Requests",
                        "Key": {"pk": {"S": "request-0"}, "sk": {"S": "1"}},
                        "ConditionExpression": "attribute_exists(pk)",
                    }
                },
                {"Delete": {"TableName": "Requests", "Key": {"pk": {"S": "request-4"}, "sk": {"S": "1"}}}},
                {"Put": {"TableName": "Requests", "Item": {"pk": {"S": "request-0"}, "sk": {"S": "2"}, "status": {"S": "ACTIVE"}}}},
            ]
        )
        before = scan(dynamodb)
        assert len(before) == 5
    with running(journal) as server:
        dynamodb = client("dynamodb", server)
        assert scan(dynamodb) == before
        active = dynamodb.query(
            TableName="Requests",
            IndexName="ByStatus",
            KeyConditionExpression="#s = :s",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":s": {"S": "ACTIVE"}},
        )
        assert sorted(item["pk"]["S"] for item in active["Items"]) == ["request-0", "request-1"]
        dynamodb.put_item(TableName="Requests", Item={"pk": {"S": "later"}, "sk": {"S": "1"}})


def test_a_refused_write_is_not_in_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        dynamodb = client("dynamodb", server)
        make_table(dynamodb)
        length = journal.stat().st_size
        with pytest.raises(ClientError, match="ConditionalCheckFailed"):
            dynamodb.put_item(TableName="Requests", Item={"pk": {"S": "a"}, "sk": {"S": "b"}}, ConditionExpression="attribute_exists(pk)")
        dynamodb.scan(TableName="Requests")
        assert journal.stat().st_size == length


def test_a_job_in_flight_finishes_after_the_restart(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    settings = TwinSettings(calls_per_second=0, job_seconds=0.6)
    with running(journal, settings) as server:
        world = build_world(server)
        job = client("sso-admin", server).create_account_assignment(**key(world))["AccountAssignmentCreationStatus"]
        assert job["Status"] == "IN_PROGRESS"
    with running(journal, settings) as server:
        sso = client("sso-admin", server)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status = sso.describe_account_assignment_creation_status(
                InstanceArn=world["instance"], AccountAssignmentCreationRequestId=job["RequestId"]
            )["AccountAssignmentCreationStatus"]
            if status["Status"] != "IN_PROGRESS":
                break
        assert status["Status"] == "SUCCEEDED"
        assert status["CreatedDate"] == job["CreatedDate"]
        assert [one.principal_id for one in server.front.assignments()] == [world["user"]]


def test_a_lost_answer_drops_the_connection_and_keeps_the_effect(tmp_path: Path) -> None:
    with running(tmp_path / "twin.journal") as server:
        world = build_world(server)
        server.front.settings.lose_answer = 1.0
        with pytest.raises(ConnectionClosedError):
            client("sso-admin", server).create_account_assignment(**key(world))
        assert [job.verb for job in server.front.jobs()] == ["CREATE"]


@pytest.mark.parametrize("path", ["/twin/settings", "/twin/provider/sandboxes", "/"])
@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://127.0.0.1:8000"])
def test_what_a_page_in_a_browser_sends_is_not_done(tmp_path: Path, path: str, origin: str) -> None:
    """A browser sends a form anywhere; whom it is from stands in the header that programs don't send."""
    form = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}
    for body in (b'{"throttle": 1}', b"Action=CreateTopic&Name=theirs&Version=2010-03-31"):
        with running(tmp_path / "twin.journal") as server:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(f"{server.url}{path}", body, form))
            assert (refused.value.code, "no pages of browsers" in refused.value.read().decode()) == (403, True)
            refused.value.close()
            assert server.front.settings.throttle == 0


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("none", 200), ("", 200)])
def test_what_a_page_has_a_browser_fetch_is_not_done(tmp_path: Path, site: str, status: int) -> None:
    """An image's address comes without an Origin."""
    given = {"Sec-Fetch-Site": site} if site else {}
    with running(tmp_path / "twin.journal") as server:
        for path in ("/twin/health", "/moto-api/seed?a=1"):
            try:
                with urllib.request.urlopen(urllib.request.Request(f"{server.url}{path}", headers=given)) as answer:
                    found = answer.status
            except urllib.error.HTTPError as refused:
                found = refused.code
                refused.close()
            assert found == status


def test_any_page_may_lead_to_the_one_that_stands_for_the_console(tmp_path: Path) -> None:
    """It is the same for everybody: what it shows is in the part of the address that no server sees."""
    with running(tmp_path / "twin.journal") as server:
        asked = urllib.request.Request(f"{server.url}/twin/start/", headers={"Sec-Fetch-Site": "cross-site"})
        with urllib.request.urlopen(asked) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert "You would be in the AWS console now" in answer.read().decode()


def test_settings_change_over_http_and_bad_ones_are_refused_whole(tmp_path: Path) -> None:
    with running(tmp_path / "twin.journal") as server:
        assert post(f"{server.url}/twin/settings", {"job_seconds": 5, "throttle": 0.25})["job_seconds"] == 5.0
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(f"{server.url}/twin/settings", {"job_seconds": 9, "throttle": 2})
        assert "throttle: must be a number from 0 to 1, not 2" in refused.value.read().decode()
        refused.value.close()
        assert server.front.settings.job_seconds == 5.0
        with urllib.request.urlopen(f"{server.url}/twin/health") as answer:
            assert json.load(answer)["status"] == "ok"


def test_a_torn_last_line_costs_only_itself(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        dynamodb = client("dynamodb", server)
        make_table(dynamodb)
        dynamodb.put_item(TableName="Requests", Item={"pk": {"S": "kept"}, "sk": {"S": "1"}})
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole.splitlines()[-1][:40])
    with running(journal) as server:
        dynamodb = client("dynamodb", server)
        assert [item["pk"]["S"] for item in scan(dynamodb)] == ["kept"]
        dynamodb.put_item(TableName="Requests", Item={"pk": {"S": "later"}, "sk": {"S": "1"}})
    with running(journal) as server:
        assert [item["pk"]["S"] for item in scan(client("dynamodb", server))] == ["kept", "later"]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "twin.journal"
    path.write_bytes(b'{"kind":"journal","format":1}\nnonsense\n{"kind":"job"}\n')
    journal = Journal(path)
    with pytest.raises(JournalError, match="line 2 is broken"):
        list(journal.entries())
    journal.close()


def test_two_twins_do_not_share_a_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "twin.journal")
    with pytest.raises(JournalError, match="in use by another twin"):
        Journal(tmp_path / "twin.journal")
    journal.close()


def test_a_long_journal_is_shortened_at_start_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "COMPACT_AFTER", 20)
    journal = tmp_path / "twin.journal"
    settings = TwinSettings(calls_per_second=0, job_seconds=0.0)
    with running(journal, settings) as server:
        world = build_world(server)
        client("sso-admin", server).create_account_assignment(**key(world))
        dynamodb = client("dynamodb", server)
        make_table(dynamodb)
        for number in range(30):
            dynamodb.put_item(TableName="Requests", Item={"pk": {"S": "one"}, "sk": {"S": str(number % 3)}, "n": {"N": str(number)}})
        before, items, assignments = facts(server), scan(dynamodb), server.front.assignments()
    long = len(journal.read_bytes().splitlines())
    for _ in range(2):
        with running(journal, settings) as server:
            assert facts(server) == before
            assert scan(client("dynamodb", server)) == items
            assert server.front.assignments() == assignments
    assert len(journal.read_bytes().splitlines()) < long - 20


def test_a_killed_process_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    for number in range(2):
        process, url = start_process(journal)
        dynamodb = boto3.Session().client("dynamodb", region_name=REGION, endpoint_url=url)
        if number == 0:
            make_table(dynamodb)
            dynamodb.put_item(TableName="Requests", Item={"pk": {"S": "kept"}, "sk": {"S": "1"}})
            process.kill()
        else:
            assert [item["pk"]["S"] for item in scan(dynamodb)] == ["kept"]
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == (-signal.SIGKILL if number == 0 else 0)
        assert process.stderr is not None
        process.stderr.close()


def start_process(journal: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "accessportal.twin", "--port", "0", "--journal", str(journal)],
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "answers at" in line:
            return process, line.split()[-1]
    raise AssertionError("the twin did not start")


def post(url: str, values: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, data=json.dumps(values).encode(), headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        changed: dict[str, Any] = json.load(answer)
    return changed


def test_a_plain_question_at_the_root_is_answered_and_leaves_no_trace(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        length = journal.stat().st_size
        with urllib.request.urlopen(f"{server.url}/") as answer:
            assert json.load(answer)["status"] == "ok"
        assert journal.stat().st_size == length


def test_a_thousand_journalled_calls_are_back_within_ten_seconds(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal) as server:
        dynamodb, organizations = client("dynamodb", server), client("organizations", server)
        make_table(dynamodb)
        organizations.create_organization(FeatureSet="ALL")
        for number in range(100):
            organizations.create_account(AccountName=f"account-{number}", Email=f"account-{number}@example.com")
        for number in range(900):
            dynamodb.put_item(TableName="Requests", Item={"pk": {"S": f"request-{number}"}, "sk": {"S": "1"}, "reason": {"S": "x" * 200}})
    began = time.process_time()
    with running(journal) as server:
        # Of this process alone: what else the machine does is not the twin's.
        seconds = time.process_time() - began
        assert client("dynamodb", server).scan(TableName="Requests", Select="COUNT")["Count"] == 900
    assert seconds < 10
