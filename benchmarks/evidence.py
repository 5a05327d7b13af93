"""What an event costs with a key in its hash and without, and with checks of a request; what exporting and verifying a day of many events
takes, and what the verifier holds in memory of a tenth of so many events, and of all, a thousand a day:

    python tools/dynamodb_local.py python -m benchmarks.evidence --events 100000
    python -m benchmarks.evidence --events 100000 --verifier-alone

Exit code 1 when a key makes an event cost a request or a write unit more, what was exported does not verify, or the verifier's memory grows
by more than its chains are worth.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings

from accessportal.audit import config, operations
from accessportal.audit.config import AuditKeys
from accessportal.audit.models import AuditItem
from accessportal.audit.policy import check_of, event_hash
from accessportal.audit.states import AuditEvent, Draft
from accessportal.evidence import policy
from accessportal.evidence import verify_evidence as verifier
from accessportal.evidence.config import read_key
from accessportal.evidence.operations import export
from accessportal.evidence.queries import EvidenceFiles
from accessportal.evidence.states import DayFile
from accessportal.evidence.storages import WriteOnceFolder
from accessportal.evidence.verify_evidence import verify
from accessportal.kernel.actors import person, system
from accessportal.kernel.clock import SystemClock
from accessportal.store.base import StoreSettings, configure
from accessportal.store.cursors import configure_cursors
from accessportal.store.tables import ensure_table
from accessportal.store.transactions import transact
from benchmarks import meter
from benchmarks.installation import REGION

CLOCK = SystemClock()
BOB = person("bob@example.com")
KEYS = AuditKeys({"k1": os.urandom(32)})
DRAFT = Draft("request.denied", "alice@example.com", {"reason": "Use the staging account for this, as every week", "status": "DENIED"})
# As the first event of a request for an account is.
ASKED = Draft(
    "request.submitted",
    "alice@example.com",
    {
        "kind": "aws_account",
        "target": {
            "account_id": "111122223333",
            "account_name": "analytics-dev",
            "permission_set": "AdministratorAccess",
            "permission_set_arn": "arn:aws:sso:::permissionSet/ssoins-0123456789abcdef/ps-0123456789abcdef",
            "principal_type": "USER",
            "principal_id": str(uuid.UUID(int=0)),
        },
        "duration_seconds": 3600,
        "reason": "Look into the failed settlement run of last night, incident 4711",
        "ticket_id": "CHG-20817",
        "rule_name": "one-approval",
        "rule_hash": "0" * 64,
        "expires_at": 1_800_000_000,
        "extends": "",
    },
    scope="account/111122223333",
)
# What it tells beside that.
_CHECKS = {name: check_of(name) for name in ("account_id", "permission_set", "approval", "evidence")}
CHECKED = replace(ASKED, data={**ASKED.data, "checks": _CHECKS, "identities": {"alice@example.com": check_of("alice")}})
_TIMES = 300
_EACH_CHAIN = 4
_WORK_MB = 1 << 20
_EACH_DAY = 1_000
# What a chain may take: its name, its last hash, and where it is.
_MOST_CHAIN_KB = 1.5
# The most memory that a process of its own ever held, by Linux, is its last word.
_CHILD = f"""
import sys
sys.path.insert(0, {str(Path(verifier.__file__).parent)!r})
import verify_evidence
verify_evidence.main(sys.argv[1:])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000, help="events of the day that is exported (default: %(default)s)")
    parser.add_argument("--verifier-alone", action="store_true", help="measure the memory of the verifier alone; without a DynamoDB")
    options = parser.parse_args()
    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    settings.configure()
    problems = [*_memory(options.events), *([] if options.verifier_alone else _with_store(options.events))]
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


def _with_store(events: int) -> Iterator[str]:
    meter.install()
    configure(StoreSettings(table_prefix=f"bench-{uuid.uuid4().hex[:8]}-", region=REGION, read_timeout_seconds=60, reads_side_by_side=8))
    configure_cursors("benchmarks")
    ensure_table(AuditItem, clock=CLOCK)
    yield from _costs()
    yield from _day(events)


