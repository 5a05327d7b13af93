"""The instances of IAM Identity Center and their permission sets, read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from accessportal.aws.clients import sso_admin_client
from accessportal.aws.errors import Gone, Refused, sorted_call
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest

if TYPE_CHECKING:
    from mypy_boto3_sso_admin import SSOAdminClient

P = TypeVar("P")
# What IAM Identity Center uses when a permission set does not say.
_DEFAULT_SESSION = "PT1H"
Pace = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Instance:
    instance_arn: str
    identity_store_id: str


@dataclass(frozen=True, slots=True)
class PermissionSetFacts:
    """``session_seconds``: how long a console session lasts, whatever happens to the assignment meanwhile."""

    arn: str
    name: str
    description: str
    session_seconds: int


def read_instances(*, pace: Pace, client: Callable[[], SSOAdminClient] = sso_admin_client) -> list[Instance]:
    """Read every instance that these credentials see. ``pace`` returns when it is our turn; ``client`` is the patient one of background
    jobs, if not said otherwise."""
    pages = _at_pace(client().get_paginator("list_instances").paginate(), pace=pace)
    return [Instance(one["InstanceArn"], one["IdentityStoreId"]) for page in pages for one in page["Instances"]]


def read_permission_sets(instance_arn: str, *, pace: Pace) -> list[PermissionSetFacts]:
    """Read every permission set of the instance. One call each: AWS has no other way."""
    paginator = sso_admin_client().get_paginator("list_permission_sets")
    pages = _at_pace(paginator.paginate(InstanceArn=instance_arn, PaginationConfig={"PageSize": 100}), pace=pace)
    arns = [arn for page in pages for arn in page["PermissionSets"]]
    return [facts for arn in arns if (facts := _describe(instance_arn, arn, pace=pace))]


def _describe(instance_arn: str, arn: str, *, pace: Pace) -> PermissionSetFacts | None:
    pace()
    try:
        answer = sorted_call(sso_admin_client().describe_permission_set, InstanceArn=instance_arn, PermissionSetArn=arn)
    except Gone:
        return None  # deleted since it was listed
    described = answer["PermissionSet"]
    return PermissionSetFacts(
        arn=arn,
        name=described.get("Name", arn),
        description=described.get("Description", ""),
        session_seconds=_seconds(described.get("SessionDuration") or _DEFAULT_SESSION, arn),
    )


def _seconds(duration: str, arn: str) -> int:
    try:
        return parse_duration(duration)
    except InvalidRequest as error:
        raise Refused("SessionDuration", f"{arn} has the session length {duration!r}, which is not understood") from error


def _at_pace(pages: Iterable[P], *, pace: Pace) -> Iterator[P]:
    """The pages of a boto3 paginator: its turn before every call, and its errors sorted."""
    ahead = iter(pages)
    while True:
        pace()
        page = sorted_call(next, ahead, None)
        if page is None:
            return
        yield page
