"""The twin as a server of its own: moto behind the front, one lock before both, and a journal so that nothing is lost.

Any AWS client reaches it by ``AWS_ENDPOINT_URL``. Two addresses are its own: ``GET /twin/health``, and ``/twin/settings`` to read
(``GET``) and change (``POST``, a JSON object) how it behaves. ``/twin/provider/sandboxes`` is the sandbox provider, ``/twin/start`` a page.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any

from waitress import wasyncore
from waitress.channel import ClientDisconnected
from waitress.server import create_server

from accessportal.kernel.clock import Clock, SystemClock
from accessportal.twin import start_page
from accessportal.twin.facts import MotoFacts
from accessportal.twin.identity_center import AssignmentKey, IdentityCenterTwin, Job
from accessportal.twin.journal import Journal
from accessportal.twin.moto_calls import Call, MotoCaller
from accessportal.twin.moto_state import all_images, item_images, pinned, restore_images
from accessportal.twin.protocol import Answer, LostAnswerError, json_answer
from accessportal.twin.repairs import repair_moto
from accessportal.twin.sandbox_provider import PREFIX as PROVIDER_PREFIX
from accessportal.twin.sandbox_provider import ProvidedSandbox, SandboxProviderTwin
from accessportal.twin.settings import TwinSettings

StartResponse = Callable[[str, list[tuple[str, str]]], Any]

logger = logging.getLogger("accessportal.twin")

# A journal is written anew at start when it holds this many writes of items, and twice as many as there are items.
COMPACT_AFTER = 2000
KEEP_JOBS_SECONDS = 7 * 24 * 3600.0


class TwinApplication:
    """The twin as a WSGI application. ``start`` reads the journal back before the first request."""

    def __init__(self, *, journal: Journal, settings: TwinSettings, clock: Clock) -> None:
        repair_moto()
        self._journal = journal
        self._clock = clock
        self._seeds = random.SystemRandom()
        self._caller = MotoCaller()
        self._touched: set[tuple[str, str]] = set()
        self._replayed = 0
        self._compacted = False
        self.front = IdentityCenterTwin(clock=clock, settings=settings, facts=MotoFacts(), on_job=self._keep_job)
        self.provider = SandboxProviderTwin(clock=clock, settings=settings, on_change=self._keep_sandbox)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        call = Call.from_environ(environ)
        if call.path.rstrip("/") == start_page.PATH and call.method == "GET":
            answer = start_page.start_page()
        elif "HTTP_ORIGIN" in environ or environ.get("HTTP_SEC_FETCH_SITE", "none") != "none":
            # A page of some site in somebody's browser. It could not read the answer, but what it sends would be done; moto changes
            # something by GET, too (/moto-api/seed), and an image's address needs no Origin. "none": somebody typed the address.
            answer = json_answer({"error": "The twin answers programs, and no pages of browsers."}, status=403)
        elif call.path.startswith(PROVIDER_PREFIX):
            answer = self._provider_answer(call)
        elif call.path.startswith("/twin/") or (call.path == "/" and call.service == ("", "") and call.reads):
            answer = self._own_answer(call)
        else:
            try:
                answer = self._aws_answer(call)
            except LostAnswerError as lost:
                # waitress's word for closing the connection without an answer.
                raise ClientDisconnected from lost
        headers = {name: value for name, value in answer.headers.items() if name.lower() not in {"content-length", "connection"}}
        headers["Content-Length"] = str(len(answer.body))
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(headers.items()))
        return [answer.body]

    # Answering

    def _provider_answer(self, call: Call) -> Answer:
        headers = {"If-Match": call.headers.get("HTTP_IF_MATCH", "")}
        try:
            return self.provider.answer(call.method, call.path, call.query, headers, call.body)
        except LostAnswerError as lost:
            raise ClientDisconnected from lost

    def _aws_answer(self, call: Call) -> Answer:
        return self.front.answer_any(call.target, call.body, lambda: self._moto_answer(call))

    def _moto_answer(self, call: Call) -> Answer:
        """moto's answer; what the call changed is in the journal before anybody hears of it."""
        # The first call to a service makes its backend, and with it ids (the instance of Identity Center): a change, even if it reads.
        first = call.service not in self._touched
        if call.reads and not first:
            return self._caller.answer(call)
        seed, now = self._seeds.getrandbits(53), self._clock.now().timestamp()
        with pinned(seed=seed, at=now):
            answer = self._caller.answer(call)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            return answer
        if call.writes_items:
            images = item_images(call.service[1], call.operation, call.payload())
            self._journal.append({"kind": "items", "region": call.service[1], "tables": images})
        else:
            self._touched.add(call.service)
            self._journal.append({"kind": "call", "at": now, "seed": seed, "call": call.to_json()})
        return answer

    def _own_answer(self, call: Call) -> Answer:
        # An unsigned GET / is a browser or a supervisor that asks whether anybody is there.
        if call.path in {"/twin/health", "/"}:
            return json_answer({"status": "ok", "replayed": self._replayed, "compacted": self._compacted})
        if call.path != "/twin/settings":
            return json_answer({"error": f"{call.path}: there are /twin/health and /twin/settings"}, status=404)
        if call.method == "POST":
            try:
                values = call.payload()
                self.front.settings.change(values)
            except (ValueError, AttributeError) as error:
                return json_answer({"error": str(error)}, status=400)
            if "seed" in values:
                self.front.reseed()
                self.provider.reseed()
        return json_answer(self.front.settings.as_dict())

    # The journal

    def start(self) -> None:
        """Bring back the state of the last run; shorten the journal when most of it is past."""
        began = time.monotonic()
        kept: list[dict[str, Any]] = []
        writes = 0
        for entry in self._journal.entries():
            self._replayed += 1
            self._replay(entry)
            if entry["kind"] == "items":
                writes += 1
            elif entry["kind"] == "call":
                kept.append(entry)
        self._compact(kept, writes)
        logger.info("%d entries of %s read back in %.1f s", self._replayed, self._journal.path, time.monotonic() - began)

    def _replay(self, entry: dict[str, Any]) -> None:
        if entry["kind"] == "items":
            restore_images(entry["region"], entry["tables"])
        elif entry["kind"] == "job":
            self.front.restore(Job(**(entry["job"] | {"key": AssignmentKey(*entry["job"]["key"])})))
        elif entry["kind"] == "sandbox":
            found = entry["sandbox"]
            self.provider.restore(entry["id"], None if found is None else ProvidedSandbox(**found))
        else:
            call = Call.from_json(entry["call"])
            self._touched.add(call.service)
            with pinned(seed=entry["seed"], at=entry["at"]):
                answer = self._caller.answer(call)
            if answer.status >= HTTPStatus.BAD_REQUEST:
                logger.warning("Entry %d (%s) now answers %d: %s", self._replayed, call.operation, answer.status, answer.body[:300])

    def _compact(self, calls: list[dict[str, Any]], writes: int) -> None:
        images = list(all_images())
        items = sum(len(of_table["put"]) for _, tables in images for of_table in tables.values())
        if writes < COMPACT_AFTER or writes < 2 * items:
            return
        self._journal.replace(self._short_entries(calls, images))
        self._compacted = True

    def _short_entries(self, calls: list[dict[str, Any]], images: list[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
        yield from calls
        yield from ({"kind": "items", "region": region, "tables": tables} for region, tables in images)
        yield from (_job_entry(job) for job in self.front.jobs_to_keep(since=self._clock.now().timestamp() - KEEP_JOBS_SECONDS))
        yield from (_sandbox_entry(external_id, sandbox) for external_id, sandbox in self.provider.sandboxes().items())

    def _keep_job(self, job: Job) -> None:
        self._journal.append(_job_entry(job))

    def _keep_sandbox(self, external_id: str, sandbox: ProvidedSandbox | None) -> None:
        # The journal is written under the one lock; the provider has a lock of its own, so that its slowness delays nobody else.
        with self.front.lock:
            self._journal.append(_sandbox_entry(external_id, sandbox))

    def close(self) -> None:
        with self.front.lock:
            self._journal.close()


class TwinServer:
    """The twin listening on ``host`` and ``port`` (0: any free one). ``run`` returns after ``stop``."""

    def __init__(
        self, *, host: str, port: int, journal_path: Path, settings: TwinSettings | None = None, clock: Clock | None = None
    ) -> None:
        """Read the journal back and listen. Raises ``JournalError`` or ``OSError`` with the reason."""
        self._application = TwinApplication(
            journal=Journal(journal_path), settings=settings or TwinSettings(), clock=clock or SystemClock()
        )
        self._application.start()
        self._server = create_server(
            self._application,
            sockets=[socket.create_server((host, port))],
            threads=16,
            connection_limit=1000,
            asyncore_use_poll=True,
            # Longer than any client keeps an idle connection: closing it first would look like a lost answer.
            channel_timeout=3600,
            ident="twin",
        )
        self.url = f"http://{host}:{self._server.effective_port}"

    @property
    def front(self) -> IdentityCenterTwin:
        return self._application.front

    def run(self) -> None:
        """Serve until ``stop`` or ``SystemExit``; then the journal is on the disk."""
        try:
            self._server.run()
        finally:
            self._server.task_dispatcher.shutdown()
            self._close_sockets()
            self._application.close()

    def stop(self) -> None:
        """From another thread: make ``run`` return."""
        with contextlib.suppress(OSError):
            # A thread that ends a request may pull the trigger first, and close it under our hands.
            self._server.trigger.pull_trigger(self._close_sockets)

    def _close_sockets(self) -> None:
        # The server's loop ends when its map of sockets is empty.
        wasyncore.close_all(self._server._map, ignore_all=True)


def run_twin(*, host: str, port: int, journal_path: Path, settings: TwinSettings | None = None) -> None:
    """Serve in this process's main thread until SIGTERM or SIGINT, then stop cleanly."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    server = TwinServer(host=host, port=port, journal_path=journal_path, settings=settings)
    logger.info("The twin of AWS answers at %s", server.url)
    server.run()


def _job_entry(job: Job) -> dict[str, Any]:
    return {"kind": "job", "job": dataclasses.asdict(job) | {"key": list(job.key)}}


def _sandbox_entry(external_id: str, sandbox: ProvidedSandbox | None) -> dict[str, Any]:
    return {"kind": "sandbox", "id": external_id, "sandbox": None if sandbox is None else dataclasses.asdict(sandbox)}
