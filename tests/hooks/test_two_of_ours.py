"""Two of ours in one loop: all classes, and without the background. Neither changes the other."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from segiou import ConfusionMatrix

#: IoU .75, .5 and .5 of classes 0, 1 and 2: means .5833 of all, .5 without the first.
TRUTH = np.array([[[0, 0, 0, 1], [1, 1, 2, 2]]])
PRED = np.array([[[0, 0, 0, 0], [1, 1, 2, 1]]])
ALL, FOREGROUND = (0.75 + 0.5 + 0.5) / 3, 0.5
NAMES = ["background", "a", "b"]


def test_the_arrays_give_these_means():
    cm = ConfusionMatrix(3).update(TRUTH, PRED)
    assert cm.iou().tolist() == [0.75, 0.5, 0.5]
    assert ConfusionMatrix(3, exclude=0).update(TRUTH, PRED).mean_iou() == FOREGROUND
    # Dice 6/7, 4/6 and 2/3.
    assert cm.mean_dice() == pytest.approx((6 / 7 + 4 / 6 + 2 / 3) / 3)


@pytest.fixture
def validated(need, tmp_path):
    pl, torch = need("lightning.pytorch"), need("torch")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(pl.LightningModule):
        where = None

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            if self.where == "step":
                self.log("val/mean_iou", 0.25)
            return {"truth": batch[0], "pred": batch[1]}

        def on_validation_epoch_end(self):
            if self.where == "end":
                self.log("val/mean_iou", 0.25)

    def run(*callbacks, where=None, loaders=1, logger=False):
        data = torch.utils.data.TensorDataset(torch.from_numpy(TRUTH), torch.from_numpy(PRED))
        trainer = pl.Trainer(
            accelerator="cpu",
            callbacks=[*callbacks],
            logger=logger,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        module = Module()
        module.where = where
        each = [torch.utils.data.DataLoader(data) for _ in range(loaders)]
        trainer.validate(module, each if loaders > 1 else each[0], verbose=False)
        return {k: float(v) for k, v in trainer.callback_metrics.items()}

    return run


def test_lightning_with_a_prefix(validated):
    from segiou.hooks.lightning import SegmentationScores

    both = (
        SegmentationScores(NAMES, scores=["mean_iou"]),
        SegmentationScores(NAMES, scores=["mean_iou"], exclude=0, prefix="foreground/"),
    )
    found = validated(*both)
    assert found["val/mean_iou"] == pytest.approx(ALL)
    assert found["val/foreground/mean_iou"] == pytest.approx(FOREGROUND)
    one = validated(SegmentationScores(NAMES, scores=["mean_iou", "mean_iou_foreground"]))
    assert list(one.values()) == pytest.approx([ALL, FOREGROUND])


def test_lightning_rejects_equal_names(validated):
    from segiou.hooks.lightning import SegmentationScores

    both = SegmentationScores(NAMES), SegmentationScores(NAMES, exclude=0)
    with pytest.raises(ValueError, match=r"two SegmentationScores log 'frequency.*prefix="):
        validated(*both)
    with pytest.raises(ValueError, match=r"the module and SegmentationScores log 'val/mean_iou'"):
        validated(SegmentationScores(NAMES), where="step")
    need_error = pytest.importorskip("lightning.pytorch.utilities.exceptions")
    with pytest.raises(need_error.MisconfigurationException, match="val/mean_iou"):
        validated(SegmentationScores(NAMES), where="end")


def test_lightning_combines_loaders(validated):
    from segiou.hooks.lightning import SegmentationScores

    callback = SegmentationScores(NAMES, scores=["mean_iou"], combine=True)
    assert validated(callback, loaders=2) == {"val/mean_iou": pytest.approx(ALL)}
    assert callback.counts[0].pixels == 16


@pytest.fixture
def ignite_state(need):
    engine, torch = need("ignite.engine"), need("torch")

    def run(**metrics):
        evaluator = engine.Engine(lambda engine, batch: batch)
        for name, metric in metrics.items():
            metric.attach(evaluator, name)
        return evaluator.run([(torch.from_numpy(PRED), torch.from_numpy(TRUTH))]).metrics

    return run


def test_ignite_names_start_with_the_attached_one(ignite_state):
    from segiou.hooks.ignite import SegmentationScores

    found = ignite_state(
        all=SegmentationScores(NAMES),
        fg=SegmentationScores(NAMES, exclude=0),
        one=SegmentationScores(NAMES, scores="mean_iou_foreground"),
    )
    assert found["all/mean_iou"] == pytest.approx(ALL)
    assert found["fg/mean_iou"] == found["one"] == FOREGROUND
    assert found["all"]["iou/a"] == found["fg/iou/a"] == 0.5
    assert "mean_iou" not in found


def test_ignite_rejects_equal_names(need):
    engine = need("ignite.engine")
    from segiou.hooks.ignite import SegmentationScores

    evaluator = engine.Engine(lambda engine, batch: batch)
    SegmentationScores(NAMES).attach(evaluator, "val")
    with pytest.raises(ValueError, match="attached to this engine as 'val'; choose another"):
        SegmentationScores(NAMES).attach(evaluator, "val")


KERAS = """
import json, sys, warnings
import numpy as np
import keras
from segiou.hooks.keras import SegmentationScores

