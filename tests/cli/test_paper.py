"""From three folders to a table, a figure and a sentence in LaTeX, as the guide shows."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_masks
from PIL import Image

from segiou.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "paper.md"
COMMANDS = re.findall(r"^segiou .*$", PAGE.read_text("utf-8"), re.M)
(PAPER,) = re.findall(r"^```latex\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
#: Pixels of a row that each model finds of its 20 pixels of building; the other 20 are sky.
FOUND = {"unet": 20, "fcn": 10, "segformer": 5}


@pytest.fixture
def paper(tmp_path, monkeypatch, capsys):
    """The folder in which the commands of the guide ran."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    truth = np.zeros((30, 40), np.uint8)
    truth[:, 20:] = 1
    for name, found in (("truth", 20), *FOUND.items()):
        mask = truth.copy()
        mask[:, 20 + found :] = 0
        write_masks(tmp_path / name, {f"{i:04}": mask for i in range(12)})
    (tmp_path / "images").mkdir()
    for i in range(12):
        Image.new("RGB", (40, 30), (i, 99, 99)).save(tmp_path / "images" / f"{i:04}.jpg")
    for command in COMMANDS:
        assert main([*shlex.split(command)[1:], "--quiet"]) == 0, capsys.readouterr().err
    (tmp_path / "paper.tex").write_text(PAPER)
    return tmp_path


def test_the_guide_takes_six_commands_and_the_readme_leads_to_it():
    assert len([*COMMANDS, "pdflatex paper.tex"]) <= 6
    assert "](docs/howto/paper.md)" in (PAGE.parents[2] / "README.md").read_text("utf-8")


def without_comments(path):
    """The lines that LaTeX reads."""
    return [line.strip() for line in path.read_text().splitlines() if not line.startswith("%")]


@pytest.mark.needs("plots")
def test_results_are_one_table_and_paragraphs(paper):
    shown = without_comments(paper / "table.tex")
    # IoU of building 20, 10 and 5 of 20; of sky 20 of 20, of 30 and of 35.
    assert shown == [
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r"class & unet (\%) & fcn (\%) & segformer (\%) \\",
        r"\midrule",
        r"sky & \textbf{100.00} & 66.67 & 57.14 \\",
        r"building & \textbf{100.00} & 50.00 & 25.00 \\",
        r"\midrule",
        r"mean & \textbf{100.00} & 58.33 & 41.07 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    paragraphs = "\n".join(without_comments(paper / "sentence.tex")).strip().split("\n\n")
    assert [one.partition(": ")[0] for one in paragraphs] == [
        "unet scores higher than fcn",
        "unet scores higher than segformer",
        "fcn scores higher than segformer",
    ]
    assert r"mean IoU 100.00\,\% vs 58.33\,\%. fcn $-$ unet: $-$41.67 points" in paragraphs[0]
    assert all(
        re.search(r" points, no interval, p = 0\.\d+ \(12 images", one) for one in paragraphs
    )
    assert (paper / "figure.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.needs("plots")
def test_the_paper_compiles(paper):
    latex = shutil.which("pdflatex")
    if latex is None:
        pytest.skip("pdflatex is not installed")
    done = subprocess.run(
        [latex, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert (paper / "paper.pdf").stat().st_size > 10_000


def test_sentences_alone_in_other_formats(paper, capsys):
    compare = ["compare", "unet.sqlite", "fcn.sqlite", "--sentence", "--quiet"]
    capsys.readouterr()
    assert main(compare) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("unet scores higher than fcn: mean IoU 100.00 % vs 58.33 %.")
    assert "class" not in text.partition("Caution")[0]
    assert main([*compare, "--format", "csv"]) == 2
    assert "CSV has no sentences" in capsys.readouterr().err
    assert main([*compare, "--table", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["scores"]["iou"]["mean"][1]["value"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert data["sentences"][0].startswith("unet scores higher than fcn")
    assert main([*compare, "--html", "page.html"]) == 2
    assert "--sentence prints the verdicts of single runs; omit --html" in capsys.readouterr().err
