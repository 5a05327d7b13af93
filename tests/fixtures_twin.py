"""A small AWS inside the test's process: the twin over moto, with a tiny fixed world, on the test's own clock."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.signers import RequestSigner
from joserfc.jwk import RSAKey
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.models import botocore_stubber
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.moto_api._internal import mock_random

from accessportal.aws import clients, cognito
from accessportal.kernel.clock import Clock, SystemClock
from accessportal.mirror import operations as mirror
from accessportal.store.base import StoreSettings, configure, registered_models
from accessportal.store.cursors import configure_cursors
from accessportal.twin.identity_center import AssignmentKey, IdentityCenterTwin
from accessportal.twin.inprocess import twin_in_process
from accessportal.twin.settings import TwinSettings
from tests.moto_snapshots import Snapshot
from tests.quick_moto import quicken_moto

if TYPE_CHECKING:
    from mypy_boto3_identitystore import IdentityStoreClient
    from mypy_boto3_organizations import OrganizationsClient
    from mypy_boto3_organizations.type_defs import TagTypeDef
    from mypy_boto3_sso_admin import SSOAdminClient

    from tests.conftest import FakeClock

REGION = "eu-central-1"
MANAGEMENT_ACCOUNT = "123456789012"
ROOMS = ("authz", "directory", "rules", "assignments", "access_requests", "sandboxes", "leases", "tokens", "audit", "history")
ACCOUNTS = {
    "payments-dev": ("/Workloads/Dev", {"env": "dev", "team": "payments"}),
    "payments-prod": ("/Workloads/Prod/Payments", {"env": "prod", "team": "payments"}),
    "security-audit": ("/Security", {"env": "prod", "team": "security"}),
}
PERMISSION_SETS = {"AdministratorAccess": "PT1H", "PowerUserAccess": "PT4H", "ReadOnlyAccess": "PT8H"}
PEOPLE = {
    "alice@example.com": "Alice Archer",
    "bob@example.com": "Bob Baker",
    "mallory@example.com": "Mallory Moss",
    "olga@example.com": "Olga Olsen",
    "ana@example.com": "Ana Alves",
}
GROUPS = {"/engineering/payments": ("alice@example.com",)}


@dataclass(frozen=True, slots=True)
class Twin:
    """The world by name (``accounts["payments-dev"]`` is an id) and plain clients on it.

    ``settings`` may be changed in the middle of a test. The limit of calls a second is off (``calls_per_second`` 0), because a
    clock that stands still would never open the window again; a test about throttling turns it on.
    """

    front: IdentityCenterTwin
    clock: FakeClock
    sso: SSOAdminClient
    organizations: OrganizationsClient
    identity_store: IdentityStoreClient
    instance_arn: str
    identity_store_id: str
    accounts: dict[str, str]
    permission_sets: dict[str, str]
    users: dict[str, str]
    groups: dict[str, str]
    organizational_units: dict[str, str]

    @property
    def settings(self) -> TwinSettings:
        return self.front.settings

    def assignments(self) -> set[tuple[str, str, str, str]]:
        """What is true in Identity Center now, without a call: (principal type, principal id, account id, permission set ARN)."""
        return {(key.principal_type, key.principal_id, key.account_id, key.permission_set_arn) for key in self.front.assignments()}

    def key(self, email: str, account: str, permission_set: str) -> dict[str, Any]:
        """The parameters of Create- and DeleteAccountAssignment for a person, an account and a permission set, all by name."""
        return {
            "InstanceArn": self.instance_arn,
            "TargetId": self.accounts.get(account, account),
            "TargetType": "AWS_ACCOUNT",
            "PermissionSetArn": self.permission_sets.get(permission_set, permission_set),
            "PrincipalType": "USER",
            "PrincipalId": self.users.get(email, email),
        }

    def assignment(self, email: str, account: str, permission_set: str) -> AssignmentKey:
        return AssignmentKey(self.accounts[account], self.permission_sets[permission_set], "USER", self.users[email])


@pytest.fixture
def twin(clock: FakeClock) -> Iterator[Twin]:
    """An organization, accounts, permission sets, people and a group; no assignment."""
    with plain_twin(clock) as front:
        _forget_patient_clients()
        world = _small_world(front, clock)
        # A test may add to the names.
        names = {field.name: dict(getattr(world, field.name)) for field in dataclasses.fields(Twin) if field.type == "dict[str, str]"}
        yield dataclasses.replace(world, front=front, clock=clock, **names)  # type: ignore[arg-type]


@contextmanager
def plain_twin(clock: Clock | None = None) -> Iterator[IdentityCenterTwin]:
    """An empty AWS."""
    quicken_moto()
    # Nobody looks at a signature here, and making one costs a tenth of a call.
    unsigned = mock.patch.object(RequestSigner, "sign", _leave_unsigned)
    with unsigned, twin_in_process(clock=clock or SystemClock(), settings=TwinSettings(calls_per_second=0)) as front:
        yield front


def _leave_unsigned(*_args: Any, **_options: Any) -> None:
    pass


def _forget_patient_clients() -> None:
    """Those slow down by what they were answered before. The others remember nothing, and making one costs up to 80 ms."""
    with clients._lock:
        for key in [key for key in clients._clients if key.endswith(f":{id(clients._PATIENT)}")]:
            del clients._clients[key]


_snapshots: dict[str, Snapshot] = {}
_worlds: list[Twin] = []
_no_items: dict[str, Table] = {}


def _small_world(front: IdentityCenterTwin, clock: FakeClock) -> Twin:
    """Built once in this process, and put back after that."""
    if _worlds:
        _snapshots["world"].put_back()
    else:
        _worlds.append(small_world(front, clock))
        _snapshots["world"] = Snapshot.take()
    mock_random.seed(2027)
    return _worlds[0]


@pytest.fixture
def tables(twin: Twin) -> None:
    """Every table of every room, empty."""
    for room in ROOMS:
        name = f"accessportal.{room}.models"
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    configure(StoreSettings(table_prefix="", region=REGION))
    configure_cursors("a-secret-for-tests-alone")
    tables = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables
    if not _no_items:
        for model in registered_models():
            model.create_table(billing_mode="PAY_PER_REQUEST")
        _no_items.update(copy.deepcopy(tables))
    tables.update(copy.deepcopy(_no_items))


@pytest.fixture
def user_pool(tables: None) -> Iterator[str]:
    """A user pool that follows the directory, empty: its id."""
    # The same id in every test, for what is built once and kept.
    mock_random.seed(2029)
    # Reading the key that moto has for all of them takes longer than all the rest.
    with mock.patch.object(RSAKey, "import_key", _key_of_pools):
        pool_id = cognito.create_user_pool("people")
    mirror.configure(mirror.MirrorSettings(user_pool_id=pool_id))
    yield pool_id
    mirror.configure(mirror.MirrorSettings())


_import_key = RSAKey.import_key
_keys: list[RSAKey] = []


def _key_of_pools(written: Any) -> RSAKey:
    if not _keys:
        _keys.append(_import_key(written))
    return _keys[0]


Answer = Callable[[dict[str, Any]], Any]


def when(operation: str, answer: Answer) -> Any:
    """A patch: ``answer`` sees the parameters of every call of ``operation``, and what it returns or raises is the answer, unless
    ``None``."""

    below = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: BaseClient, name: str, parameters: dict[str, Any]) -> Any:
        given = answer(parameters) if name == operation else None
        return below(client, name, parameters) if given is None else given

    return mock.patch.object(BaseClient, "_make_api_call", call)


def refuse(code: str, *, status: int = 400) -> Answer:
    def answer(parameters: dict[str, Any]) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Any")  # type: ignore[typeddict-item]

    return answer


class LostAnswers:
    """Calls that take effect and whose client gets no answer; it sends them again by itself, without waiting."""

    def __init__(self) -> None:
        self._operation = ""
        self.left = 0

    def of(self, operation: str, *, times: int = 1) -> None:
        """Lose the next so many answers to ``operation``."""
        self._operation, self.left = operation, times

    def passed(self, request: Any, answer: Any) -> Any:
        target = request.headers.get("X-Amz-Target", b"")
        operation = (target if isinstance(target, str) else target.decode()).rpartition(".")[2]
        if self.left and operation == self._operation:
            self.left -= 1
            raise ConnectionClosedError(endpoint_url=request.url)
        return answer


@pytest.fixture
def lost_answers(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> LostAnswers:
    losing, answer = LostAnswers(), botocore_stubber.process_request
    monkeypatch.setattr(botocore_stubber, "process_request", lambda request: losing.passed(request, answer(request)))
    send_again_at_once(monkeypatch)
    return losing


def send_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let botocore send again without waiting, and as often as a call may: a client's quota for that is kept between tests."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _seconds: None))
    monkeypatch.setattr("botocore.retries.quota.RetryQuota.acquire", lambda _quota, _amount: True)


@functools.cache
def _client(service: str) -> Any:
    # Kept between tests: a client holds no state of the twin, and making one costs up to 80 ms.
    config = Config(region_name=REGION, retries={"total_max_attempts": 1, "mode": "standard"})
    return _session().client(service, config=config)  # type: ignore[call-overload]


@functools.cache
def _session() -> boto3.session.Session:
    return boto3.session.Session()


def small_world(front: IdentityCenterTwin, clock: FakeClock) -> Twin:
    # The same ids in every test, so that what was built on them once can be kept (tests/fixtures_story.py).
    mock_random.seed(2026)
    organizations, sso, identity_store = _client("organizations"), _client("sso-admin"), _client("identitystore")
    organizations.create_organization(FeatureSet="ALL")
    root = organizations.list_roots()["Roots"][0]["Id"]
    units = {"/": root}
    accounts = {"management": MANAGEMENT_ACCOUNT}
    for name, (path, tags) in ACCOUNTS.items():
        accounts[name] = create_account(organizations, units, name, path, tags)
    instance = sso.list_instances()["Instances"][0]
    sets = {}
    for name, session in PERMISSION_SETS.items():
        made = sso.create_permission_set(
            InstanceArn=instance["InstanceArn"], Name=name, Description=f"{name} for tests", SessionDuration=session
        )
        sets[name] = made["PermissionSet"]["PermissionSetArn"]
    store = instance["IdentityStoreId"]
    users = {email: create_user(identity_store, store, email, name) for email, name in PEOPLE.items()}
    groups = {}
    for path, members in GROUPS.items():
        groups[path] = identity_store.create_group(IdentityStoreId=store, DisplayName=path, Description=f"Group {path}")["GroupId"]
        for email in members:
            identity_store.create_group_membership(IdentityStoreId=store, GroupId=groups[path], MemberId={"UserId": users[email]})
    return Twin(front, clock, sso, organizations, identity_store, instance["InstanceArn"], store, accounts, sets, users, groups, units)


def create_account(organizations: OrganizationsClient, units: dict[str, str], name: str, path: str, tags: dict[str, str]) -> str:
    """Its id. Organizational units on the way that are not in ``units`` yet are made and added."""
    pairs: list[TagTypeDef] = [{"Key": key, "Value": value} for key, value in tags.items()]
    made = organizations.create_account(AccountName=name, Email=f"{name}@example.com", Tags=pairs)
    account_id = made["CreateAccountStatus"]["AccountId"]
    organizations.move_account(AccountId=account_id, SourceParentId=units["/"], DestinationParentId=_unit(organizations, units, path))
    return account_id


def _unit(organizations: OrganizationsClient, units: dict[str, str], path: str) -> str:
    if path not in units:
        parent, _, name = path.rpartition("/")
        parent_id = _unit(organizations, units, parent or "/")
        units[path] = organizations.create_organizational_unit(ParentId=parent_id, Name=name)["OrganizationalUnit"]["Id"]
    return units[path]


def create_user(identity_store: IdentityStoreClient, store: str, email: str, name: str) -> str:
    given, _, family = name.partition(" ")
    return identity_store.create_user(
        IdentityStoreId=store,
        UserName=email,
        DisplayName=name,
        Name={"GivenName": given, "FamilyName": family},
        Emails=[{"Value": email, "Type": "work", "Primary": True}],
    )["UserId"]
