"""The real thing: ``runportal`` with its twin, worker and web server, in a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import boto3

from accessportal.demo.env import free_port

_ROOT = Path(__file__).resolve().parent.parent.parent
_PARTS = ("manage.py", "gunicorn.conf.py", "accessportal", "templates", "static")
_START_SECONDS = 300
_STOP_SECONDS = 90


@dataclass(frozen=True, slots=True)
class RunningPortal:
    """``url`` has no slash at its end; ``password`` is that of every demo person."""

    url: str
    password: str
    home: Path

    def aws(self, service: str) -> Any:
        """A plain client of AWS, set up by nothing but what the portal tells other programs in ``.portal/env``."""
        lines = (self.home / ".portal" / "env").read_text().splitlines()
        told = {name: "".join(shlex.split(value)) for name, _, value in (line.partition("=") for line in lines)}
        session = boto3.session.Session(
            aws_access_key_id=told["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=told["AWS_SECRET_ACCESS_KEY"],
            region_name=told["AWS_REGION"],
        )
        return session.client(service, endpoint_url=told["AWS_ENDPOINT_URL"])  # type: ignore[call-overload]

    def permission_sets_held(self, email: str, account: str) -> set[str]:
        """The names of the permission sets that Identity Center itself says are assigned to the person in the account."""
        sso, organizations, people = self.aws("sso-admin"), self.aws("organizations"), self.aws("identitystore")
        with contextlib.ExitStack() as stack:
            for client in (sso, organizations, people):
                stack.callback(client.close)
            instance = sso.list_instances()["Instances"][0]
            accounts = organizations.get_paginator("list_accounts").paginate().search("Accounts[]")
            account_id = next(one["Id"] for one in accounts if one["Name"] == account)
            same_name = {"AttributePath": "UserName", "AttributeValue": email}
            found = people.list_users(IdentityStoreId=instance["IdentityStoreId"], Filters=[same_name])["Users"]
            arguments = {"InstanceArn": instance["InstanceArn"], "PrincipalId": found[0]["UserId"], "PrincipalType": "USER"}
            pages = sso.get_paginator("list_account_assignments_for_principal").paginate(**arguments)
            held = [one for one in pages.search("AccountAssignments[]") if one["AccountId"] == account_id]
            return {self._name_of(sso, instance["InstanceArn"], one["PermissionSetArn"]) for one in held}

    def cognito_groups_of(self, email: str) -> set[str]:
        """The groups that Cognito itself says the person is in."""
        with contextlib.closing(self.aws("cognito-idp")) as cognito:
            (pool,) = cognito.list_user_pools(MaxResults=10)["UserPools"]
            pages = cognito.get_paginator("admin_list_groups_for_user").paginate(UserPoolId=pool["Id"], Username=email)
            return set(pages.search("Groups[].GroupName"))

    def role_in_table(self, email: str, group_id: str) -> str | None:
        """The role of the membership's item, read with the seed's own key; ``None`` when there is none."""
        with contextlib.closing(self.aws("dynamodb")) as dynamodb:
            key = {"pk": {"S": f"U:{email}"}, "sk": {"S": f"G:{group_id}"}}
            item = dynamodb.get_item(TableName="AccessManagement", Key=key, ConsistentRead=True).get("Item")
            return str(item["role"]["S"]) if item else None

    @staticmethod
    def _name_of(sso: Any, instance_arn: str, permission_set_arn: str) -> str:
        described = sso.describe_permission_set(InstanceArn=instance_arn, PermissionSetArn=permission_set_arn)
        return str(described["PermissionSet"]["Name"])

    def command(self, *words: str) -> Any:
        """What a management command says with ``--json`` in a second terminal."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words, "--json"], cwd=self.home, env=environment(), capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)


@contextlib.contextmanager
def portal_in(home: Path, *, past: Path | None = None) -> Iterator[RunningPortal]:
    """Copies the program to ``home`` and runs it there, so that its state, its ports and its twin are nobody else's. With ``past``, the
    ``.portal`` of one that ran before, it goes on from there.

    Ends as ctrl-C does. What still runs after that is a fault of ``runportal`` and fails the test.
    """
    for name in _PARTS:
        source = _ROOT / name
        if source.is_dir():
            # With what is compiled already, but for what another process compiles at this moment.
            shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("*.pyc.*"))
        else:
            shutil.copy2(source, home / name)
    if past is not None:
        shutil.copytree(past, home / ".portal")
    command = [sys.executable, "manage.py", "runportal", "--json", "--port", str(free_port())]
    with (home / "said").open("w+") as said:
        process = subprocess.Popen(command, cwd=home, env=environment(), stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            told = _read_welcome(process, said)
            yield RunningPortal(url=told["url"].rstrip("/").replace("localhost", "127.0.0.1"), password=told["password"], home=home)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                _kill_all(home, process)
                raise


def environment() -> dict[str, str]:
    """This process's, without what the tests set for themselves: ``runportal`` finds out everything on its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PORTAL_", "DJANGO_"))}
    return kept | {"PYTHONUNBUFFERED": "1"}


def _read_welcome(process: subprocess.Popen[str], said: IO[str]) -> dict[str, str]:
    """The JSON object that is printed once everything answers. A reader can't time out, so a timer ends what takes too long."""
    assert process.stdout is not None
    with _ended_after(_START_SECONDS, process):
        text = ""
        for line in process.stdout:
            text += line
            if line.rstrip() == "}":
                welcome: dict[str, str] = json.loads(text)
                return welcome
    said.seek(0)
    raise AssertionError(f"runportal did not come up within {_START_SECONDS} s:\n{said.read()[-4000:]}")


@contextlib.contextmanager
def _ended_after(seconds: float, process: subprocess.Popen[str]) -> Iterator[None]:
    timer = threading.Timer(seconds, process.terminate)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _kill_all(home: Path, process: subprocess.Popen[str]) -> None:
    """The supervisor and its parts: the lock file names them all."""
    for number in (home / ".portal" / "lock").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(number), signal.SIGKILL)
    process.communicate()
