"""``create_tables`` on Amazon's engine."""

from __future__ import annotations

from accessportal.kernel.clock import SystemClock
from accessportal.store.base import registered_models
from accessportal.store.schema import ensure_table, silent_tables


def test_all_tables_answer_and_making_them_again_changes_nothing(engine: str) -> None:
    assert silent_tables() == {}
    for model in registered_models():
        report = ensure_table(model, clock=SystemClock())
        assert not report.created
        assert report.added_indexes == ()
