"""What an event costs with a key in its hash and without, and what exporting and verifying a day of many events takes:

    python tools/dynamodb_local.py python -m benchmarks.evidence

Exit code 1 when a key makes an event cost a request or a write unit more, or what was exported does not verify.
"""

from __future__ import annotations

import argparse
import base64
import os
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings

from accessportal.audit import config, operations
from accessportal.audit.config import AuditKeys
from accessportal.audit.models import AuditItem
from accessportal.audit.states import Draft
from accessportal.evidence.config import read_key
from accessportal.evidence.operations import export
from accessportal.evidence.queries import EvidenceFiles
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
_TIMES = 300
_EACH_CHAIN = 4
_WORK_MB = 1 << 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000, help="events of the day that is exported (default: %(default)s)")
    options = parser.parse_args()
    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    settings.configure()
    meter.install()
    configure(StoreSettings(table_prefix=f"bench-{uuid.uuid4().hex[:8]}-", region=REGION, read_timeout_seconds=60, reads_side_by_side=8))
    configure_cursors("benchmarks")
    ensure_table(AuditItem, clock=CLOCK)
    problems = [*_costs(), *_day(options.events)]
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


def _costs() -> Iterator[str]:
    print("\nOne event, with its transaction: medians\n")
    print("| hash | round trips | write units | of the processor, µs | making it alone, µs |")
    print("| --- | ---: | ---: | ---: | ---: |")
    found = {}
    for name, keys in (("SHA-256, without a key", AuditKeys()), ("HMAC-SHA-256", KEYS)):
        config.configure(keys)
        costs, spans, alone = [], [], []
        for _ in range(_TIMES):
            began = time.process_time()
            event = operations.prepare_event(DRAFT, entity=f"request#{uuid.uuid4()}", sequence=1, prev_hash="", actor=BOB, now=CLOCK.now())
            alone.append(time.process_time() - began)
            with meter.metered() as cost:
                transact([event.step])
            spans.append(time.process_time() - began)
            costs.append(cost)
        found[name] = statistics.median(one.round_trips for one in costs), statistics.median(one.write_units for one in costs)
        micros = [1e6 * statistics.median(one) for one in (spans, alone)]
        print(f"| {name} | {found[name][0]:g} | {found[name][1]:g} | {micros[0]:.0f} | {micros[1]:.0f} |", flush=True)
    if len(set(found.values())) > 1:
        yield "an event with a key costs other requests or units than one without"


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
