"""Check a folder of exported evidence: python verify_evidence.py FOLDER --public-key FILE [--audit-keys FILE].

One file by itself: it needs Python 3.11 and the package cryptography, and neither the portal nor its database. What it checks and
what it can't find stands in docs/evidence.md. Exit code 0: nothing found; 1: something is wrong, the first break first; 2: bad usage;
3: nothing but restores of the tables, each of which somebody must confirm.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import hmac
import json
import re
import sys
import zlib
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

FORMAT = 1
MOST_SHOWN = 50
# Whatever is larger was not written by the portal. So much, and no more, of what somebody else wrote is held in memory.
MOST_BREAKS = 1_000
MOST_WAITING = 1_000
MOST_DIGEST_BYTES = 64 << 20
MOST_LINE_BYTES = 4 << 20
# How far the clocks of a portal's processes may be apart.
SKEW = timedelta(minutes=1)
# So long some processes of a portal may have no key of pseudonyms when others have it.
CHANGE_OVER = timedelta(days=1)
_MOST_WORDS = 300
_DAY_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HASHED = ("entity", "sequence", "event_id", "action", "actor", "subject", "scope", "data", "prev_hash", "at")
_BAD_JSON = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)

PublicKey = Ed25519PublicKey | EllipticCurvePublicKey


@dataclass(frozen=True, order=True)
class Break:
    """``line`` 0: the file as a whole."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.problem}" if self.line else f"{self.file}: {self.problem}"


@dataclass(slots=True)
class Chain:
    """Where one entity's chain has come to, in the file of which ``day``. ``waiting``: links that were filed before the one that they
    follow, by sequence."""

    sequence: int = 0
    hash: str = ""
    day: str = ""
    is_keyed: bool = False
    named_until: datetime | None = None
    waiting: dict[int, Link] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """What an event says of its place in its chain."""

    prev_hash: str
    hash: str
    at: datetime
    is_keyed: bool
    is_nameless: bool
    file: str
    line: int


@dataclass(frozen=True)
class Restored:
    """A restore of the tables that a signed digest tells of: ``chains`` fell back to an earlier event, and ``events`` are gone."""

    file: str
    restored_to: datetime
    at: datetime
    by: str
    chains: tuple[str, ...]
    events: int

    def __str__(self) -> str:
        told = f"{self.by} said at {self.at:%Y-%m-%d %H:%M:%SZ} that the tables were restored to {self.restored_to:%Y-%m-%d %H:%M:%SZ}"
        return f"{self.file}: {told}; {self.events} events of {len(self.chains)} chains are gone from them"


@dataclass
class Verdict:
    """What was looked at, and ``breaks`` in the order in which they were met, the first of ``found``. ``unjudged``: files that are fine by
    themselves, and don't fit to one before that is broken. ``unproved``: events with a key in the hash that was not given; their links and
    the signed heads hold them. ``restored``: neither fine nor a forgery by itself."""

    first_day: str = ""
    last_day: str = ""
    days: int = 0
    events: int = 0
    late: int = 0
    unproved: int = 0
    chains: int = 0
    found: int = 0
    breaks: list[Break] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)


def verify(
    folder: Path,
    *,
    public_keys: Sequence[bytes],
    audit_keys: Mapping[str, bytes] | None = None,
    plain_until: datetime | None = None,
    last_day: date | None = None,
) -> Verdict:
    """Check everything in ``folder``. ``public_keys`` are PEM texts; ``last_day`` is what must be there at least.

    :raises ValueError: when a public key can't be read, or is of a kind that signs no evidence.
    """
    check = _Check(folder, keys_by_id(public_keys), audit_keys, plain_until)
    check.run(last_day)
    return check.verdict


def read_audit_keys(text: str) -> dict[str, bytes]:
    """The keys of ``id:base64, id:base64``, as PORTAL_AUDIT_KEYS has them."""
    pairs = (part.strip().partition(":") for part in text.split(",") if part.strip())
    return {key_id: base64.b64decode(encoded, validate=True) for key_id, _, encoded in pairs}


