"""The bucket: what is written once stays, the first version counts, and what S3 answers is told apart."""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.signers import RequestSigner

from accessportal.audit.models import AuditItem
from accessportal.evidence.operations import export
from accessportal.evidence.queries import EvidenceFiles, on_this_machine
from accessportal.evidence.storages import WriteOnceBucket
from accessportal.kernel.actors import system
from accessportal.kernel.errors import InvalidRequest, NoAnswer, Unavailable
from tests.conftest import START
from tests.crashing import Killed
from tests.evidence.conftest import DAY, SIGNER, TODAY, Office
from tests.fixtures_twin import REGION, refuse, when

_SIGN = RequestSigner.sign
BUCKET = "evidence-of-tests"
FILE, DIGEST = f"events/{TODAY}.jsonl.gz", f"digests/{TODAY}.json"


@pytest.fixture
def s3(office: Office) -> Iterator[Any]:
    # Moto's S3 refuses what is not signed. Undone before the world of the tests is, which has put its own in this place.
    with mock.patch.object(RequestSigner, "sign", _SIGN):
        client = boto3.client("s3", region_name=REGION)
        client.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield client


@dataclass
class FarOffice(Office):
    """One whose evidence lies in the bucket."""

    prefix: str = ""

    @property
    def files(self) -> EvidenceFiles:
        return files(location=self.prefix)

    @contextmanager
    def copied(self) -> Iterator[Office]:
        with tempfile.TemporaryDirectory() as folder:
            self.files.copy_to(Path(folder))
            yield Office(self.clock, Path(folder), self.signer)

    def breaks(self) -> list[str]:
        with self.copied() as near:
            return near.breaks() + self.files.written_over()

    def bytes_by_name(self) -> dict[str, bytes]:
        with self.copied() as near:
            return near.bytes_by_name()


@pytest.fixture
def far(office: Office, s3: Any) -> FarOffice:
    return FarOffice(office.clock, office.folder)


def files(**options: Any) -> EvidenceFiles:
    if "object_parameters" in options:
        return EvidenceFiles(WriteOnceBucket(bucket_name=BUCKET, region_name=REGION, **options))
    return _kept_files(**options)


@functools.cache
def _kept_files(**options: Any) -> EvidenceFiles:
    # Making its client takes longer than what is done with it.
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


def test_what_is_locked_can_neither_be_changed_nor_deleted_nor_unlocked_before_its_time(office: Office, s3: Any) -> None:
    files(lock_days=30).put("events/x", io.BytesIO(b"first"))

    kept = s3.head_object(Bucket=BUCKET, Key="events/x")
    assert kept["ObjectLockMode"] == "COMPLIANCE"
    assert timedelta(days=29) < kept["ObjectLockRetainUntilDate"] - START <= timedelta(days=30)
    name = {"Bucket": BUCKET, "Key": "events/x"}
    first = name | {"VersionId": kept["VersionId"]}
    soon = {"Mode": "COMPLIANCE", "RetainUntilDate": START + timedelta(days=1)}
    refused: list[Callable[[], object]] = [
        lambda: s3.delete_object(**first, BypassGovernanceRetention=True),
        lambda: s3.put_object_retention(**first, Retention=soon, BypassGovernanceRetention=True),
        lambda: s3.put_object_retention(**first, Retention=soon | {"Mode": "GOVERNANCE"}),
        lambda: s3.put_object(**name, Body=b"second", IfNoneMatch="*"),
    ]
    office.clock.advance(1)
    for deed in refused:
        with pytest.raises(ClientError, match=r"AccessDenied|PreconditionFailed"):
            deed()
    s3.put_object(**name, Body=b"second")
    s3.delete_object(**name)
    assert s3.get_object(**first)["Body"].read() == b"first"
    with files().opened("events/x") as content:
        assert content.read() == b"first"
    s3.put_object_retention(**first, Retention={"Mode": "COMPLIANCE", "RetainUntilDate": START + timedelta(days=60)})


def test_the_lock_is_looked_at(office: Office, s3: Any) -> None:
    assert files(lock_days=30).lock_flaw() == ""
    assert "PORTAL_EVIDENCE_LOCK_DAYS is 0" in files().lock_flaw()
    for mode, words in (("GOVERNANCE", "keeps nothing in compliance mode"), ("COMPLIANCE", "")):
        kept = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": mode, "Days": 30}}}
        s3.put_object_lock_configuration(Bucket=BUCKET, ObjectLockConfiguration=kept)
        assert words in files().lock_flaw()
        assert bool(words) == bool(files().lock_flaw())
    s3.create_bucket(Bucket="unlocked", CreateBucketConfiguration={"LocationConstraint": REGION})
    unlocked = EvidenceFiles(WriteOnceBucket(bucket_name="unlocked", region_name=REGION, lock_days=30))
    assert "no object lock" in unlocked.lock_flaw()
    with when("GetObjectLockConfiguration", refuse("AccessDenied", status=403)):
        assert "is not known (AccessDenied" in files(lock_days=30).lock_flaw()
    assert "has no lock" in office.files.lock_flaw()
    assert "has no lock" in office.export().unlocked