truth, pred = np.array(json.loads(sys.argv[1])), np.array(json.loads(sys.argv[2]))
scores = np.eye(3, dtype="float32")[pred]
first = keras.Input((2, 4, 3))
model = keras.Model(first, keras.layers.Activation("linear")(first))

def logged(*metrics, run_eagerly=False):
    model.compile(loss="mse", metrics=[*metrics], run_eagerly=run_eagerly)
    found = model.evaluate(scores, np.eye(3)[truth], verbose=0, return_dict=True)
    return {name: float(value) for name, value in found.items() if name != "loss"}

overall = ["cohen_kappa", "matthews_correlation"]
several = {"scores": ["mean_iou", "iou", *overall, "volumetric_similarity", "mean_iou_foreground"]}
both = logged(SegmentationScores(3, **several),
              SegmentationScores(3, exclude=0, name="fg", **several))
errors = []
for names in ((None, None), ("fg", "fg")):
    metrics = [SegmentationScores(3, exclude=k, name=n, **several) for k, n in enumerate(names)]
    try:
        logged(*metrics)
    except ValueError as error:
        errors.append(str(error))
metric = SegmentationScores(3, name="fg", **several)
again = type(metric).from_config(metric.get_config())
again.update_state(truth, pred)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    again.counts
one = SegmentationScores(3, name="one")
best = keras.callbacks.EarlyStopping(monitor="val_one", restore_best_weights=True)
model.compile(loss="mse", metrics=[one])
given = scores, np.eye(3)[truth]
model.fit(*given, validation_data=given, callbacks=[best], verbose=0)
ties = SegmentationScores(2)  # compiled on JAX; the lowest class wins, as on the host
first = keras.Input((1, 1, 2))
model = keras.Model(first, keras.layers.Activation("linear")(first))
model.compile(loss="mse", metrics=[ties])
model.evaluate(np.array([[[[-0.0, 0.0]]]], "float32"), np.array([[[[1.0, 0.0]]]]), verbose=0)
ties = ties.counts.matrix.tolist()
print(json.dumps({"ties": ties, "both": both, "errors": errors, "again": [*again.result()],
                  "warnings": [str(one.message) for one in caught],
                  "best": float(best.best), "is_max": bool(best.monitor_op(1.0, 0.0))}))
"""


@pytest.mark.parametrize("backend", ["torch"])
def test_keras_names_precede_the_keys(backend, run_keras):
    arguments = json.dumps(TRUTH.tolist()), json.dumps(PRED.tolist())
    out = run_keras(backend, KERAS, *arguments)
    both = out["both"]
    assert both["mean_iou"] == pytest.approx(ALL)
    assert both["mean_iou_foreground"] == pytest.approx(FOREGROUND)
    assert both["fg/mean_iou"] == pytest.approx(FOREGROUND)
    assert both["iou/0"] == 0.75
    # Kappa and Matthews from truth 3, 3 and 2, predictions 4, 3 and 1, of which 3, 2 and 1 agree.
    by_chance = 3 * 4 + 3 * 3 + 2 * 1
    assert both["cohen_kappa"] == pytest.approx((6 * 8 - by_chance) / (64 - by_chance))
    spread = (64 - 9 - 9 - 4) * (64 - 16 - 9 - 1)
    assert both["matthews_correlation"] == pytest.approx((6 * 8 - by_chance) / spread**0.5)
    assert both["volumetric_similarity/0"] == pytest.approx(2 * 3 / 7)
    assert all("pass a different name= to each" in error for error in out["errors"])
    assert len(out["errors"]) == 2
    assert all(key.startswith("fg/") for key in out["again"])
    assert out["warnings"] == []
    assert (out["is_max"], out["best"]) == (True, pytest.approx(ALL))
    assert out["ties"] == [[1, 0], [0, 0]]
