from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from segiou.masks import find_masks, pair_folders
from segiou.masks.finding import is_mask
from segiou.masks.sources.opening import open_source


def files(*names: str) -> dict[str, str]:
    return {name: f"/folder/{name}" for name in names}


def ids(pairing) -> list[str]:
    return [pair.id for pair in pairing.pairs]


def test_same_names_pair_whatever_the_ending():
    found = pair_folders(files("b.png", "a.png", "d/c.png"), files("a.npy", "b.tif", "d/c.png"))
    assert ids(found) == ["a", "b", "d/c"]
    assert found.rule == "relative path"
    assert not found.missing + found.extra + found.duplicates


def test_suffixes_are_found_and_named():
    found = pair_folders(
        files("x/a_gtFine_labelIds.png", "y/b_gtFine_labelIds.png"),
        files("x/a_pred.png", "y/b_pred.png"),
    )
    assert ids(found) == ["x/a", "y/b"]
    assert found.rule == (
        "relative path without '_gtFine_labelIds' of the truth and '_pred' of the predictions"
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
    with pytest.raises(ValueError, match="not a valid regular expression"):
        pair_folders(files("a.png"), files("a.png"), key="(")


def test_missing_extra_and_duplicates_are_all_told():
    found = pair_folders(files("a.png", "b.png", "c.png"), files("a.png", "a.npy", "d.png"))
    assert ids(found) == ["a"]
    assert found.missing == ("/folder/b.png", "/folder/c.png")
    assert found.extra == ("/folder/d.png",)
    assert found.duplicates == (("a", ("/folder/a.png", "/folder/a.npy")),)


def test_one_file_each_pairs():
    assert len(pair_folders(files("a.png"), files("a.png")).pairs) == 1


@pytest.mark.parametrize(
    ("truth", "pred"),
    [
        ("img_51_gt.png", "img_92.png"),
        ("frame-0079_0000.png", "frame-0015.png"),
        ("a/case_14.4-label.png", "case_7.3_pred.png"),
    ],
)
def test_one_file_each_of_different_numbers_is_not_a_pair(truth, pred):
    """Their numbers were the suffixes of all files of a side."""
    found = pair_folders({truth: truth}, {pred: pred})
    assert (found.pairs, found.missing, found.extra) == ((), (truth,), (pred,))


def test_one_file_each_may_have_different_numbers_in_one_suffix():
    for truth, pred in (("case_01.png", "case_01_0000.png"), ("a_2_gt.png", "a_02_pred.png")):
        (pair,) = pair_folders({truth: truth}, {pred: pred}).pairs
        assert (pair.truth, pair.pred) == (truth, pred)


def test_masks_are_found_below_and_hidden_ones_are_not(tmp_path):
    for name in ("a.png", "sub/b.TIF", ".hidden/c.png", "notes.txt", "._a.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert sorted(find_masks(tmp_path)) == ["a.png", "sub/b.TIF"]


def test_linked_folders_are_searched_once(tmp_path):
    """As data sets are composed of folders in other places; they were left out."""
    for name in ("a.png", "x/b.png", "x/y/c.png"):
        (tmp_path / "other" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "other" / name).touch()
    root, linked = tmp_path / "root", tmp_path / "other" / "x"
    root.mkdir()
    (root / "night").symlink_to(linked)
    expected = {"night/b.png": f"{root}/night/b.png", "night/y/c.png": f"{root}/night/y/c.png"}
    assert find_masks(root) == expected
    # Links upwards, to one another and in circles end.
    (linked / "up").symlink_to(tmp_path)
    (linked / "y" / "self").symlink_to(linked / "y")
    (linked / "y" / "back").symlink_to(root)
    assert find_masks(root) == expected
    (root / "day").symlink_to(linked)
    with pytest.raises(ValueError, match=r"leads to the same folder as .*; keep one of the links"):
        find_masks(root)


@pytest.mark.parametrize("links", [("b", "c"), ("a/sub/b",), ("b", "a/c")])
def test_no_mask_is_found_twice_by_links_inside_the_folder(tmp_path, links):
    for name in ("a/x.png", "a/sub/y.png"):
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).touch()
    (tmp_path / "root" / "z").mkdir()
    for link in links:
        target = tmp_path / "root" / ("z" if link.startswith("a/") else "a")
        (tmp_path / "root" / link).symlink_to(target)
    assert sorted(find_masks(tmp_path / "root")) == ["a/sub/y.png", "a/x.png"]


def test_patterns_pass_links_in_circles_once(tmp_path, monkeypatch):
    for name in ("top/a/1.png", "out/b/2.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "top" / "0").symlink_to(tmp_path / "out")
    (tmp_path / "out" / "back").symlink_to(tmp_path / "top")
    paths = [str(tmp_path / "top" / name) for name in ("0/b/2.png", "a/1.png")]
    # Several links to the same folder have paths without end.
    for name in ("top/self", "top/a/up", "top/a/self"):
        (tmp_path / name).symlink_to(tmp_path / "top")
    patterns = {"**/*.png": paths, "[a0]/**/[12].png": paths, "[as]*": paths[1:], "**/a": paths[1:]}
    for pattern, expected in patterns.items():
        assert sorted(open_source(f"{tmp_path}/top/{pattern}").find().values()) == expected
    monkeypatch.chdir(tmp_path / "top" / "a")
    found = open_source("../../top/**/*.png").find().values()
    assert sorted(found) == ["../../top/0/b/2.png", "../../top/a/1.png"]


@pytest.mark.parametrize("target", ["top/a", "out"])
def test_patterns_that_find_a_mask_twice_by_links_are_refused(tmp_path, target):
    for name in ("out/1.png", "top/a/2.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "top" / "b").symlink_to(tmp_path / "out")
    assert [*open_source(tmp_path / "top" / "*").find()] == ["a/2.png", "b/1.png"]
    (tmp_path / "top" / "c").symlink_to(tmp_path / target)
    first = "a" if target == "top/a" else "b"
    words = rf"top/c: leads to the same folder as {tmp_path}/top/{first}; remove or do not match"
    for pattern in ("top/*", "top/*/*.png"):
        with pytest.raises(ValueError, match=words):
            open_source(tmp_path / pattern).find()
    assert [*open_source(tmp_path / "top" / "[ab]").find()] == ["a/2.png", "b/1.png"]


def test_links_to_hidden_folders_are_followed(tmp_path):
    (tmp_path / ".store" / "7").mkdir(parents=True)
    (tmp_path / ".store" / "7" / "x.png").touch()
    (tmp_path / "a").symlink_to(tmp_path / ".store" / "7")
    assert sorted(find_masks(tmp_path)) == ["a/x.png"]


@pytest.mark.parametrize("inner", ["a", "z"])
def test_links_to_a_folder_and_to_one_inside_it_are_refused(tmp_path, inner):
    (tmp_path / "other" / "sub").mkdir(parents=True)
    (tmp_path / "other" / "sub" / "x.png").touch()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "m").symlink_to(tmp_path / "other")
    (tmp_path / "root" / inner).symlink_to(tmp_path / "other" / "sub")
    with pytest.raises(ValueError, match=r"leads to the same folder as .*; keep one of the links"):
        find_masks(tmp_path / "root")


def test_odd_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        find_masks(tmp_path / "gone")
    with pytest.raises(ValueError, match="no mask files found"):
        find_masks(tmp_path)
    (tmp_path / "file.png").touch()
    with pytest.raises(ValueError, match="is a file, not a folder"):
        find_masks(tmp_path / "file.png")


NUMBERS = [f"{i:04}" for i in range(12)]


def named(form: str, numbers=NUMBERS) -> dict[str, str]:
    return files(*(form.format(n) for n in numbers))


@pytest.mark.parametrize(
    ("truth", "pred", "options"),
    [
        ("{}gt.png", "{}.png", ["--truth-suffix gt"]),
        ("{}gt.png", "{}out.tif", ["--truth-suffix gt --pred-suffix out"]),
        ("{}.png", "a/{}out.png", ["--pred-suffix out"]),
        ("x{}gt.png", "x{}good.png", ["--truth-suffix gt --pred-suffix good"]),
        ("gt_{}.png", "pred_{}.png", [r"--key '(?:^|/)(?:pred_|gt_)([^/]+)\.[^.]+$'"]),
        ("{}.png", "pred_{}.png", [r"--key '(?:^|/)(?:pred_)?([^/]+)\.[^.]+$'"]),
        ("a-{}-b.png", "c_{}_v2.png", [r"--key '(\d+)[^/]*$'"]),
        ("a2-{}-b.png", "c_{}.png", [r"--key '(\d+)[^\d/]*\.[^.]+$'"]),
    ],
)
def test_options_are_proposed_where_names_differ_otherwise(truth, pred, options):
    found = pair_folders(named(truth), named(pred))
    assert found.pairs == ()
    assert [part.partition(" (")[2][:-1] for part in found.hint.split("; or ")] == options
    assert found.hint.startswith("12 pairs match with ")


@pytest.mark.parametrize(
    ("truth", "pred"),
    [
        ("{}gt.png", "{}-out.png"),
        ("gt_{}.png", "pred_{}.png"),
        ("city/{}gt.png", "{}.png"),
        ("a-{}-b.png", "c_{}_v2.png"),
    ],
)
def test_what_is_proposed_pairs_what_it_says(truth, pred):
    files_of = named(truth), named(pred)
    proposed = pair_folders(*files_of).hint.removeprefix("12 pairs match with ")
    options = eval(f"dict({proposed.partition(' (')[0]})")
    found = pair_folders(*files_of, **options)
    assert len(found.pairs) == 12
    for pair in found.pairs:
        assert pair.truth == "/folder/" + truth.format(pair.id[-4:])
        assert pair.pred == "/folder/" + pred.format(pair.id[-4:])
    assert found.hint == ""


def test_several_kinds_of_files_in_one_folder_are_all_proposed():
    kinds = ("labelIds", "color", "instanceIds")
    truth = {k: v for kind in kinds for k, v in named("c/{}_gtFine_" + kind + ".png").items()}
    hint = pair_folders(truth, named("c/{}_leftImg8bit.png")).hint
    assert hint.count("12 pairs match") == 3
    for kind in kinds:
        assert f"--truth-suffix _gtFine_{kind} --pred-suffix _leftImg8bit" in hint


@pytest.mark.parametrize(
    ("truth", "pred"),
    [
        (named("{}.png", NUMBERS[:8]), named("{}.png", NUMBERS[4:])),
        (named("x_{}.png", NUMBERS[:6]), named("x_{}.png", NUMBERS[6:])),
        (files("cat.png", "dog.png"), files("fox.png", "hen.png")),
        (files("a.png"), files("b.png")),
    ],
)
def test_other_images_are_not_talked_into_pairs(truth, pred):
    assert pair_folders(truth, pred).hint == ""


def test_a_hyphen_cannot_be_taken_for_an_option():
    hint = pair_folders(named("{}_gt.png"), named("{}-x.png") | files("zebra.png")).hint
    assert "(--truth-suffix _gt --pred-suffix=-x)" in hint


def test_suffixes_may_have_the_ending_of_the_file():
    truth = files("a_gt.png", "a_gt.npy", "a_color.png", "b_gt.PNG")
    for suffix in ("_gt.png", "_gt.PNG"):
        found = pair_folders(truth, files("a.png", "b.png"), truth_suffix=suffix)
        assert [pair.truth for pair in found.pairs] == ["/folder/a_gt.png", "/folder/b_gt.PNG"]
        assert not found.duplicates + found.missing
    found = pair_folders(truth, files("a.png", "b.png"), truth_suffix="_gt")
    assert [key for key, _ in found.duplicates] == ["a"]


def test_a_suffix_that_no_file_has_is_said():
    found = pair_folders(
        named("{}_gt.png"), named("{}.png"), truth_suffix="_tg", pred_suffix="_x.png"
    )
    assert found.hint == (
        "no truth file ends with '_tg'; no predicted file ends with '_x.png'; 12 pairs match "
        "without these options, by relative path without '_gt' of the truth"
    )


def test_a_key_that_is_not_needed_is_said():
    found = pair_folders(named("n_{}.png"), named("n_{}.png"), key="x+")
    assert found.hint == "12 pairs match without these options, by relative path"
    found = pair_folders(named("{}gt.png"), named("{}.png"), key="x+")
    assert found.hint == "12 pairs match with truth_suffix='gt' (--truth-suffix gt)"


@example(["(1"], ["(_1"])
@example(["(_1"], ["(__1"])
@example(["((1"], ["(1"])
@given(
    st.lists(st.text("ab1_-(", min_size=1, max_size=6), min_size=1, max_size=6, unique=True),
    st.lists(st.text("ab1_-(", min_size=1, max_size=6), min_size=1, max_size=6, unique=True),
)
def test_no_names_break_the_search_for_options(truth, pred):
    check_proposals(named("{}.png", truth), named("{}.png", pred))


def check_proposals(truth, pred):
    """Each proposed set of options makes exactly the pairs that it claims; returns their number."""
    found = pair_folders(truth, pred)
    counts = []
    for text in filter(None, found.hint.split("; or ")):
        count, options = re.fullmatch(r"(\d+) pairs? match(?:es)? with (.*) \(--.*", text).groups()
        given_options = eval(f"dict({options})")
        left = {side: given_options.pop(side, "") == "skip" for side in ("missing", "extra")}
        pairing = pair_folders(truth, pred, **given_options)
        assert (len(pairing.pairs), pairing.duplicates) == (int(count), ())
        assert {side: bool(getattr(pairing, side)) for side in left} == left
        assert int(count) > len(found.pairs)
        counts.append(int(count))
    return max(counts, default=len(found.pairs))


#: How a data set names the file of an image of a sequence.
NAMINGS = (
    *("{id}.png", "{id}_gt.png", "{id}-mask.png", "gt_{id}.png", "{id}/mask.png"),
    *("{id}/label.npy", "{sequence}/{id}.png", "{sequence}/{id}_seg.png", "val/{id}/gt.png"),
)


@given(
    st.sampled_from(NAMINGS),
    st.sampled_from(NAMINGS),
    st.lists(st.text("abcü1", min_size=2, max_size=4), min_size=2, max_size=5, unique=True),
    st.booleans(),
    st.booleans(),
)
def test_proposals_of_any_layout_pair_as_they_claim(of_truth, of_pred, names, decomposed, beside):
    sides = []
    for naming in (of_truth, of_pred):
        paths = [naming.format(id=name, sequence=name[0]) for name in names]
        if beside and naming is of_truth and naming.startswith("{id}/"):
            paths += [path.replace("mask", "normal").replace("label", "color") for path in paths]
        form = "NFD" if decomposed and naming is of_truth else "NFC"
        sides.append(files(*(unicodedata.normalize(form, path) for path in paths)))
    check_proposals(*sides)


@pytest.mark.parametrize(
    ("truth", "pred", "pairs"),
    [
        (["{}/mask.png"], "{}.png", 12),
        (["{}/mask.png"], "{}_pred.png", 12),
        (["val/{}/mask.png"], "{}.npy", 12),
        (["{}/color.npy", "{}/segment20.npy", "{}/instance.npy"], "{}_pred.npy", 12),
        (["a/{}/labels.npz"], "a/{}/pred.npz", 12),
        (["{}/labels.npz", "{}/coords.npz"], "{}/pred.npz", 12),
        (["val/{}/labels.npz"], "{}/pred.npz", 12),
    ],
)
def test_folders_of_samples_are_proposed(truth, pred, pairs):
    of_truth = {k: v for form in truth for k, v in named(form).items()}
    assert check_proposals(of_truth, named(pred)) == pairs


def test_masks_are_proposed_before_other_arrays():
    forms = ("{}/color.npy", "{}/instance.npy", "{}/segment20.npy", "{}/normal.npy")
    truth = {k: v for form in forms for k, v in named(form).items()}
    assert "/segment20|_pred" in pair_folders(truth, named("{}_pred.npy")).hint.split("; or ")[0]


def test_masks_of_classes_are_proposed_before_those_of_instances():
    forms = ("{}_instanceids.png", "{}_labelids.png", "{}_color.png")
    truth = {k: v for form in forms for k, v in named(form).items()}
    hints = pair_folders(truth, named("{}_vis.png")).hint.split("; or ")
    assert "'_labelids'" in hints[0]
    assert len(hints) == 3


def test_numbers_are_equal_without_leading_zeros():
    truth = files(*(f"frame_{n:06}.png" for n in range(0, 100, 20)))
    pred = files(*(f"{n}.png" for n in range(0, 100, 5)))
    assert check_proposals(truth, pred) == 5
    assert "extra='skip'" in pair_folders(truth, pred).hint


def test_names_are_compared_in_one_unicode_form():
    composed, decomposed = (unicodedata.normalize(form, "Zürich_1") for form in ("NFC", "NFD"))
    assert composed != decomposed
    found = pair_folders(files(f"{decomposed}.png"), files(f"{composed}.png"))
    assert ids(found) == [composed]
    suffixed = files(f"1_{decomposed}.png"), files("1.png")
    assert ids(pair_folders(*suffixed, truth_suffix=f"_{composed}")) == ["1"]


OF_BENCHMARK = "'s benchmark"
LAYOUTS = {
    "Cityscapes": (
        ["ulm/ulm_000001_000019_gtFine_labelIds.png", "ulm/ulm_000001_000019_gtFine_color.png"],
        ["ulm_000001_000019_leftImg8bit_pred.png"],
        ["ulm_000001_000019"],
    ),
    "ADE20K": (
        ["a/ADE_val_00000001_seg.png", "a/ADE_val_00000001.jpg", "a/ADE_val_00000001_parts_1.png"],
        ["ADE_val_00000001.png"],
        ["ADE_val_00000001"],
    ),
    "Pascal VOC": (
        [
            f"VOC2012/{folder}/2007_000032.{ending}"
            for folder, ending in (
                ("JPEGImages", "jpg"),
                ("SegmentationClass", "png"),
                ("SegmentationObject", "png"),
            )
        ],
        ["2007_000032.png"],
        ["2007_000032"],
    ),
    "nuScenes": (
        [f"v1.0-mini/{'0a' * 16}_lidarseg.bin"],
        [f"val/{'0a' * 16}.npy", f"val/{'0b' * 16}.npy"],
        ["0a" * 16],
    ),
    "SemanticKITTI": (
        [f"sequences/{s}/labels/000000.label" for s in ("08", "09")],
        [f"sequences/{s}/predictions/000000.label" for s in ("08", "09")],
        ["08/000000", "09/000000"],
    ),
    "ScanNet": (
        [
            f"scene000{s}_00/{kind}-filt/{i}.png"
            for s in (0, 1)
            for kind in ("label", "instance")
            for i in (0, 20)
        ],
        [f"scene000{s}_00/0000{i}.png" for s in (0, 1) for i in ("00", "20")],
        [f"scene000{s}_00/{i}" for s in (0, 1) for i in (0, 20)],
    ),
    f"ScanNet{OF_BENCHMARK}": (
        [f"scene000{s}_00/label/0000{i}.png" for s in (0, 1) for i in ("00", "20")],
        [f"scene000{s}_00_0000{i}.png" for s in (0, 1) for i in ("00", "20")],
        [f"scene000{s}_00/{i}" for s in (0, 1) for i in (0, 20)],
    ),
}


@pytest.mark.parametrize("whose", LAYOUTS)
def test_folders_as_data_sets_are_published(whose):
    truth, pred, ids = LAYOUTS[whose]
    found = pair_folders({name: name for name in truth}, {name: name for name in pred})
    assert [pair.id for pair in found.pairs] == ids
    if whose != "nuScenes":
        assert found.rule == f"{whose.removesuffix(OF_BENCHMARK)} file names"
        assert not (found.missing or found.extra or found.duplicates)


def test_a_published_layout_says_what_is_missing():
    truth = [
        f"ulm_00000{i}_000019_gtFine_{kind}.png" for i in (1, 2) for kind in ("color", "labelIds")
    ]
    found = pair_folders({name: name for name in truth}, {"ulm_000001_000019.png": "p"})
    assert found.missing == ("ulm_000002_000019_gtFine_labelIds.png",)


def test_only_labels_of_points_are_masks_among_binary_files():
    assert is_mask("lidarseg/0a_lidarseg.bin")
    assert not is_mask("velodyne/000000.bin")


def test_files_without_a_key_on_both_sides_are_counted():
    truth, pred = ("a_1.png", "b_1.png", "c.png"), ("a_1.png", "b.png", "c.png")
    sides = files(*truth), {name: f"/other/{name}" for name in pred}
    assert pair_folders(*sides, key=r"(\w)_1").skipped == (1, 2)
    assert pair_folders(*sides, truth_suffix="_1").skipped == (1, 0)
    assert pair_folders(*sides).skipped == (0, 0)
