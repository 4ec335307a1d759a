"""What options of surfaces refuse."""

import numpy as np
import pytest

from segiou.cli.main import main
from segiou.measures.surfaces.options import SurfaceOptions


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: SurfaceOptions(tolerances=3),
            "tolerances must be a sequence of dist.*, not int",
        ),
        (lambda: SurfaceOptions([object()]), "tolerances must be a number, not object"),
        (lambda: SurfaceOptions(border="no"), "border must be True or False, not str"),
        (lambda: SurfaceOptions(spacing="12"), "spacing must be .*positive numbers.*not str"),
        (lambda: SurfaceOptions(spacing=("1", 2)), "spacing must be a number, not str"),
        (lambda: SurfaceOptions(border=1), "border must be"),
    ],
)
def test_wrong_kinds(call, text):
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: SurfaceOptions(spacing=(0, 1.0)), "spacing must be .*positive numbers"),
        (lambda: SurfaceOptions([np.nan]), "tolerances must be a number, got NaN"),
        (lambda: SurfaceOptions(("-1%",)), "at least 0, got -1%"),
        (lambda: SurfaceOptions((1, 1.0000001)), "tolerances contains duplicates"),
        (lambda: SurfaceOptions(percentiles=(95, 95)), "percentiles contains dup"),
        (lambda: SurfaceOptions(("1mm",)), "has a unit; pass numbers and"),
        (lambda: SurfaceOptions(("1 px",)), "invalid tolerance"),
        (lambda: SurfaceOptions((-1,)), "must not be negative"),
        (lambda: SurfaceOptions(widths=("1%",)), "widths must be distances"),
        (lambda: SurfaceOptions(widths=(1,), border=False), "leave out widths"),
        (lambda: SurfaceOptions.of("medpi"), "convention must be"),
    ],
)
def test_wrong_values(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, text) for text in ("10_1", "1_0.5", "\uff142")),
        (",", "--boundary-tolerance ,: expected lengths"),
    ],
)
def test_wrong_tolerances_of_the_command(text, said, tmp_path, capsys):
    places = ["score", str(tmp_path), str(tmp_path), "--labels", "2"]
    assert main([*places, f"--boundary-tolerance={text}"]) == 2
    assert said in capsys.readouterr().err
