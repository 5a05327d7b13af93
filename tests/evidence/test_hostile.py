"""Files that somebody made to mislead the verifier or to bring it down: it names the place, holds little, and fails nowhere."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from accessportal.evidence import verify_evidence
from accessportal.evidence.verify_evidence import verify
from tests.evidence.conftest import SIGNER, TODAY, Office
from tests.evidence.test_verifying import alone, sign_anew

FILE, DIGEST = f"events/{TODAY}.jsonl.gz", f"digests/{TODAY}.json"


@pytest.fixture
def day(office: Office) -> Office:
    """One day with three events."""
    office.work(1)
    office.export()
    assert office.breaks() == []
    return office


def line(office: Office, *changes: tuple[bytes, bytes]) -> None:
    """The first line with other bytes in the place of some."""
    path = office.folder / FILE
    first, rest = gzip.decompress(path.read_bytes()).split(b"\n", 1)
    for old, new in changes:
        assert old in first
        first = first.replace(old, new, 1)
    path.write_bytes(gzip.compress(first + b"\n" + rest))


def digest(content: bytes) -> Callable[[Office], object]:
    return lambda office: (office.folder / DIGEST).write_bytes(content)


def told(**changed: object) -> Callable[[Office], object]:
    return lambda office: sign_anew(office, DIGEST, **changed)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def file_of(**changed: object) -> Callable[[Office], object]:
    def change(office: Office) -> None:
        (file,) = json.loads((office.folder / DIGEST).read_bytes())["files"]
        sign_anew(office, DIGEST, files=[file | changed])

    return change


NO_EVENT = f"{FILE}, line 1: it is no event"
NO_DIGEST = f"{DIGEST}: it is no digest of the form 1"
HOSTILE: dict[str, tuple[Callable[[Office], object], str]] = {
    "a name twice": (
        lambda office: line(office, (b'"actor":', b'"actor":"mallory","actor":')),
        f"{NO_EVENT} (ValueError",
    ),
    "no number": (lambda office: line(office, (b'"data":{', b'"data":{"x":NaN,')), f"{NO_EVENT} (ValueError: NaN"),
    "endless": (lambda office: line(office, (b'"data":{', b'"data":{"x":-Infinity,')), NO_EVENT),
    "a sequence that is true": (lambda office: line(office, (b'"sequence":1', b'"sequence":true')), NO_EVENT),
    "a sequence with a dot": (lambda office: line(office, (b'"sequence":1', b'"sequence":1.0')), NO_EVENT),
    "a sequence without an end": (
        lambda office: line(office, (b'"sequence":1', b'"sequence":' + b"9" * 5000)),
        NO_EVENT,
    ),
    "deep": (
        lambda office: line(office, (b'"data":{', b'"data":{"x":' + b"[" * 100_000)),
        f"{NO_EVENT} (RecursionError",
    ),
    "half a character": (
        lambda office: line(office, (b'"entity":"', b'"entity":"\\ud800')),
        f"{FILE}, line 1: \\ud800request#0, event 1 was changed",
    ),
    "no UTF-8": (
        lambda office: line(office, (b'"entity":"', b'"entity":"\xff\xfe')),
        f"{NO_EVENT} (UnicodeDecodeError",
    ),
    "a terminal's words": (
        lambda office: line(office, (b'"entity":"', b'"entity":"\\u001b[2J\\rNothing is wrong.\\n')),
        f"{FILE}, line 1: \\x1b[2J\\rNothing is wrong.\\nrequest#0, event 1 was changed",
    ),
    "a time beyond all": (
        lambda office: line(office, (b'"at":"2026', b'"at":"0001-01-01T00:00:00+23:59","x":"2026')),
        f"{NO_EVENT} (OverflowError",
    ),
    "a hash that is no text": (lambda office: line(office, (b'"hash":"', b'"hash":7,"x":"')), NO_EVENT),
    "a key that is a list": (lambda office: line(office, (b'"key_id":"k1"', b'"key_id":["k1"]')), NO_EVENT),
    "more lines": (
        lambda office: (office.folder / FILE).write_bytes((office.folder / FILE).read_bytes() + gzip.compress(b"{}\n" * 1000)),
        f"{FILE}, line 4: it has more lines than the 3 of its digest",
    ),
    "no last end of line": (
        lambda office: (office.folder / FILE).write_bytes(gzip.compress(gzip.decompress((office.folder / FILE).read_bytes())[:-1])),
        f"{FILE}, line 3: it has no end",
    ),
    "garbage behind": (
        lambda office: (office.folder / FILE).write_bytes((office.folder / FILE).read_bytes() + b"garbage"),
        f"{FILE}, line 4: it can't be read any further",
    ),
    "a pipe as a digest": (
        lambda office: pipe(office.folder / DIGEST),
        f"{DIGEST}: it is no file of at most 64 MB",
    ),
    "a pipe as a file": (lambda office: pipe(office.folder / FILE), f"{FILE}: it is missing"),
    "a digest that is a list": (digest(b"[]"), NO_DIGEST),
    "a digest that is deep": (digest(b"[" * 1_000_000), f"{NO_DIGEST} (RecursionError"),
    "a digest with a name twice": (
        digest(b'{"day": "x", "day": "y"}'),
        f"{NO_DIGEST} (ValueError: a name comes twice",
    ),
    "a digest that is empty": (digest(b""), NO_DIGEST),
    "a way out of the folder": (file_of(name="../../etc/passwd"), f"{DIGEST}: it names ../../etc/passwd, which is no file of its day"),
    "a way from the root": (file_of(name="/dev/zero"), f"{DIGEST}: it names /dev/zero, which is no file of its day"),
    "no file at all": (told(files=[]), f"{NO_DIGEST} (ValueError"),
    "lines that are a text": (file_of(lines="many"), f"{NO_DIGEST} (ValueError"),
    "another number of late ones": (file_of(late=2), f"{FILE}, line 3: it has 3 lines, and {DIGEST} says 3, 2 of them late"),
    "heads that are none": (told(heads={"request#0": 7}), f"{NO_DIGEST} (TypeError"),
    "a link that is a text": (told(before="digests/2026-01-01.json"), f"{NO_DIGEST} (TypeError"),
    "a key that is an object": (told(key={}), f"{DIGEST}: it is signed by the key {{}}, whose public key was not given"),
    "a day that there is not": (
        lambda office: (office.folder / DIGEST).rename(office.folder / "digests/2026-02-30.json"),
        f"digests/2026-02-30.json: it is the digest of {TODAY}",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_was_made_to_mislead_is_named_at_its_place(day: Office, what: str) -> None:
    make, words = HOSTILE[what]
    make(day)
    found = day.breaks()
    assert found[0].startswith(words), found
    assert all(one.isprintable() for one in found)


def test_a_bomb_takes_no_memory(day: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without an end, and lines without an end: what is unpacked is a thousand times as long."""
    monkeypatch.setattr(verify_evidence, "MOST_LINE_BYTES", 1 << 18)
    for bomb, words in ((b"x" * (1 << 26), "line 1: it has no end"), (b"{}\n" * (1 << 24), "line 1: it is no event")):
        (day.folder / FILE).write_bytes(gzip.compress(bomb))
        tracemalloc.start()
        found = day.breaks()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found[0].startswith(f"{FILE}, {words}")
        assert len(found) <= 6
        assert most < 4 << 20


