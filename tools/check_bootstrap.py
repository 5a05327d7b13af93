"""Check that the Bootstrap files that we serve are those of the npm package ``bootstrap``, byte for byte.

    python tools/check_bootstrap.py

They come out of the Python package ``bootstrap-wrapper`` (pinned by hash), whose maker is not Bootstrap's.
Exit code: 0 when every file is equal, 1 when one differs or is unknown to Bootstrap, 3 where npm is missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path


def main() -> int:
    spec = find_spec("bootstrap")
    if spec is None or not spec.submodule_search_locations:
        print("The package bootstrap-wrapper is not installed.", file=sys.stderr)
        return 1
    installed = Path(spec.submodule_search_locations[0])
    npm = shutil.which("npm")
    if npm is None:
        print("npm is not installed (Debian: apt-get install npm).", file=sys.stderr)
        return 3
    version = (installed / "version.txt").read_text().strip().removeprefix("v").partition(".post")[0]
    original = _original(npm, version)
    served = [path for path in sorted(installed.rglob("*")) if path.parent.name in ("css", "js") and path.is_file()]
    different = [path.name for path in served if original.get(f"package/dist/{path.parent.name}/{path.name}") != path.read_bytes()]
    for name in different:
        print(f"{name} is not what Bootstrap {version} has", file=sys.stderr)
    print(f"{len(served) - len(different)} of {len(served)} files are those of Bootstrap {version}")
    return 1 if different or not served else 0


def _original(npm: str, version: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([npm, "pack", "--silent", f"bootstrap@{version}"], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(scratch).glob("*.tgz")
        with tarfile.open(archive) as packed:
            members = (member for member in packed.getmembers() if member.isfile() and member.name.startswith("package/dist/"))
            return {member.name: file.read() for member in members if (file := packed.extractfile(member)) is not None}


if __name__ == "__main__":
    sys.exit(main())
