"""Static files in a bucket: named by what is in them, scripts' imports too, and pages let browsers fetch them from there alone."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.signers import RequestSigner
from django.core.management import call_command
from django.templatetags.static import static
from django.test import override_settings
from pydantic import SecretStr, ValidationError

from accessportal.conf import ROOT, Conf
from tests.fixtures_twin import REGION, Twin

_SIGN = RequestSigner.sign
GIVEN = {"static_bucket": "static-of-tests", "static_url": "https://static.example.com/portal/"}


def settings_with(monkeypatch: pytest.MonkeyPatch, **given: Any) -> dict[str, Any]:
    conf = Conf(secret_key=SecretStr("s" * 50), **given)
    monkeypatch.setattr("accessportal.conf.conf", lambda: conf)
    monkeypatch.setattr("accessportal.observe.logs.configure_structlog", lambda: None)
    return runpy.run_path(str(ROOT / "accessportal/settings.py"))


def test_files_are_collected_under_names_of_what_is_in_them(twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = settings_with(monkeypatch, **GIVEN)
    (tmp_path / "portal").mkdir()
    (tmp_path / "portal/page.js").write_text('import { say } from "./say.js";\nsay();\n')
    (tmp_path / "portal/say.js").write_text("export const say = () => 1;\n")
    with mock.patch.object(RequestSigner, "sign", _SIGN):
        s3: Any = boto3.client("s3", region_name=REGION)
        s3.create_bucket(Bucket=GIVEN["static_bucket"], CreateBucketConfiguration={"LocationConstraint": REGION})
        finder = "django.contrib.staticfiles.finders.FileSystemFinder"
        names = {
            "STATICFILES_FINDERS": [finder],
            "STATICFILES_DIRS": [tmp_path],
            "STATIC_URL": made["STATIC_URL"],
            "STORAGES": made["STORAGES"],
        }
        with override_settings(**names):
            call_command("collectstatic", interactive=False, verbosity=0)
            address = static("portal/page.js")
        assert address.startswith("https://static.example.com/portal/portal/page.")
        page = s3.get_object(Bucket=GIVEN["static_bucket"], Key=address.removeprefix(GIVEN["static_url"]))
    assert page["CacheControl"] == "public, max-age=31536000, immutable"
    script = page["Body"].read()
    assert b'from "./say.' in script
    assert b'"./say.js"' not in script
    assert address != f"{GIVEN['static_url']}portal/page.js"


def test_pages_let_browsers_fetch_them_from_there_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    own = settings_with(monkeypatch)["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]
    far = settings_with(monkeypatch, **GIVEN)["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]
    changed = {name: set(far[name]) - set(own[name]) for name in far if far[name] != own[name]}
    assert changed == {name: {GIVEN["static_url"]} for name in ("script-src", "style-src", "img-src", "font-src")}


@pytest.mark.parametrize("given", [{"static_bucket": "static"}, {"static_url": GIVEN["static_url"]}, GIVEN | {"static_url": "http://x/"}])
def test_settings_that_do_not_go_together_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match=r"belong together|static_url"):
        Conf(**given)  # type: ignore[arg-type]
