from __future__ import annotations

import pytest

from segiou.pairing import find_masks, pair_folders


def files(*names: str) -> dict[str, str]:
    return {name: f"/folder/{name}" for name in names}


def ids(pairing) -> list[str]:
    return [pair.id for pair in pairing.pairs]


def test_same_names_pair_whatever_the_ending():
    found = pair_folders(files("b.png", "a.png", "d/c.png"), files("a.npy", "b.tif", "d/c.png"))
    assert ids(found) == ["a", "b", "d/c"]
    assert found.rule == "path within the folder"
    assert not found.missing + found.extra + found.duplicates


def test_suffixes_are_found_and_named():
    found = pair_folders(
        files("x/a_gtFine_labelIds.png", "y/b_gtFine_labelIds.png"),
        files("x/a_pred.png", "y/b_pred.png"),
    )
    assert ids(found) == ["x/a", "y/b"]
    assert found.rule == (
        "path within the folder without '_gtFine_labelIds' of the truth and '_pred' of the "
        "predictions"
    )


def test_part_of_a_common_suffix_may_belong_to_the_key():
    truth = files("a_leftImg8bit_gt.png", "b_leftImg8bit_gt.png")
    found = pair_folders(truth, files("a_leftImg8bit.png", "b_leftImg8bit.png"))
    assert ids(found) in (["a_leftImg8bit", "b_leftImg8bit"], ["a", "b"])


def test_a_common_end_that_is_no_suffix_stays():
    found = pair_folders(files("cat01.png", "dog01.png"), files("cat01.png", "dog01.png"))
    assert ids(found) == ["cat01", "dog01"]


def test_differently_nested_folders_pair_by_name():
    found = pair_folders(files("city/a.png", "town/b.png"), files("a.png", "b.png"))
    assert ids(found) == ["a", "b"]
    assert found.rule == "file name"


def test_given_suffixes_select_files():
    truth = files("a_labelIds.png", "a_color.png", "a_instanceIds.png")
    found = pair_folders(truth, files("a.png"), truth_suffix="_labelIds")
    assert [pair.truth for pair in found.pairs] == ["/folder/a_labelIds.png"]
    assert not found.missing


def test_a_regular_expression_makes_the_key():
    found = pair_folders(files("frame_0001_x.png"), files("out-0001-v2.png"), key=r"(?P<key>\d{4})")
    assert ids(found) == ["0001"]
    assert ids(pair_folders(files("t1.png"), files("p1.png"), key=r"[a-z](\d)")) == ["1"]
    with pytest.raises(ValueError, match="no regular expression"):
        pair_folders(files("a.png"), files("a.png"), key="(")


def test_missing_extra_and_duplicates_are_all_told():
    found = pair_folders(files("a.png", "b.png", "c.png"), files("a.png", "a.npy", "d.png"))
    assert ids(found) == ["a"]
    assert found.missing == ("/folder/b.png", "/folder/c.png")
    assert found.extra == ("/folder/d.png",)
    assert found.duplicates == (("a", ("/folder/a.png", "/folder/a.npy")),)


def test_one_file_each_pairs():
    assert len(pair_folders(files("a.png"), files("a.png")).pairs) == 1


def test_masks_are_found_below_and_hidden_ones_are_not(tmp_path):
    for name in ("a.png", "sub/b.TIF", ".hidden/c.png", "notes.txt", "._a.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert sorted(find_masks(tmp_path)) == ["a.png", "sub/b.TIF"]


def test_odd_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        find_masks(tmp_path / "gone")
    with pytest.raises(ValueError, match="holds no mask files"):
        find_masks(tmp_path)
    (tmp_path / "file.png").touch()
    with pytest.raises(ValueError, match="is a file, not a folder"):
        find_masks(tmp_path / "file.png")