def keys_by_id(public_keys: Sequence[bytes]) -> dict[str, PublicKey]:
    """:raises ValueError: when a public key can't be read, or is of a kind that signs no evidence."""
    return {_key_id(key): key for key in map(read_public_key, public_keys)}


def flaws_of_digest(
    name: str, day: str, digest: Mapping[str, Any], *, keys: Mapping[str, PublicKey], before: tuple[str, str] | None
) -> Iterator[tuple[str, str]]:
    """What is wrong with its signature, and with its place behind the digest ``before`` (name and SHA-256; none where that is broken, and
    tells nothing of this one), each with the file to name."""
    key = keys.get(str(digest.get("key")))
    if key is None:
        yield name, f"it is signed by the key {digest.get('key')}, whose public key was not given"
    elif not is_signed_by(key, digest):
        yield name, "the signature is not of this digest"
    if digest["format"] != FORMAT:
        yield name, f"it has the form {digest['format']}, and this program knows {FORMAT}"
    if digest["day"] != day:
        yield name, f"it is the digest of {digest['day']}"
    link = digest["before"]
    yesterday = f"digests/{date.fromisoformat(day) - timedelta(days=1)}.json"
    if before is None:
        if link is not None:
            yield yesterday, f"it is missing: {name} continues {link['name']}"
    elif before[0] != yesterday:
        yield yesterday, f"it is missing: {before[0]} is followed by {name}"
    elif before[1] and (link is None or (link["name"], link["sha256"]) != before):
        yield name, f"it does not continue {before[0]} as that is now"


def read_public_key(pem: bytes) -> PublicKey:
    try:
        key = load_pem_public_key(pem)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    if isinstance(key, Ed25519PublicKey) or (isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)):
        return key
    raise ValueError("this is no public key of Ed25519, nor of ECDSA on P-256, in PEM")


