"""Both routines that find distances."""

import pytest

from segiou.regions import surface_points


@pytest.fixture(params=["live", "numpy"])
def backend(request, monkeypatch):
    """Run a test with the compiled routine, if it was built, and with SciPy's."""
    if request.param == "numpy":
        if surface_points._kernel is None:
            pytest.skip("SciPy's is live")
        monkeypatch.setattr(surface_points, "_kernel", None)
        monkeypatch.setattr(surface_points, "warn_missing", lambda module: None)
