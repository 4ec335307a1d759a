"""Files written by the programs themselves: their own export code, read by segiou."""

from __future__ import annotations

import json

import numpy as np
import pytest

import segiou
from segiou.measures.scores import ScoreOptions

pytestmark = [pytest.mark.gate, pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(42)
REGIONS = {"background": 0, "whole": [1, 2, 3], "core": [2, 3], "enhancing": [3]}
CLASSES = {"background": 0, "a": 1, "b": 2, "c": 3}


@pytest.fixture
def folders(tmp_path):
    paths = [tmp_path / side for side in ("truth", "pred")]
    for path in paths:
        path.mkdir()
    return paths


def table(truth, pred, classes):
    both = np.ravel(truth).astype(np.intp) * classes + np.ravel(pred)
    return np.bincount(both, minlength=classes**2).reshape(classes, classes).tolist()


@pytest.mark.parametrize("size", [(6, 5, 6), (6, 5, 4), (1, 6, 6)], ids=str)
@pytest.mark.parametrize("labels", [CLASSES, REGIONS], ids=["classes", "regions"])
def test_nnunet(folders, size, labels):
    export = pytest.importorskip("nnunetv2.inference.export_prediction")
    plans = pytest.importorskip("nnunetv2.utilities.plans_handling.plans_handler")
    torch, sitk = pytest.importorskip("torch"), pytest.importorskip("SimpleITK")
    is_flat = size[0] == 1
    spacing = [999.0, 1.0, 1.0] if is_flat else [3.0, 2.0, 1.0]
    configuration = {
        "spacing": spacing,
        "architecture": {},
        "resampling_fn_probabilities": "resample_data_or_seg_to_shape",
        "resampling_fn_probabilities_kwargs": {"is_seg": False, "order": 1, "order_z": 0},
    }
    manager = plans.PlansManager({
        "image_reader_writer": "SimpleITKIO",
        "transpose_forward": [0, 1, 2],
        "transpose_backward": [0, 1, 2],
        "configurations": {"3d_fullres": configuration},
    })  # fmt: skip
    axes = 2 if is_flat else 3
    properties = {
        "spacing": spacing,
        "shape_before_cropping": size,
        "shape_after_cropping_and_before_resampling": size,
        "bbox_used_for_cropping": [[0, n] for n in size],
        "sitk_stuff": {
            "spacing": tuple(spacing[::-1][:axes]),
            "origin": (0.0,) * axes,
            "direction": tuple(np.eye(axes).ravel()),
        },
    }
    dataset = {"labels": labels, "file_ending": ".nii.gz", "regions_class_order": [1, 2, 3]}
    truth, pred = folders
    (truth.parent / "dataset.json").write_text(json.dumps(dataset))
    heads = 3 if labels is REGIONS else 4
    logits = torch.from_numpy(RNG.normal(size=(heads, *size)).astype(np.float32))
    export.export_prediction_from_logits(
        logits, properties, manager.get_configuration("3d_fullres"), manager, dataset,
        str(pred / "case"), save_probabilities=True,
    )  # fmt: skip
    (pred / "case.nii.gz").rename(truth.parent / "exported.nii.gz")
    expected = sitk.GetArrayFromImage(sitk.ReadImage(str(truth.parent / "exported.nii.gz")))
    labelled = RNG.integers(0, 4, expected.shape).astype(np.uint8)
    image = sitk.GetImageFromArray(labelled)
    image.SetSpacing(properties["sitk_stuff"]["spacing"])
    sitk.WriteImage(image, str(truth / "case.nii.gz"))
    how = {"labels": truth.parent / "dataset.json", "measures": [ScoreOptions()]}
    run = segiou.score_folder(truth, pred, **how)
    assert run.total().matrix.tolist() == table(labelled, expected, 4)


def test_monai(folders):
    monai, torch = pytest.importorskip("monai"), pytest.importorskip("torch")
    truth, pred = RNG.integers(0, 3, (2, 6, 5, 4))
    logits = torch.from_numpy(np.moveaxis(np.eye(3)[pred], -1, 0))
    discrete = monai.transforms.AsDiscrete
    sides = discrete(to_onehot=3)(torch.from_numpy(truth)[None]), discrete(argmax=True)(logits)
    one_hot = discrete(argmax=True, to_onehot=3)(logits)
    with pytest.raises(ValueError, match="argmax=0"):
        segiou.ConfusionMatrix(3).update(sides[0], one_hot)
    expected = table(truth, pred, 3)
    counted = segiou.ConfusionMatrix(3).update(sides[0], one_hot, argmax=0)
    assert counted.matrix.tolist() == expected
    for folder, side in zip(folders, (torch.from_numpy(truth)[None], sides[1]), strict=True):
        writer = monai.data.NibabelWriter()
        writer.set_data_array(side, channel_dim=0)
        writer.set_metadata({"affine": np.diag([1, 2, 3, 1])})
        writer.write(str(folder / "case.nii.gz"))
    assert segiou.score_folder(*folders, labels=3).total().matrix.tolist() == expected


def test_totalsegmentator(folders):
    own = pytest.importorskip("totalsegmentator.nnunet")
    nibabel = pytest.importorskip("nibabel")
    masks = RNG.integers(0, 3, (2, 6, 5, 4)).astype(np.uint8)
    names = {1: "liver", 2: "spleen"}
    for folder, mask in zip(folders, masks, strict=True):
        out = folder / "s0001" / "segmentations"
        out.mkdir(parents=True)
        work = folder.parent / f"work_{folder.name}"
        work.mkdir()
        nibabel.save(nibabel.Nifti1Image(mask, np.eye(4)), work / "s01.nii.gz")
        for item in names.items():
            own.save_segmentation_nifti(item, work, out, "None", None, "total", quiet=True)
    labels = ["background", *names.values()]
    with pytest.raises(segiou.DataError, match=r"class_files='\{id\}/segmentations/\{class\}'"):
        segiou.score_folder(*folders, labels=labels)
    run = segiou.score_folder(*folders, labels=labels, class_files="{id}/segmentations/{class}")
    assert [row.dice for row in run.report().classes][1:] == [
        2 * ((masks == k).all(0).sum()) / (masks == k).sum() for k in names
    ]


def test_ultralytics(folders):
    results = pytest.importorskip("ultralytics.engine.results")
    pytest.importorskip("yaml")
    torch, image = pytest.importorskip("torch"), pytest.importorskip("PIL.Image")
    truth = np.zeros((40, 60), np.uint8)
    truth[5:21, 10:31], truth[25:36, 40:56] = 1, 2
    found = [truth == 1, truth == 2]
    boxes = torch.tensor([[10, 5, 30, 20, 0.9, 0], [40, 25, 55, 35, 0.8, 1]])
    one = results.Results(
        np.zeros((40, 60, 3), np.uint8), "a.jpg", {0: "cat", 1: "dog"}, boxes=boxes,
        masks=torch.from_numpy(np.stack(found).astype(np.float32)),
    )  # fmt: skip
    image.fromarray(truth).save(folders[0] / "a.png")
    # As model.predict(save=True, save_txt=True) arranges them.
    (folders[1] / "labels").mkdir()
    image.fromarray(np.zeros((40, 60, 3), np.uint8)).save(folders[1] / "a.jpg")
    one.save_txt(folders[1] / "labels" / "a.txt")
    names = folders[0].parent / "data.yaml"
    names.write_text("names: {0: cat, 1: dog}")
    labels = {"cat": 1, "dog": 2, "background": 0}
    run = segiou.score_folder(folders[0], folders[1] / "labels", labels=labels, pred_labels=names)
    assert run.total().matrix.tolist() == np.diag([16 * 21, 11 * 16, 40 * 60 - 512]).tolist()
