"""Pairs that a table names."""

import json

import pytest
from mask_files import write_masks

import segiou
from segiou import DataError
from segiou.cli.main import main


@pytest.fixture
def folders(tmp_path):
    write_masks(tmp_path / "truth", {"x": [[0, 1]], "y": [[1, 1]], "other": [[7, 7]]})
    write_masks(tmp_path / "pred", {"task-31": [[0, 1]], "task-12": [[1, 0]]})
    return tmp_path


def score(folders, **options):
    return segiou.score_folder(folders / "truth", folders / "pred", labels=2, **options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.csv", "truth,prediction\nx.png,task-31.png\ny.png,task-12.png\n"),
        ("pairs.tsv", "truth\tpred\ntruth/x.png\tpred\\task-31.png\ny.png\ttask-12.png\n"),
        (
            "pairs.jsonl",
            '{"truth": "./truth/x.png", "prediction": "task-31.png"}\n'
            '{"truth": "y.png", "prediction": "pred/task-12.png"}\n',
        ),
    ],
)
def test_rows_are_pairs(folders, name, text):
    (folders / name).write_text(text)
    run = score(folders, pairs=folders / name)
    assert [id.rpartition("/")[2] for id in run.ids] == ["x", "y"]
    # Image x is equal; of image y one of two pixels of class 1 is found.
    assert run.total().iou().tolist() == [1 / 2, 2 / 3]
    assert run.provenance["pairs"].endswith(name)


def test_ids_and_one_folder(folders, capsys):
    (folders / "pairs.csv").write_text(
        "id,truth,prediction\n"
        "second,truth/y.png,pred/task-12.png\n"
        "first,truth/x.png,pred/task-31.png\n"
    )
    words = ["score", str(folders), str(folders), "--labels", "2", "--format", "json", "-q"]
    assert main([*words, "--pairs", str(folders / "pairs.csv"), "--worst", "2"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert sorted(image["id"] for image in shown["worst_images"]["rows"]) == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("truth,prediction\nx.png,gone.png\n", "row 1: gone.png is not a file of the prediction"),
        ("truth,prediction\n,task-31.png\n", "row 1: an empty cell is not a file of the truth"),
        (
            "truth,prediction\nx.png,task-31.png\nx.png,task-12.png\n",
            "row 2: two pairs have the id 'x'; add a column id",
        ),
    ],
)
def test_rows_that_are_not_pairs_are_named(folders, text, message):
    (folders / "pairs.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        score(folders, pairs=folders / "pairs.csv")


def test_tables_without_a_column_and_other_options(folders):
    (folders / "pairs.csv").write_text("truth,image\nx.png,task-31.png\n")
    with pytest.raises(ValueError, match="has no column 'prediction'; columns: truth, image"):
        score(folders, pairs=folders / "pairs.csv")
    with pytest.raises(ValueError, match="pairs names the pairs, so key would have no effect"):
        score(folders, pairs=folders / "pairs.csv", key="x")
    with pytest.raises(TypeError, match="pairs"):
        score(folders, pairs=3)


def test_a_row_that_pairs_a_file_with_itself_is_an_error(folders):
    (folders / "pairs.csv").write_text("truth,prediction\ntruth/x.png,truth/x.png\n")
    with pytest.raises(DataError):
        segiou.score_folder(folders, folders, labels=2, pairs=folders / "pairs.csv")
