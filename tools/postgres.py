"""Run a command against a PostgreSQL server of its own (Debian's package), on a free port; stop it afterwards.

    python tools/postgres.py pytest -m postgres

The command finds it by ``PORTAL_DATABASE_URL``. Everything is in a temporary folder and thrown away.
Exit code: the command's own; 3 where PostgreSQL is missing or doesn't start. It never passes by skipping.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")
# The server refuses to run as root: it then runs as one of these, whichever is there first.
UNPRIVILEGED = ("postgres", "nobody")
START_SECONDS = 300


class Missing(Exception):
    """Something that this machine must have; the message says what to install."""


@dataclass
class Cluster:
    """A server with its data in a folder of its own. ``portal`` may do everything in it."""

    folder: Path
    port: int
    password: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def url(self) -> str:
        return f"postgres://portal:{self.password}@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        password = self.folder / "password"
        password.write_text(self.password)
        for path in (self.folder, password):
            _give_away(path)
        flags = ["--username=portal", f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        self._run("initdb", *flags)

    def start(self) -> None:
        """Raise Missing where it doesn't answer in time."""
        # The data is thrown away in any case: nothing is gained by waiting for the disk.
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c full_page_writes=off"
        self._run("pg_ctl", "-w", "-t", str(START_SECONDS), "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """``immediate`` is what a power cut does."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        environment = {**os.environ, "PGDATA": str(self.folder / "data"), "LC_ALL": "C.UTF-8"}
        # Into a file: a server that stays would hold a pipe open.
        with tempfile.TemporaryFile() as output:
            command = [_program(program), *arguments]
            done = subprocess.run(
                command, env=environment, cwd=self.folder, check=False, stdout=output, stderr=output, user=_user(), extra_groups=_groups()
            )
            if done.returncode != 0:
                output.seek(0)
                log = self.folder / "log"
                sys.stderr.write(output.read().decode(errors="replace") + (log.read_text(errors="replace") if log.exists() else ""))
                raise Missing(f"{program} failed with exit code {done.returncode}; its output is above.")


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with running() as cluster:
            return subprocess.run(command, env={**os.environ, "PORTAL_DATABASE_URL": cluster.url}, check=False).returncode
    except Missing as error:
        print(f"PostgreSQL can't run here: {error}", file=sys.stderr)
        return 3


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A server that answers; what runs inside may stop it and start it again."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        cluster = Cluster(Path(folder), _free_port())
        cluster.create()
        try:
            cluster.start()
            yield cluster
        finally:
            if (cluster.folder / "data" / "postmaster.pid").exists():
                cluster.stop("immediate")


def _program(name: str) -> str:
    # Debian keeps the server's programs out of the path, one folder per version: the newest.
    folders = sorted(DEBIAN.glob("*/bin"), key=lambda folder: int(folder.parent.name), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")]))
    if found is None:
        raise Missing("its server is not installed (Debian: apt-get install postgresql).")
    return found


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in UNPRIVILEGED if name in known)


def _groups() -> list[int] | None:
    return [] if os.geteuid() == 0 else None


def _give_away(path: Path) -> None:
    user = _user()
    if user is not None:
        shutil.chown(path, user)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


if __name__ == "__main__":
    # The server is in no group of ours, so nobody else stops it.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    sys.exit(main(sys.argv[1:]))
