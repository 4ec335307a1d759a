"""The process that runs the scripts of these tests hides no error, and no script sees another."""

import json

import pytest
from forks import Forks


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    made = Forks(tmp_path_factory.mktemp("forks"), "json", "no_such_module")
    yield made
    made.close()


SEEN = """
import builtins, os, sys
print([hasattr(builtins, "left"), "json" in sys.modules, os.environ.get("LEFT"), sys.argv[1:]])
builtins.left = os.environ["LEFT"] = sys.argv[1]
"""


def test_a_script_sees_nothing_of_the_one_before(forks):
    for word in ("a", "b"):
        (printed,) = forks.run(SEEN, word)
        assert printed == f"[False, True, None, ['{word}']]\n"


def test_an_error_is_shown_and_the_next_script_runs(forks):
    with pytest.raises(AssertionError, match=r"failed\n: (?s:.*)ValueError: wrong"):
        forks.run("raise ValueError('wrong')")
    with pytest.raises(AssertionError, match="failed"):
        forks.run("import os; os._exit(3)")
    with pytest.raises(AssertionError, match="No module named 'no_such_module'"):
        forks.run("import no_such_module")
    assert forks.run("print(1)") == ["1\n"]


def test_two_ranks_know_theirs_and_one_that_fails_ends_the_other(forks, tmp_path):
    code = "import json, os, sys; print(json.dumps([os.environ['RANK'], sys.argv[1], os.getcwd()]))"
    printed = forks.run(code, "rank {rank}", ranks=2, cwd=tmp_path, WORLD_SIZE="2")
    assert [json.loads(one) for one in printed] == [
        [rank, f"rank {rank}", str(tmp_path)] for rank in "01"
    ]
    waits = "import sys, time\nif sys.argv[1] == '1': sys.exit('gone')\ntime.sleep(3600)"
    with pytest.raises(AssertionError, match="gone"):
        forks.run(waits, "{rank}", ranks=2)


def test_a_process_that_ended_starts_anew(forks):
    forks.kill()
    forks.process.wait()
    assert forks.run("print(2)") == ["2\n"]
