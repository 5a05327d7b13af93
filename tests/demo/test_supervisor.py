"""Processes that run together: real ones, small."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accessportal.demo.supervisor import AlreadyRunning, Part, PartFailed, StopAsked, Supervisor, only_one, stoppable

# Each says that it is there, and then waits for the end; the stubborn one does not listen to SIGTERM.
PATIENT = "import signal; print('ready', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\nwhile True: signal.pause()"
WITH_CHILD = (
    "import subprocess, sys, signal; child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']);"
    "print(child.pid, flush=True); signal.pause()"
)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_alive(pid: int) -> bool:
    """Not gone, and not a zombie that nobody has collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> None:
    """A killed process that is not our child ends a moment after the signal; the kernel tells when."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([handle], [], [], 60)
    os.close(handle)


class Said:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture
def supervisor(tmp_path: Path, said: Said) -> Iterator[Supervisor]:
    with only_one(tmp_path / "lock") as lock:
        made = Supervisor(logs=tmp_path / "logs", lock=lock, say=said)
        yield made
        made.stop()


def started(supervisor: Supervisor, name: str, code: str) -> Part:
    part = supervisor.start(name, python(code))
    supervisor.wait_for(part, lambda: bool(part.log.read_text()), seconds=60)
    return part


def pid_of(part: Part) -> int:
    assert part.process is not None
    return part.process.pid


def test_stop_ends_all_parts_and_their_children(supervisor: Supervisor) -> None:
    first, second = started(supervisor, "first", PATIENT), started(supervisor, "second", WITH_CHILD)
    child = int(second.log.read_text())

    pids = (pid_of(first), pid_of(second), child)

    supervisor.stop()

    wait_for_end(child)
    assert not any(is_alive(pid) for pid in pids)


def test_the_lock_file_names_everything_that_runs(supervisor: Supervisor, tmp_path: Path) -> None:
    parts = [started(supervisor, name, PATIENT) for name in ("first", "second")]

    assert (tmp_path / "lock").read_text().split() == [str(os.getpid()), *(str(pid_of(part)) for part in parts)]


def test_a_part_that_does_not_listen_is_killed(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.demo.supervisor._STOP_SECONDS", 0.3)
    part = started(supervisor, "stubborn", STUBBORN)

    supervisor.stop()

    assert not is_alive(pid_of(part))


def test_a_part_that_ends_while_starting_is_told_with_its_log(supervisor: Supervisor) -> None:
    part = supervisor.start("broken", python("import sys; sys.exit('no disk left')"))

    with pytest.raises(PartFailed, match=r"(?s)broken ended with code 1.*broken \| no disk left"):
        supervisor.wait_for(part, lambda: False, seconds=60)


def test_a_part_that_never_gets_ready_is_told(supervisor: Supervisor) -> None:
    part = started(supervisor, "slow", PATIENT)

    with pytest.raises(PartFailed, match="slow did not answer within 0 s"):
        supervisor.wait_for(part, lambda: False, seconds=0)


def test_a_dead_part_is_started_again_until_it_keeps_dying(supervisor: Supervisor, said: Said) -> None:
    supervisor.start("weak", python("raise SystemExit(7)"))

    with pytest.raises(PartFailed, match=r"weak keeps dying \(last exit code 7\)"):
        supervisor.watch()

    assert len([line for line in said.lines if "starting it again" in line]) == 3


def test_only_one_runs_from_a_folder(tmp_path: Path) -> None:
    with only_one(tmp_path / "lock"), pytest.raises(AlreadyRunning, match=f"processes {os.getpid()}"), only_one(tmp_path / "lock"):
        pass
    with only_one(tmp_path / "lock"):
        pass


def test_what_a_killed_supervisor_left_keeps_the_lock(tmp_path: Path) -> None:
    with only_one(tmp_path / "lock") as lock:
        left = subprocess.Popen(python(PATIENT), stdout=subprocess.DEVNULL, pass_fds=(lock.fileno(),))
    try:
        with pytest.raises(AlreadyRunning), only_one(tmp_path / "lock"):
            pass
    finally:
        left.kill()
        left.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_polite_signal_asks_once(number: signal.Signals) -> None:
    former = signal.getsignal(number)

    with stoppable():
        with pytest.raises(StopAsked):
            signal.raise_signal(number)
        # The second one changes nothing: stopping is under way.
        signal.raise_signal(number)

    assert signal.getsignal(number) is former