def _memory(most: int) -> Iterator[str]:
    """Each set by a process of its own, of the file that auditors have."""
    print("\nThe verifier alone\n")
    print("| events | chains | packed, MB | unpacked, MB | seconds | it holds at most, MB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    found = []
    for count in (most // 10, most):
        with tempfile.TemporaryDirectory() as folder:
            chains, unpacked, given = _write_set(Path(folder), count)
            packed = sum(path.stat().st_size for path in Path(folder).rglob("*.gz")) / _WORK_MB
            began = time.monotonic()
            said = subprocess.run([sys.executable, "-c", _CHILD, folder, *given], capture_output=True, text=True, check=False).stdout
            seconds, held = time.monotonic() - began, int(said.split()[-1]) / 1024
        if f" {count} events" not in said or "Nothing is wrong." not in said:
            yield f"the verifier says of {count} events: {said}"
        print(f"| {count:,} | {chains:,} | {packed:.1f} | {unpacked / _WORK_MB:.0f} | {seconds:.1f} | {held:.0f} |", flush=True)
        found.append((held, chains))
    (less, few), (more, many) = found
    if more - less > _MOST_CHAIN_KB * (many - few) / 1024:
        yield f"the verifier's memory grew by {more - less:.0f} MB for {many - few} chains"


def _write_set(folder: Path, count: int) -> tuple[int, int, list[str]]:
    """As the portal exports it, a thousand events a day; chains go on after ten days. How many chains, how many bytes of lines, and what
    the verifier is given."""
    config.configure(KEYS)
    signer = read_key(base64.b64encode(os.urandom(32)).decode())
    files = EvidenceFiles(WriteOnceFolder(location=folder))
    heads: dict[str, tuple[int, str]] = {}
    link, unpacked = None, 0
    first = datetime(2026, 1, 1, tzinfo=UTC)
    for day in range(count // _EACH_DAY):
        changed: dict[str, tuple[int, str]] = {}
        draft = io.BytesIO()
        with gzip.GzipFile(mode="wb", fileobj=draft, mtime=0) as lines:
            for number in range(_EACH_DAY):
                entity = f"request#{uuid.uuid5(uuid.NAMESPACE_URL, f'{day // (10 * _EACH_CHAIN)} {day % 10} {number}')}"
                sequence, head = heads.get(entity, (0, ""))
                at = first + timedelta(days=day, seconds=number * 60)
                event = _event(entity, sequence + 1, head, at)
                unpacked += lines.write(policy.line_of(event, day=at.date()))
                heads[entity] = changed[entity] = sequence + 1, event.hash
        files.put(policy.file_name(at.date()), io.BytesIO(draft.getvalue()))
        file = DayFile(at.date(), files.sha256(policy.file_name(at.date())), _EACH_DAY, 0, changed)
        digest = policy.digest_of(file, before=link, key_id=signer.key_id)
        files.put_digest(at.date(), digest | {"signature": signer.sign(policy.signed_bytes(digest))})
        link = {"name": policy.digest_name(at.date()), "sha256": files.sha256(policy.digest_name(at.date()))}
    (folder / "public.pem").write_text(signer.public_key)
    (folder / "keys").write_text(",".join(f"{key_id}:{base64.b64encode(key).decode()}" for key_id, key in KEYS.secrets.items()))
    return len(heads), unpacked, ["--public-key", str(folder / "public.pem"), "--audit-keys", str(folder / "keys")]


def _event(entity: str, sequence: int, head: str, at: datetime) -> AuditEvent:
    told = {"action": DRAFT.action, "actor": BOB.name, "subject": DRAFT.subject, "data": DRAFT.data, "key_id": KEYS.signing_id}
    event = AuditEvent(entity, sequence, str(uuid.uuid4()), at, prev_hash=head, hash="", **told)  # type: ignore[arg-type]
    return replace(event, hash=event_hash(event, KEYS))


def _costs() -> Iterator[str]:
    print("\nOne event, with its transaction: medians\n")
    print("| event | hash | bytes of data | round trips | write units | of the processor, µs | making it alone, µs |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name, draft in (("denied", DRAFT), ("asked", ASKED), ("asked, with checks", CHECKED)):
        found = set()
        for hash_name, keys in (("SHA-256, without a key", AuditKeys()), ("HMAC-SHA-256", KEYS)):
            config.configure(keys)
            costs, spans, alone = [], [], []
            for _ in range(_TIMES):
                began = time.process_time()
                entity = f"request#{uuid.uuid4()}"
                event = operations.prepare_event(draft, entity=entity, sequence=1, prev_hash="", actor=BOB, now=CLOCK.now())
                alone.append(time.process_time() - began)
                with meter.metered() as cost:
                    transact([event.step])
                spans.append(time.process_time() - began)
                costs.append(cost)
            trips, units = (statistics.median(getattr(one, field) for one in costs) for field in ("round_trips", "write_units"))
            found.add((trips, units))
            size = len(json.dumps(draft.data, separators=(",", ":")))
            micros = [1e6 * statistics.median(one) for one in (spans, alone)]
            print(f"| {name} | {hash_name} | {size} | {trips:g} | {units:g} | {micros[0]:.0f} | {micros[1]:.0f} |", flush=True)
        if len(found) > 1:
            yield f"an event with a key ({name}) costs other requests or units than one without"


def _day(count: int) -> Iterator[str]:
    began = time.monotonic()
    yesterday = CLOCK.now().replace(hour=1, minute=0) - timedelta(days=1)
    with AuditItem.batch_write() as batch:
        for chain in range(count // _EACH_CHAIN):
            head, entity = "", f"request#{uuid.uuid4()}"
            for sequence in range(1, _EACH_CHAIN + 1):
                at = yesterday + timedelta(seconds=chain * 79_000 / count, minutes=sequence)
                event = operations.prepare_event(DRAFT, entity=entity, sequence=sequence, prev_hash=head, actor=BOB, now=at)
                batch.save(event.step.item)
                head = event.head
    print(f"\n{count:,} events of yesterday; filling took {time.monotonic() - began:.0f} s\n")
    signer = read_key(base64.b64encode(os.urandom(32)).decode())
    print("| | seconds | of the processor | requests | read units | the process holds at most, MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        files = EvidenceFiles(WriteOnceFolder(location=folder))
        cpu, began = time.process_time(), time.monotonic()
        with meter.metered() as cost:
            report = export(files=files, signer=signer, actor=system("bench"), clock=CLOCK)
        _told("export", began, cpu, f"{cost.round_trips} | {cost.read_units:g}")
        cpu, began = time.process_time(), time.monotonic()
        verdict = verify(Path(folder), public_keys=[signer.public_key.encode()], audit_keys=KEYS.secrets)
        _told("verify, with the keys", began, cpu, "0 | 0")
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    print(f"\n{report.events:,} events in {report.days} day, {size / _WORK_MB:.1f} MB packed")
    if (verdict.events, verdict.found) != (count, 0):
        yield f"{verdict.events} events were verified, {verdict.found} breaks found: {verdict.breaks[:3]}"


def _told(what: str, began: float, cpu: float, store: str) -> None:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {what} | {time.monotonic() - began:.1f} | {time.process_time() - cpu:.1f} | {store} | {most:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
