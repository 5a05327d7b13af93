"""Run a command against Amazon's own DynamoDB Local, in memory, on a free port; stop it afterwards.

    python tools/dynamodb_local.py pytest -m engine

The command finds it by ``AWS_ENDPOINT_URL_DYNAMODB``. The jar comes from the npm package ``amplify-dynamodb-simulator``,
fetched once into ``.engine/`` (nothing of the package is installed or run but the jar) and checked by its digest.
Exit code: the command's own; 3 where Java or npm is missing. It never passes by skipping.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "amplify-dynamodb-simulator"
VERSION = "2.9.30"
SHA256 = "3503ffac19f183407909fecdacf4db51ab1fdad1da7b2f177016670b2d80e4b9"
ENGINE = Path(__file__).resolve().parent.parent / ".engine"
START_SECONDS = 300


class Missing(Exception):
    """Something that this machine must have; the message says what to install."""


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with running(emulator()) as url:
            environment = {**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": url}
            return subprocess.run(command, env=environment, check=False).returncode
    except Missing as error:
        print(f"DynamoDB Local can't run here: {error}", file=sys.stderr)
        return 3


def emulator() -> Path:
    """The folder with the jar, unpacked at the first call."""
    target = ENGINE / f"{PACKAGE}-{VERSION}"
    if not (target / "DynamoDBLocal.jar").exists():
        ENGINE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=ENGINE) as scratch:
            unpacked = _unpack(_fetch(Path(scratch)), Path(scratch))
            shutil.rmtree(target, ignore_errors=True)
            unpacked.rename(target)
    return target


def _fetch(scratch: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not installed (Debian: apt-get install npm).")
    subprocess.run([npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    (archive,) = scratch.glob("*.tgz")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise Missing(f"{archive.name} has the digest {found}, not the expected {SHA256}: it is not the file that was reviewed.")
    return archive


def _unpack(archive: Path, scratch: Path) -> Path:
    with tarfile.open(archive) as tar:
        wanted = [member for member in tar.getmembers() if member.name.startswith("package/emulator/")]
        tar.extractall(scratch, members=wanted, filter="data")
    return scratch / "package" / "emulator"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """DynamoDB Local answers at the address that this yields."""
    java = shutil.which("java")
    if java is None:
        raise Missing("Java is not installed (Debian: apt-get install openjdk-17-jre-headless).")
    port = _free_port()
    flags = [f"-Djava.library.path={folder / 'DynamoDBLocal_lib'}", "-jar", str(folder / "DynamoDBLocal.jar"), "-inMemory", "-sharedDb"]
    # In a folder of its own: it writes a file of metadata to wherever it is started.
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen([java, *flags, "-port", str(port)], stdout=log, stderr=log, cwd=scratch)
        try:
            _wait_until_it_answers(process, port)
            yield f"http://127.0.0.1:{port}"
        except Missing:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise
        finally:
            process.terminate()
            process.wait()


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=2):
                return
        except urllib.error.HTTPError:
            # An unsigned call is refused: that is an answer.
            return
        except OSError:
            time.sleep(0.2)
    raise Missing(f"it did not answer on port {port} within {START_SECONDS} s (exit code {process.poll()}); its output is above.")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
