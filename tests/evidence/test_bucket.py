"""The bucket: what is written once stays, and what S3 answers is told apart."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.signers import RequestSigner

from accessportal.evidence.operations import export
from accessportal.evidence.queries import EvidenceFiles
from accessportal.evidence.storages import WriteOnceBucket
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Unavailable
from tests.conftest import START
from tests.evidence.conftest import DAY, SIGNER, TODAY, Office
from tests.fixtures_twin import REGION, refuse, when

_SIGN = RequestSigner.sign
BUCKET = "evidence-of-tests"


@pytest.fixture
def s3(office: Office) -> Iterator[Any]:
    # Moto's S3 refuses what is not signed. Undone before the world of the tests is, which has put its own in this place.
    with mock.patch.object(RequestSigner, "sign", _SIGN):
        client = boto3.client("s3", region_name=REGION)
        client.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield client


def files(**options: Any) -> EvidenceFiles:
    return EvidenceFiles(WriteOnceBucket(bucket_name=BUCKET, region_name=REGION, **options))


def test_days_are_exported_to_a_bucket_as_to_a_folder(office: Office, s3: Any) -> None:
    office.work(2)
    office.export()
    encrypted = {"object_parameters": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/evidence"}}
    for _ in range(2):
        report = export(files=files(**encrypted), signer=SIGNER, actor=system("test"), clock=office.clock)

    assert (report.days, report.newest) == (0, TODAY + DAY)
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET)["Contents"]]
    in_bucket = {key: s3.get_object(Bucket=BUCKET, Key=key) for key in keys}
    assert {one["ServerSideEncryption"] for one in in_bucket.values()} == {"aws:kms"}
    assert {key: one["Body"].read() for key, one in in_bucket.items()} == office.bytes_by_name()


def test_a_name_is_written_once(office: Office, s3: Any) -> None:
    assert files().put("events/x", io.BytesIO(b"first"))
    assert not files().put("events/x", io.BytesIO(b"second"))
    assert s3.get_object(Bucket=BUCKET, Key="events/x")["Body"].read() == b"first"


def test_with_a_lock_nobody_deletes_a_file_before_its_time(office: Office, s3: Any) -> None:
    files(lock_days=30).put("events/x", io.BytesIO(b"first"))

    kept = s3.head_object(Bucket=BUCKET, Key="events/x")
    assert kept["ObjectLockMode"] == "COMPLIANCE"
    assert timedelta(days=29) < kept["ObjectLockRetainUntilDate"] - START <= timedelta(days=30)
    version = kept["VersionId"]
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.delete_object(Bucket=BUCKET, Key="events/x", VersionId=version, BypassGovernanceRetention=True)


@pytest.mark.parametrize("operation", ["PutObject", "ListObjects", "HeadObject"])
@pytest.mark.parametrize(("code", "status"), [("AccessDenied", 403), ("SlowDown", 503), ("NoSuchBucket", 404)])
def test_a_bucket_that_does_not_answer_is_no_empty_one(office: Office, s3: Any, operation: str, code: str, status: int) -> None:
    files().put("digests/2026-03-02.json", io.BytesIO(b"{}"))

    calls: dict[str, Callable[[], object]] = {
        "PutObject": lambda: files().put("events/x", io.BytesIO(b"")),
        "ListObjects": lambda: files().days(),
        "HeadObject": lambda: files().digest(TODAY),
    }
    with when(operation, refuse(code, status=status)), pytest.raises(Unavailable):
        calls[operation]()