def test_a_digest_that_is_too_large_is_not_read(day: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_evidence, "MOST_DIGEST_BYTES", 1 << 20)
    with (day.folder / DIGEST).open("ab") as file:
        file.truncate((1 << 20) + 1)
    assert day.breaks()[0] == f"{DIGEST}: it is no file of at most 1 MB"


def test_breaks_and_what_waits_are_held_up_to_a_bound(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_evidence, "MOST_BREAKS", 3)
    monkeypatch.setattr(verify_evidence, "MOST_WAITING", 2)
    office.write("request#1")
    office.chains["request#1"] = (5, office.chains["request#1"][1])
    office.work(4)
    office.export()

    verdict = office.verify()
    assert [str(one) for one in verdict.breaks] == [f"events/{TODAY}.jsonl.gz, line 3: request#1, event 2 is missing; 6 is here"]
    for path in office.folder.glob("events/*"):
        path.write_bytes(gzip.compress(b"{}\n" * 3))
    verdict = office.verify()
    assert (len(verdict.breaks), verdict.found) == (3, 16)


def public(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    "pem",
    [
        public(ec.generate_private_key(ec.SECP384R1())),
        public(rsa.generate_private_key(65537, 2048)),
        b"",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        SIGNER.public_key.replace("PUBLIC", "PRIVATE").encode(),
    ],
)
def test_a_key_of_the_wrong_kind_is_bad_usage(day: Office, pem: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"."):
        verify(day.folder, public_keys=[pem])


def test_the_verifier_alone_prints_what_no_terminal_obeys_and_no_traceback(day: Office, tmp_path: Path) -> None:
    HOSTILE["a terminal's words"][0](day)
    (day.folder / "events/2026-01-01\udcff.jsonl.gz").write_bytes(b"")
    (tmp_path / "public.pem").write_text(SIGNER.public_key)
    (tmp_path / "rsa.pem").write_bytes(public(rsa.generate_private_key(65537, 2048)))

    found = alone(tmp_path, str(day.folder), "--public-key", str(tmp_path / "public.pem"))
    assert (found.returncode, found.stderr) == (1, "")
    assert all(one.isprintable() for one in found.stdout.splitlines())
    refused = alone(tmp_path, str(day.folder), "--public-key", str(tmp_path / "rsa.pem"))
    assert refused.returncode == 2
    assert "no public key of Ed25519, nor of ECDSA on P-256" in refused.stderr
