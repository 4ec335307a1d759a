"""What a test does where its program is not installed."""

import pytest


def test_an_absent_program_skips_its_test(peer, monkeypatch):
    monkeypatch.delenv("SEGIOU_REQUIRE_PEERS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="segiou_no_such_program cannot be imported"):
        peer("segiou_no_such_program")


def test_an_absent_program_fails_where_it_is_required(peer, monkeypatch):
    monkeypatch.setenv("SEGIOU_REQUIRE_PEERS", "1")
    with pytest.raises(pytest.fail.Exception, match="segiou_no_such_program cannot be imported"):
        peer("segiou_no_such_program")