def _key_id(key: PublicKey) -> str:
    form = (Encoding.Raw, PublicFormat.Raw) if isinstance(key, Ed25519PublicKey) else (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(key.public_bytes(*form)).hexdigest()[:16]


def is_signed_by(key: PublicKey, digest: Mapping[str, Any]) -> bool:
    """The key decides how, and not who signed."""
    body = {field: value for field, value in digest.items() if field != "signature"}
    signed = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    try:
        signature = base64.b64decode(str(digest.get("signature")), validate=True)
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, signed)
        else:
            key.verify(signature, signed, ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


def _read_json(content: bytes) -> dict[str, Any]:
    """:raises ValueError: also for what two readers may understand in two ways: a name that comes twice, and numbers that are none."""
    told = json.loads(content, object_pairs_hook=_no_name_twice, parse_constant=_no_number)
    if not isinstance(told, dict):
        raise ValueError("it is no object")  # noqa: TRY004
    return told


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(pairs)
    if len(told) != len(pairs):
        raise ValueError("a name comes twice")
    return told


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _read_event(line: bytes) -> dict[str, Any]:
    event = _read_json(line)
    texts = [event[name] for name in ("entity", "at", "hash", "prev_hash")]
    texts += [event[name] for name in ("key_id", "late_of", "flaw") if name in event]
    if not all(isinstance(text, str) for text in texts) or type(event["sequence"]) is not int:
        raise ValueError("a text or a number is of another kind")
    return event


def _shown(words: str) -> str:
    """For a terminal: what somebody else wrote steers nothing there."""
    clean = "".join(one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode() for one in words[:_MOST_WORDS])
    return clean + ("…" if len(words) > _MOST_WORDS else "")


def _day_of(name: str) -> str:
    return name.partition("/")[2].partition(".")[0]


@dataclass
class _Check:
    folder: Path
    public_keys: Mapping[str, PublicKey]
    audit_keys: Mapping[str, bytes] | None
    plain_until: datetime | None
    verdict: Verdict = field(default_factory=Verdict)
    _chains: dict[str, Chain] = field(default_factory=dict)
    # Of chains that are named by a person: the last hash, and the name under which they go on.
    _addressed: dict[str, str] = field(default_factory=dict)
    _renamed: dict[str, str] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)
    # Restores whose own first event is still to come, by entity: what it must tell.
    _untold: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    # The files that are named as broken, and their days in order.
    _broken: set[str] = field(default_factory=set)
    _broken_days: list[str] = field(default_factory=list)
    _unjudged: set[str] = field(default_factory=set)

    def run(self, last_day: date | None) -> None:
        days = sorted(path.stem for path in self.folder.glob("digests/*.json") if _DAY_NAME.fullmatch(path.stem))
        if not days:
            self._break("digests", 0, "there is no digest of any day")
            return
        self.verdict.first_day, self.verdict.last_day, self.verdict.days = days[0], days[-1], len(days)
        before: tuple[str, str] | None = None
        for day in days:
            before = self._day(day, before)
        if last_day is not None and days[-1] < last_day.isoformat():
            self._break(f"digests/{last_day}.json", 0, f"the digests end at {days[-1]}, before the day that must be there")
        self._rest(days[-1])
        self.verdict.unjudged = sorted(map(_shown, self._unjudged - self._broken), key=_day_of)

    def _break(self, file: str, line: int, problem: str) -> None:
        self.verdict.found += 1
        if len(self.verdict.breaks) < MOST_BREAKS:
            self.verdict.breaks.append(Break(_shown(file), line, _shown(problem)))
        if file not in self._broken:
            self._broken.add(file)
            insort(self._broken_days, _day_of(file))

    def _misfit(self, file: str, line: int, problem: str, *, since: str = "") -> None:
        """It does not fit to files before it: a break, unless one of these (from the day ``since`` on) is broken; then nobody can tell."""
        first = bisect_left(self._broken_days, since)
        if first < len(self._broken_days) and self._broken_days[first] < _day_of(file):
            self._unjudged.add(file)
        else:
            self._break(file, line, problem)

    def _content(self, name: str) -> bytes | None:
        """Of a digest; ``None``, and a break, when it can't be read."""
        path = self.folder / name
        try:
            if path.is_file() and path.stat().st_size <= MOST_DIGEST_BYTES:
                return path.read_bytes()
            self._break(name, 0, f"it is no file of at most {MOST_DIGEST_BYTES >> 20} MB")
        except OSError as error:
            self._break(name, 0, f"it can't be read ({error.strerror})")
        return None

    def _day(self, day: str, before: tuple[str, str] | None) -> tuple[str, str]:
        name = f"digests/{day}.json"
        content = self._content(name)
        if content is not None:
            try:
                digest = _read_json(content)
                found_before = self.verdict.found
                if before is not None and not before[1]:
                    self._unjudged.add(name)
                for file_name, problem in flaws_of_digest(name, day, digest, keys=self.public_keys, before=before):
                    self._break(file_name, 0, problem)
                for note in digest.get("restores", []) if self.verdict.found == found_before else []:
                    self._restore(name, day, note)
                heads = {entity: (sequence, head) for entity, (sequence, head) in digest["heads"].items()}
                (file,) = digest["files"]
                self._file(day, name, file, heads)
                for entity in sorted(self._untold) if f"events/{day}.jsonl.gz" not in self._broken else ():
                    self._break(name, 0, f"it tells of {entity}, and its file has no such event")
                self._untold = {}
            except _BAD_JSON as error:
                self._break(name, 0, f"it is no digest of the form {FORMAT} ({type(error).__name__}: {error})")
        return name, "" if name in self._broken or content is None else hashlib.sha256(content).hexdigest()

    def _restore(self, name: str, day: str, note: Mapping[str, Any]) -> None:
        """Let the chains fall back of which everything fits: where they stood, and that all they lost is of the time that is lost."""
        restored_to, at = (datetime.fromisoformat(note[which]).astimezone(UTC) for which in ("restored_to", "at"))
        self._untold[str(note["restore"])] = (note["by"], int(restored_to.timestamp()), int(at.timestamp()))
        falls = {self._renamed.get(entity, entity): fall for entity, fall in note["chains"].items()}
        lost: dict[str, list[tuple[int, str]]] = {entity: [] for entity in falls}
        first = (restored_to - SKEW).date().isoformat()
        for file in sorted(one for one in self._named if f"events/{first}" <= one < f"events/{day}"):
            for told in self._told_again(file, falls):
                if told["sequence"] > falls[told["entity"]]["to"][0]:
                    is_then = restored_to - SKEW <= datetime.fromisoformat(told["at"]) <= at + SKEW
                    lost[told["entity"]].append((told["sequence"] if is_then else 0, told["prev_hash"]))
        fallen = []
        for entity, fall in falls.items():
            (sequence, head), (to, hash_there) = fall["from"], fall["to"]
            chain, events = self._chains.get(entity, Chain()), sorted(lost[entity])
            is_whole = [one for one, _ in events] == list(range(to + 1, sequence + 1)) and not chain.waiting
            if not is_whole or (chain.sequence, chain.hash) != (sequence, head) or not events or events[0][1] != hash_there:
                self._misfit(name, 0, f"{entity} did not fall back from event {sequence} to {to} as its note of a restore says")
                continue
            if self._addressed.pop(chain.hash, None) and to:
                self._addressed[hash_there] = entity
            chain.sequence, chain.hash = to, hash_there
            fallen.append(entity)
        events_lost = sum(len(lost[entity]) for entity in fallen)
        self.verdict.restored.append(Restored(name, restored_to, at, _shown(str(note["by"])), tuple(fallen), events_lost))

    def _told_again(self, name: str, entities: Mapping[str, object]) -> Iterator[dict[str, Any]]:
        """What a file that was looked at tells of some chains; as far as it can be read."""
        try:
            with gzip.open(self.folder / name) as file:
                for line in iter(lambda: file.readline(MOST_LINE_BYTES), b""):
                    told = _read_event(line)
                    told["entity"] = self._renamed.get(told["entity"], told["entity"])
                    if told["entity"] in entities:
                        yield told
        except (OSError, EOFError, zlib.error, *_BAD_JSON):
            return

    def _file(self, day: str, digest_name: str, told: Mapping[str, Any], heads: Mapping[str, tuple[int, str]]) -> None:
        name = str(told["name"])
        self._named.add(name)
        if name != f"events/{day}.jsonl.gz":
            self._break(digest_name, 0, f"it names {name}, which is no file of its day")
            return
        path = self.folder / name
        count, late = int(told["lines"]), int(told["late"])
        found: dict[str, tuple[int, str]] = {}
        found_before, late_before = self.verdict.found, self.verdict.late
        lines = 0
        try:
            if not path.is_file():
                self._break(name, 0, "it is missing")
                return
            with path.open("rb") as file:
                is_same = hashlib.file_digest(file, "sha256").hexdigest() == told["sha256"]
            for event in self._events(name, day, most=count):
                lines += 1
                entity = event["entity"]
                if entity in self._untold and event["action"] == "restore.begun":
                    said = (event["actor"], event["data"]["restored_to"], event["data"]["epoch"])
                    if self._untold.pop(entity) != said:
                        self._break(digest_name, 0, f"it tells of {entity} otherwise than its event")
                found[entity] = max(found.get(entity, (0, "")), (event["sequence"], event["hash"]))
        except (OSError, EOFError, zlib.error) as error:
            self._break(name, lines + 1, f"it can't be read any further ({error})")
            return
        if not is_same:
            self._break(name, 0, f"its SHA-256 is not the one in {digest_name}")
        if self.verdict.found > found_before:
            return
        if (lines, self.verdict.late - late_before) != (count, late):
            self._break(name, lines, f"it has {lines} lines, and {digest_name} says {count}, {late} of them late")
        elif found != heads:
            entity = min(one for one in found.keys() | heads.keys() if found.get(one) != heads.get(one))
            self._break(digest_name, 0, f"the head of {entity} is not the one in {name}")

    def _events(self, name: str, day: str, *, most: int) -> Iterator[dict[str, Any]]:
        place: tuple[Any, ...] = ()
        with gzip.open(self.folder / name) as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES), b""), start=1):
                if number > most:
                    self._break(name, number, f"it has more lines than the {most} of its digest")
                    return
                if not line.endswith(b"\n"):
                    self._break(name, number, f"it has no end, or is longer than {MOST_LINE_BYTES >> 20} MB")
                    return
                try:
                    event = _read_event(line)
                    at = datetime.fromisoformat(event["at"]).astimezone(UTC)
                    here = (at, event["entity"], event["sequence"])
                    self._event(event, at, day, name, number)
                    if place and here <= place:
                        self._break(name, number, "it is not in order of time, entity and sequence")
                    place = here
                    yield event
                except _BAD_JSON as error:
                    self._break(name, number, f"it is no event ({type(error).__name__}: {error})")

    def _event(self, event: dict[str, Any], at: datetime, day: str, name: str, number: int) -> None:
        self.verdict.events += 1
        if flaw := event.get("flaw"):
            self._break(name, number, f"{event['entity']}, event {event['sequence']}: when it was exported it {flaw}")
        happened = at.date().isoformat()
        late_of = event.get("late_of")
        self.verdict.late += late_of is not None
        if happened != (late_of or day) or (late_of or "") >= day:
            self._break(name, number, f"it happened on {happened}, and is in the file of {day}")
        if not self._is_whole(event):
            self._break(name, number, f"{event['entity']}, event {event['sequence']} was changed after it was written")
        entity = self._renamed.get(event["entity"], event["entity"])
        chain = self._chains.setdefault(entity, Chain())
        if event["sequence"] <= chain.sequence or event["sequence"] in chain.waiting:
            self._misfit(name, number, f"{event['entity']}, event {event['sequence']} comes a second time", since=chain.day)
            return
        is_keyed, is_nameless = bool(event.get("key_id")), bool(event.get("pseudonym_id"))
        chain.waiting[event["sequence"]] = Link(event["prev_hash"], event["hash"], at, is_keyed, is_nameless, name, number)
        self._follow(entity, chain)
        if len(chain.waiting) > MOST_WAITING:
            self._pass_over(entity, chain)

    def _follow(self, entity: str, chain: Chain) -> None:
        """All that waits and continues the chain."""
        self._take_over(entity, chain)
        while link := chain.waiting.pop(chain.sequence + 1, None):
            whose = f"{entity}, event {chain.sequence + 1}"
            if link.prev_hash != chain.hash:
                self._misfit(link.file, link.line, f"{whose} does not continue the event before it", since=chain.day)
            is_after = self.plain_until is None or link.at > self.plain_until
            if not link.is_keyed and (chain.is_keyed or (self.plain_until is not None and is_after)):
                self._misfit(link.file, link.line, f"{whose} has no key in its hash, and must have one")
            if link.is_nameless:
                chain.named_until = min(chain.named_until or link.at + CHANGE_OVER, link.at + CHANGE_OVER)
            elif chain.named_until and link.at > chain.named_until:
                self._misfit(link.file, link.line, f"{whose} has people in its hash, and an event before it has pseudonyms")
            chain.sequence, chain.hash, chain.day = chain.sequence + 1, link.hash, _day_of(link.file)
            chain.is_keyed = chain.is_keyed or (link.is_keyed and is_after)
            if "@" in entity or "person-" in entity:
                self._addressed.pop(link.prev_hash, None)
                self._addressed[link.hash] = entity

    def _take_over(self, entity: str, chain: Chain) -> None:
        """A chain that began under a person's address goes on under the pseudonym; in the day of the change-over also the other way."""
        first = chain.waiting[min(chain.waiting)] if chain.waiting and not chain.sequence else None
        former = self._addressed.get(first.prev_hash, entity) if first else entity
        began = self._chains[former]
        if former == entity or began.sequence + 1 != min(chain.waiting):
            return
        chain.sequence, chain.hash, chain.day = began.sequence, began.hash, began.day
        chain.is_keyed, chain.named_until = began.is_keyed, began.named_until
        chain.waiting |= began.waiting
        del self._chains[former], self._addressed[began.hash]
        self._renamed[former] = entity

    def _pass_over(self, entity: str, chain: Chain) -> None:
        """What is missing before the first that waits will not come."""
        sequence = min(chain.waiting)
        link = chain.waiting[sequence]
        self._misfit(link.file, link.line, f"{entity}, event {chain.sequence + 1} is missing; {sequence} is here", since=chain.day)
        chain.sequence, chain.hash = sequence - 1, link.prev_hash
        self._follow(entity, chain)

    def _is_whole(self, event: dict[str, Any]) -> bool:
        body = {name: event[name] for name in _HASHED}
        body |= {name: event[name] for name in ("key_id", "pseudonym_id") if event.get(name)}
        key_id, digest = event.get("key_id"), event["hash"]
        if event.get("seal"):
            _, key_id, digest = event["seal"].split(":")
            body["sealed"] = event["hash"]
        content = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        if not key_id:
            return bool(hashlib.sha256(content).hexdigest() == digest) and not (event.get("seal") and self.audit_keys)
        if self.audit_keys is None:
            self.verdict.unproved += 1
            return True
        key = self.audit_keys.get(key_id)
        return key is not None and hmac.compare_digest(hmac.new(key, content, hashlib.sha256).hexdigest(), digest)

    def _rest(self, last: str) -> None:
        for entity, chain in sorted(self._chains.items()):
            self._follow(entity, chain)
            while chain.waiting:
                self._pass_over(entity, chain)
        self.verdict.chains = len(self._chains)
        for path in sorted(self.folder.glob("events/*.jsonl.gz")):
            name = f"events/{path.name}"
            if name in self._named or path.name.startswith("."):
                continue
            if path.name.partition(".")[0] > last:
                self.verdict.notes.append(f"{_shown(name)} has no digest yet: it was not looked at")
            elif f"digests/{_day_of(name)}.json" in self._broken:
                self._unjudged.add(name)
            else:
                self._break(name, 0, "no digest names it")


