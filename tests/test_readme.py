"""What the README shows is what the commands print; what it links to is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from deletable import deleted_in, needs_of
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.cli.options import build_parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", README, re.DOTALL)


def unspaced(line):
    """A line whose blanks and rules are of no length: columns are narrower since rich 14.3."""
    return re.sub(" +|─+", lambda found: found[0][0], line)


@pytest.mark.parametrize(
    ("command", "shown"),
    [pytest.param(*one, marks=needs_of(one[0]), id=one[0][:40]) for one in SESSIONS],
)
def test_output_is_as_shown(command, shown, monkeypatch, capsys):
    program, *words = shlex.split(command)
    assert program == "segiou"
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    code, found = main(words), capsys.readouterr()
    assert code == 0, found.err
    lines = [unspaced(line) for line in found.out.splitlines()]
    position = 0
    for line in shown.splitlines():
        if line != "…":
            position = lines.index(unspaced(line), position)


def test_there_is_a_session_to_check():
    assert SESSIONS


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).exists()] == []


ROWS = re.findall(r"^\| `([^`]+)` \|", README, re.MULTILINE)
COMMANDS = [row for row in ROWS if row.startswith(("segiou ", "… "))]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with everything that the commands of the table need."""
    folder, streets = tmp_path_factory.mktemp("readme"), ROOT / "fixtures" / "streets"
    scored = ["score", f"{streets}/truth", "--labels", f"{streets}/labels.toml", "--quiet"]
    for name, model, part in (
        *(("RUN", "model_a", "1/1"), ("MODEL_A", "model_a", "1/1"), ("MODEL_B", "model_b", "1/1")),
        *(("PART_1", "model_a", "1/2"), ("PART_2", "model_a", "2/2")),
    ):
        shard = ["--shard", part, "--run", str(folder / name), "--output", str(folder / "x.txt")]
        assert main([*scored[:2], f"{streets}/{model}", *scored[2:], *shard]) == 0
    (folder / "masks").symlink_to(streets / "truth")
    (folder / "images").symlink_to(streets / "images")
    (folder / "SAMPLE.csv").write_text("map,reference\na,a\na,b\nb,b\nb,b\n", encoding="utf-8")
    (folder / "AREAS.csv").write_text("class,area\na,20\nb,80\n", encoding="utf-8")
    names = sorted(path.stem for path in (streets / "truth").iterdir())
    rows = [f"{name},{name[:5]}" for name in names]
    (folder / "META.csv").write_text("\n".join(["id,site", *rows]), encoding="utf-8")
    (folder / "probabilities").mkdir()
    values = [one.values[0] for one in segiou.load_labels(streets / "labels.toml").classes]
    for path in (streets / "model_a").iterdir():
        one_hot = segiou.read_mask(path) == np.array(values)[:, None, None]
        np.save(folder / "probabilities" / path.stem, one_hot.astype(np.float16))
    return folder


def filled(command: str) -> list[str]:
    """The words of a command of the table, with real files for what stands in capitals."""
    streets = ROOT / "fixtures" / "streets"
    score = f"segiou score {streets}/truth {streets}/model_a --labels {streets}/labels.toml"
    command = command.replace("segiou score TRUTH PRED --labels SET", score).replace("…", score)
    if "--scores" in command:
        command = command.replace(f"{streets}/model_a", "probabilities")
    command = command.replace("suspects TRUTH PRED", f"suspects {streets}/truth {streets}/model_a")
    command = command.replace("merge A B -o C", "merge PART_1 PART_2 -o merged")
    command = command.replace("compare A B", "compare MODEL_A MODEL_B")
    raters = "".join(f" {streets}/{name}" for name in ("truth", "model_b"))
    command = command.replace(" A/ B/ C/ --model M/", f"{raters} --model net={streets}/model_a")
    command = command.replace("--labels SET", f"--labels {streets}/labels.toml")
    command = command.replace("inspect DIR", "inspect masks").replace(
        "--images DIR", "--images images"
    )
    command = command.replace("REGEX", "north|south").replace("--run FILE", "--run kept")
    words = shlex.split(command)[1:]
    return [*words, "--no-open"] if words == ["explore"] else words


@pytest.mark.usefixtures("one_scene")
@pytest.mark.parametrize(
    "command", [pytest.param(command, marks=needs_of(command)) for command in COMMANDS]
)
@pytest.mark.gate
def test_commands_of_the_table_run(command, workplace, monkeypatch, capsys):
    monkeypatch.chdir(workplace)
    code = main(filled(command))
    found = capsys.readouterr()
    assert code == (1 if "--fail-under" in command and "below" in found.err else 0), found.err
    assert found.out or command.startswith("segiou merge")


def test_every_command_stands_in_the_table():
    shown = {filled(command)[0] for command in COMMANDS if not deleted_in(command)}
    listed = set(re.findall(r"^  ([a-z][a-z-]*) ", build_parser().format_help(), re.MULTILINE))
    assert listed == shown


def test_exit_codes_are_those_of_the_help():
    page, shown = (
        re.findall(r"(?<=[:,] )\d+(?= [a-z])", " ".join(text.split()).partition("Exit codes")[2])
        for text in (README, build_parser().format_help())
    )
    assert page[:6] == shown[:6] == ["0", "1", "2", "3", "70", "130"]


def test_python_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(0)
    for side in ("truth", "predictions", "others"):
        (tmp_path / side).mkdir()
        for name in ("a_1", "a_2", "b_1", "c_1"):
            mask = noise.integers(0, 11, (8, 9), dtype=np.uint8)
            Image.fromarray(mask).save(tmp_path / side / f"{name}.png")
    other_run = segiou.score_folder("truth", "others", labels="camvid")
    logits = noise.random((1, 19, 4, 5))
    names = {"batches": [(logits.argmax(1), logits)], "other_run": other_run}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)
    assert names["cm"].mean_iou() == 1.0
