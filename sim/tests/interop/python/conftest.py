"""One closing line for scripts; a skipped test or an empty run is a failure, never silence."""

import pytest


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = [kind for kind in ("skipped", "xfailed", "xpassed") if reporter.stats.get(kind)]
    if exitstatus == pytest.ExitCode.OK and skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config):
    stats = config.pluginmanager.get_plugin("terminalreporter").stats
    count = {kind: len(stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped")}
    failed = count["failed"] + count["error"]
    print(f"\npython: {count['passed']} passed, {failed} failed, {count['skipped']} skipped")
