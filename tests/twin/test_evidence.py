"""Evidence in the twin's bucket, signed by its KMS, over HTTP: what is sent arrives, and is there after a restart."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from accessportal.aws.clients import forget_clients
from accessportal.evidence.config import KmsKey
from accessportal.evidence.queries import EvidenceFiles, on_this_machine
from accessportal.evidence.storages import WriteOnceBucket
from accessportal.twin import world
from accessportal.twin.server import TwinServer
from tests.evidence.conftest import TODAY
from tests.twin.test_server import REGION, client, running

ALIAS = "alias/evidence"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name, value in {"AWS_ACCESS_KEY_ID": "twin", "AWS_SECRET_ACCESS_KEY": "twin", "AWS_DEFAULT_REGION": REGION}.items():
        monkeypatch.setenv(name, value)
    yield monkeypatch
    forget_clients()


def reach(server: TwinServer, machine: pytest.MonkeyPatch) -> EvidenceFiles:
    machine.setenv("AWS_ENDPOINT_URL", server.url)
    forget_clients()
    world.seed_evidence(bucket="evidence", key_alias=ALIAS)
    return EvidenceFiles(WriteOnceBucket(bucket_name="evidence", lock_days=30))


def test_evidence_is_there_after_a_restart_and_locked(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    content, digest = os.urandom(3_000_000), {"day": str(TODAY)}
    with running(tmp_path / "journal") as server:
        files, signer = reach(server, machine), KmsKey(ALIAS)
        assert files.put("events/x.jsonl.gz", io.BytesIO(content))
        assert files.put_digest(TODAY, digest)
        assert not files.put_digest(TODAY, {"day": "another"})
        assert signer.sign(b"digest")
        key_id = signer.key_id
    with running(tmp_path / "journal") as server:
        files = reach(server, machine)
        assert (files.days(), files.digest(TODAY)[0], files.lock_flaw()) == ([TODAY], digest, "")
        with on_this_machine("s3://evidence") as (folder, written_over):
            assert (folder / "events/x.jsonl.gz").read_bytes() == content
        assert written_over == []
        assert KmsKey(ALIAS).key_id == key_id
        s3 = client("s3", server)
        (first, _) = s3.list_object_versions(Bucket="evidence")["Versions"]
        with pytest.raises(ClientError, match="AccessDenied"):
            s3.delete_object(Bucket="evidence", Key=first["Key"], VersionId=first["VersionId"])
