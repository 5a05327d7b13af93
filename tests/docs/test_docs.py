"""Pages that must say what the code says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from accessportal.conf import Conf
from accessportal.jobs.schedules import SCHEDULES

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("accessportal", "benchmarks", "tests", "tools")
MODULES = [module for where in (ROOT.glob("*.py"), *((ROOT / folder).rglob("*.py") for folder in FOLDERS)) for module in where]


def read(name: str) -> str:
    return (ROOT / name).read_text()


def documented_settings() -> dict[str, str]:
    """Variable to default, from the tables of the page."""
    rows = re.findall(r"^\| `((?:PORTAL|AWS)_[A-Z_]+)` \| (.*?) \|", read("docs/settings.md"), re.MULTILINE)
    return dict(rows)


def test_every_setting_is_documented_and_nothing_else() -> None:
    known = {str(field.validation_alias or f"PORTAL_{name.upper()}") for name, field in Conf.model_fields.items()}

    assert set(documented_settings()) == known


def test_the_documented_defaults_are_the_real_ones() -> None:
    documented = documented_settings()
    for name, field in Conf.model_fields.items():
        told = re.fullmatch(r"`(.+)`", documented[str(field.validation_alias or f"PORTAL_{name.upper()}")])
        if told is None:
            continue
        real = (
            str(field.default).lower()
            if isinstance(field.default, bool)
            else f"{field.default:g}"
            if isinstance(field.default, float)
            else field.default
        )
        assert told.group(1) == str(real), name


def test_every_command_is_named_in_the_readme() -> None:
    ours = {name for name, app in get_commands().items() if str(app).startswith("accessportal.")}

    assert {name for name in ours if f"`{name}" not in read("README.md")} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_command_lines_of_a_page_are_read_by_their_commands(page: Path) -> None:
    whole = page.read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?: {4})?(?:\S*python )?manage\.py ([^`&\n]+)$", whole, re.MULTILINE):
        name, *words = shlex.split(line, comments=True)
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        assert parser.parse_args(words), line


def test_every_schedule_is_in_the_architecture() -> None:
    for job in SCHEDULES:
        when = "every minute" if job.minutes == 1 else f"every {job.minutes} minutes"
        assert f"| `{job.name}` | {when} |" in read("docs/architecture.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_each_decision_has_a_number_of_its_own() -> None:
    numbers = sorted(page.name.partition("-")[0] for page in (ROOT / "docs/decisions").glob("*.md"))

    assert numbers
    assert len(set(numbers)) == len(numbers), numbers


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_pages_name_are_there(page: Path) -> None:
    for named in re.findall(r"\w[\w./-]*\.py\b", page.read_text()):
        assert any(str(module).endswith(f"/{named}") for module in MODULES), named


def test_the_version_is_that_of_the_change_log() -> None:
    version = re.search(r'^version = "(.+)"', read("pyproject.toml"), re.MULTILINE)
    newest = re.search(r"^## (?!Unreleased)(\S+)", read("CHANGELOG.md"), re.MULTILINE)

    assert version is not None
    assert newest is not None
    assert version.group(1) == newest.group(1)


def test_every_target_of_the_makefile_explains_itself() -> None:
    makefile = read("Makefile")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)

    assert {name for name in phony.split() if not re.search(rf"^{name}:.*## \S", makefile, re.MULTILINE)} == set()