def test_a_bucket_without_versions_will_do(office: Office, s3: Any) -> None:
    s3.create_bucket(Bucket="unlocked", CreateBucketConfiguration={"LocationConstraint": REGION})
    unlocked = EvidenceFiles(WriteOnceBucket(bucket_name="unlocked", region_name=REGION))
    office.work(2)
    assert export(files=unlocked, signer=SIGNER, actor=system("test"), clock=office.clock).days == 2
    with on_this_machine("s3://unlocked") as (folder, written_over):
        assert Office(office.clock, folder).breaks() == written_over == []


def test_who_writes_over_evidence_and_marks_it_as_deleted_gets_no_other_day_signed(far: FarOffice, s3: Any) -> None:
    """With the tables forged, too: the portal would write and sign the forged day, if it believed that there is none yet."""
    far.work(2)
    far.export()
    before = far.bytes_by_name()
    far.clock.advance(1)
    for name in before:
        s3.put_object(Bucket=BUCKET, Key=name, Body=b"forged")
        s3.delete_object(Bucket=BUCKET, Key=name)
    for item in AuditItem.scan():
        item.delete()
    far.work(1)

    assert far.export().days == 1
    assert before.items() <= far.bytes_by_name().items()
    assert far.breaks() == sorted(before)


def test_a_prefix_is_all_that_is_looked_at(far: FarOffice, s3: Any) -> None:
    far.prefix = "of/the/portal"
    far.work(1)
    far.export()
    s3.put_object(Bucket=BUCKET, Key="of/the/portal-2/events/x", Body=b"")
    for odd in ("x/y.jsonl.gz", "..", "é.jsonl.gz", "x" * 300 + ".jsonl.gz"):
        s3.put_object(Bucket=BUCKET, Key=f"of/the/portal/events/{odd}", Body=b"odd")
        s3.put_object(Bucket=BUCKET, Key=f"of/the/portal/digests/{odd}", Body=b"odd")

    assert sorted(far.bytes_by_name()) == [DIGEST, FILE]
    assert far.breaks() == []


def test_an_address_without_a_bucket_is_refused(office: Office) -> None:
    with pytest.raises(InvalidRequest, match="s3://bucket/prefix"), on_this_machine("s3:///x"):
        pass


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("PutObject", lambda: files().put("events/x", io.BytesIO(b""))),
        ("ListObjectVersions", lambda: files().days()),
        ("GetObject", lambda: files().digest(TODAY)),
        ("GetObject", lambda: files().copy_to(Path("/nowhere"))),
    ],
)
@pytest.mark.parametrize(("code", "status"), [("AccessDenied", 403), ("SlowDown", 503), ("NoSuchBucket", 404)])
def test_a_bucket_that_does_not_answer_is_no_empty_one(
    office: Office, s3: Any, operation: str, call: Callable[[], object], code: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files().put(DIGEST, io.BytesIO(b"{}"))
    monkeypatch.setattr(Path, "mkdir", lambda *_args, **_options: None)
    with when(operation, refuse(code, status=status)), pytest.raises(Unavailable):
        call()


def test_the_bucket_is_away_for_three_days_and_they_are_made_up(far: FarOffice) -> None:
    far.work(1)
    far.export()
    for _ in range(3):
        far.work(1)
        with when("PutObject", refuse("SlowDown", status=503)):
            report = far.export()
        assert "did not answer" in report.stopped
        assert (report.days, report.newest) == (0, TODAY)
        with when("ListObjectVersions", refuse("SlowDown", status=503)), pytest.raises(NoAnswer):
            far.export()

    assert far.export().days == 3
    assert far.breaks() == []


@contextmanager
def at_put(number: int, deed: Callable[[Callable[[], object]], object]) -> Iterator[None]:
    """``deed`` does what it likes with the so many-th file that is written."""
    call, puts = BaseClient._make_api_call, iter(range(100))  # type: ignore[attr-defined]

    def made(client: BaseClient, name: str, parameters: dict[str, Any]) -> Any:
        if name == "PutObject" and next(puts) == number:
            return deed(lambda: call(client, name, parameters))
        return call(client, name, parameters)

    with mock.patch.object(BaseClient, "_make_api_call", made):
        yield


def dies_before(_put: Callable[[], object]) -> None:
    raise Killed


def dies_after(put: Callable[[], object]) -> None:
    put()
    raise Killed


@pytest.mark.parametrize("dies", [dies_before, dies_after])
@pytest.mark.parametrize("fatal", range(4))
def test_killed_at_every_file_and_twice_at_once_there_is_one_set(far: FarOffice, fatal: int, dies: Any, tmp_path: Path) -> None:
    """Two days are four files; each is killed, and then overtaken by another run. Whoever comes next writes what a run that nobody killed
    writes."""
    far.work(2)
    undisturbed = Office(far.clock, tmp_path / "undisturbed")
    undisturbed.export()
    with at_put(fatal, dies), pytest.raises(Killed):
        far.export()

    def overtaken(put: Callable[[], object]) -> object:
        far.export()
        return put()

    with at_put(0, overtaken):
        far.export()

    assert far.bytes_by_name() == undisturbed.bytes_by_name()
    assert far.breaks() == []
