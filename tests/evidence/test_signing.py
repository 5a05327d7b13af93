"""Digests that KMS signs, in moto's KMS, checked by cryptography alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from accessportal.aws.clients import forget_clients
from accessportal.conf import Conf
from accessportal.evidence.config import KmsKey, signer_of
from accessportal.kernel.errors import NoAnswer, Unavailable
from tests.evidence.conftest import DAY, OTHER, SIGNER, TODAY, Office
from tests.evidence.test_verifying import alone
from tests.fixtures_twin import REGION, Answer, refuse, when

ALIAS = "alias/evidence"


@pytest.fixture
def kms(tables: None) -> Iterator[Any]:
    forget_clients()
    client = boto3.client("kms", region_name=REGION)
    client.create_alias(AliasName=ALIAS, TargetKeyId=make_key(client))
    yield client
    forget_clients()


def make_key(client: Any, spec: str = "ECC_NIST_P256", usage: str = "SIGN_VERIFY") -> str:
    return str(client.create_key(KeySpec=spec, KeyUsage=usage)["KeyMetadata"]["KeyId"])


@pytest.fixture
def signed(kms: Any, office: Office) -> Office:
    """An office whose digests KMS signs."""
    office.signer = KmsKey(ALIAS)
    return office


def test_the_verifier_alone_checks_what_kms_signed(signed: Office, tmp_path: Any) -> None:
    signed.work(2)
    signed.export()
    (tmp_path / "alone").mkdir()
    (tmp_path / "public.pem").write_text(signed.signer.public_key)

    told = alone(tmp_path / "alone", str(signed.folder), "--public-key", str(tmp_path / "public.pem"))

    assert (told.returncode, told.stdout.splitlines()[-1], told.stderr) == (0, "Nothing is wrong.", "")
    (tmp_path / "public.pem").write_text(OTHER.public_key)
    forged = alone(tmp_path / "alone", str(signed.folder), "--public-key", str(tmp_path / "public.pem"))
    assert forged.returncode == 1
    assert f"BREAK digests/{TODAY}.json: it is signed by the key {signed.signer.key_id}" in forged.stdout


def test_a_signature_is_of_one_digest_and_of_one_kind_of_key(signed: Office) -> None:
    signed.work(1)
    signed.export()
    name = f"digests/{TODAY}.json"
    digest = signed.folder / name
    digest.write_text(digest.read_text().replace(signed.signer.key_id, SIGNER.key_id))

    keys = [one.public_key.encode() for one in (signed.signer, SIGNER)]
    assert [str(one) for one in signed.verify(public_keys=keys).breaks] == [f"{name}: the signature is not of this digest"]


@pytest.mark.parametrize("call", ["GetPublicKey", "Sign"])
@pytest.mark.parametrize("answer", [refuse("KMSInternalException", status=500), refuse("AccessDeniedException", status=400)])
def test_while_kms_is_away_no_digest_is_written_and_the_day_is_made_up(signed: Office, call: str, answer: Answer) -> None:
    signed.work(2)
    with when(call, answer):
        report = signed.export()
    assert (report.days, report.days_left) == (0, 2)
    assert report.stopped.startswith(f"{TODAY}: KMS did not sign with {ALIAS}")
    assert sorted(signed.bytes_by_name()) == [f"events/{TODAY}.jsonl.gz"]

    signed.write("request#1", at=signed.clock.now() - DAY)
    assert (signed.export().days, signed.breaks()) == (2, [])


def test_what_is_no_signature_by_the_key_is_never_written(signed: Office) -> None:
    signed.work(1)
    with when("Sign", lambda _: {"Signature": b"garbled"}):
        assert "no signature by alias/evidence" in signed.export().stopped
    assert not (signed.folder / "digests").exists()


def test_an_alias_that_is_turned_to_another_key_counts_at_the_next_start(signed: Office, kms: Any) -> None:
    signed.work(1)
    signed.export()
    first = signed.signer
    kms.update_alias(AliasName=ALIAS, TargetKeyId=make_key(kms))
    signed.work(1)
    signed.export()
    signed.signer = KmsKey(ALIAS)
    signed.work(1)
    signed.export()

    assert first.key_id != signed.signer.key_id
    assert signed.verify(public_keys=[first.public_key.encode(), signed.signer.public_key.encode()]).breaks == []


@pytest.mark.parametrize(
    ("spec", "usage"), [("RSA_2048", "SIGN_VERIFY"), ("ECC_NIST_P384", "SIGN_VERIFY"), ("ECC_NIST_P256", "KEY_AGREEMENT")]
)
def test_a_key_of_another_kind_is_refused(kms: Any, spec: str, usage: str) -> None:
    answer = {"KeyId": "key", "KeySpec": spec, "KeyUsage": usage, "PublicKey": b""}
    with when("GetPublicKey", lambda _: answer), pytest.raises(Unavailable, match=f"is a key {spec} to {usage}"):
        _ = KmsKey(ALIAS).key_id


def test_no_answer_is_told_apart_from_a_no(kms: Any) -> None:
    with when("GetPublicKey", refuse("KMSInternalException", status=500)), pytest.raises(NoAnswer):
        _ = KmsKey(ALIAS).public_key
    with pytest.raises(Unavailable, match="NotFoundException"):
        _ = KmsKey("alias/nobody").public_key


def test_the_setting_chooses_the_signer(kms: Any) -> None:
    conf = Conf(evidence_dir="/tmp/x", evidence_kms_signing_key=ALIAS)
    signer = signer_of(conf.evidence_key.get_secret_value(), kms_key=conf.evidence_kms_signing_key)
    assert signer is not None
    assert load_pem_public_key(signer.public_key.encode())
    assert signer_of("", kms_key="") is None
