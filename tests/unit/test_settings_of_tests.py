"""The tests stand by themselves."""

from __future__ import annotations

import os

from accessportal.conf import conf
from accessportal.demo.env import published_file


def test_a_portal_that_runs_in_this_folder_is_not_reached() -> None:
    """``.portal/env`` names the running twin; neither our configuration nor the AWS libraries may see it here."""
    assert published_file(os.environ) is None
    assert conf().aws_endpoint_url == ""
    assert "AWS_ENDPOINT_URL" not in os.environ
