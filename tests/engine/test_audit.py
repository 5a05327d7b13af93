"""verify_audit while everybody writes: what is read between two writes of somebody else is no break."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress

from django.db import connections

from accessportal.authz import operations as authz
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.authz.states import Approval
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.errors import PortalError
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from accessportal.waiting import operations as waiting
from accessportal.waiting.states import SANDBOXES
from tests.commands.conftest import run
from tests.engine.stage import Stage

SETUP = system("setup")
OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
RUNS = 3


def test_nothing_that_is_written_meanwhile_is_a_break(stage: Stage) -> None:
    is_over, written = threading.Event(), itertools.count()

    def at_work(act: Callable[[int], object]) -> threading.Thread:
        def work() -> None:
            try:
                for number in itertools.count():
                    if is_over.is_set():
                        return
                    # Of two who change the same thing one is refused.
                    with suppress(PortalError):
                        act(number)
                        next(written)
            finally:
                connections.close_all()

        return threading.Thread(target=work)

    def people(number: int) -> None:
        directory.set_person_state(
            email="mallory@example.com", state=(State.DISABLED, State.ENABLED)[number % 2], actor=SETUP, now=stage.clock.now()
        )

    def come_and_go(number: int) -> None:
        email = f"guest{number % 3}@example.com"
        directory.create_person(email=email, name="G", group_id="/security", role=GroupRole.READER, actor=SETUP, now=stage.clock.now())
        directory.delete_person(email=email, actor=SETUP, now=stage.clock.now())

    def ask(number: int) -> None:
        stage.deny(stage.ask_for_prod()) if number % 2 else stage.approve(stage.ask_for_prod())

    def approvals(number: int) -> None:
        scope, names, caller = read_scope("tenant:acme"), ("alice", f"docs/{number % 3}", "GET"), caller_of(OLGA)
        approval = Approval(scope, *names, granted_by=OLGA.name, granted_at=stage.clock.now())
        authz.grant(APPROVALS, approval, ttl_seconds=3600, caller=caller, now=stage.clock.now())
        authz.revoke(APPROVALS, scope, names, caller=caller, now=stage.clock.now())

    def line(number: int) -> None:
        now = stage.clock.now()
        waiting.join(line=SANDBOXES, claim=f"c{number % 5}", wants={}, duration_seconds=60, lapses_at=now, actor=SETUP, now=now)
        waiting.leave(line=SANDBOXES, claim=f"c{(number + 2) % 5}", actor=SETUP, now=now)

    def programs(_number: int) -> None:
        made = tokens.create_token(name="ci", scope=Scope.TRACK, actor=SETUP, now=stage.clock.now())
        tokens.revoke_token(token_id=made.token.token_id, actor=SETUP, now=stage.clock.now())

    threads = [at_work(act) for act in (people, people, come_and_go, ask, approvals, line, line, programs)]
    for thread in threads:
        thread.start()
    try:
        found = [run("verify_audit", "--json").json["breaks"] for _ in range(RUNS)]
    finally:
        is_over.set()
        for thread in threads:
            thread.join(timeout=60)

    assert found == [[]] * RUNS
    assert run("verify_audit", "--json").json["breaks"] == []
    assert next(written) > 100