def _report(verdict: Verdict) -> int:
    looked = f"{verdict.days} days ({verdict.first_day} to {verdict.last_day}), {verdict.events} events of {verdict.chains} chains"
    print(f"{looked}, {verdict.late} of them late.")
    if verdict.unproved:
        print(f"{verdict.unproved} events have a key in their hash that was not given: their links and the signed heads were checked.")
    for line in (*verdict.notes, *(f"RESTORED {one}" for one in verdict.restored)):
        print(line)
    if not verdict.breaks:
        confirm = "Nothing else is wrong. Have each restore confirmed by somebody who can't write to the tables."
        print(confirm if verdict.restored else "Nothing is wrong.")
        return 3 if verdict.restored else 0
    for number, one in enumerate(verdict.breaks[:MOST_SHOWN]):
        print(f"{'  ' if number else 'BREAK '}{one}")
    print("1 break." if verdict.found == 1 else f"{verdict.found} breaks.")
    if verdict.unjudged:
        told = ", ".join([*verdict.unjudged[:MOST_SHOWN], *(["…"] if verdict.unjudged[MOST_SHOWN:] else [])])
        print(f"Fine by themselves, and not judged by what is broken before them: {told}")
    return 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Check a folder of exported evidence.")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--public-key", type=Path, action="append", required=True, metavar="FILE", help="in PEM; may be repeated")
    parser.add_argument("--audit-keys", type=Path, metavar="FILE", help="the keys of the hashes, as id:base64, with commas")
    parser.add_argument("--plain-until", type=datetime.fromisoformat, metavar="T", help="no event without a key after this moment")
    parser.add_argument("--last-day", type=date.fromisoformat, metavar="DAY", help="a day that must be there, like 2026-11-28")
    given = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        verdict = verify(
            given.folder,
            public_keys=[path.read_bytes() for path in given.public_key],
            audit_keys=read_audit_keys(given.audit_keys.read_text()) if given.audit_keys else None,
            plain_until=given.plain_until,
            last_day=given.last_day,
        )
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return _report(verdict)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
