"""``python -m accessportal.twin --port 4566 --journal .portal/twin.journal`` starts the twin as a process of its own."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from accessportal.twin.journal import JournalError
from accessportal.twin.server import run_twin
from accessportal.twin.settings import TwinSettings


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop. 0 after a clean stop, 1 when it cannot start, 2 for bad usage."""
    parser = argparse.ArgumentParser(
        prog="python -m accessportal.twin",
        description="A local AWS: DynamoDB, Organizations, Identity Center, S3, KMS and more. Clients find it by AWS_ENDPOINT_URL.",
        epilog="example: python -m accessportal.twin --port 4566 --journal .portal/twin.journal",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=4566, help="port to listen on, 0 for any free one (default: %(default)s)")
    parser.add_argument(
        "--journal", type=Path, default=Path(".portal/twin.journal"), help="file that keeps its state (default: %(default)s)"
    )
    parser.add_argument("--job-seconds", type=float, default=TwinSettings().job_seconds, help="how long an assignment job takes")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s twin %(levelname)s %(message)s")
    try:
        run_twin(host=options.host, port=options.port, journal_path=options.journal, settings=TwinSettings(job_seconds=options.job_seconds))
    except (JournalError, OSError) as error:
        sys.stderr.write(f"The twin cannot start: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
