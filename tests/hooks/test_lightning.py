from __future__ import annotations

import json
import logging
import warnings

import numpy as np
import pytest

from segiou import ConfusionMatrix


@pytest.fixture
def lightning(need):
    module = need("lightning.pytorch")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return module


@pytest.fixture
def loader(streets, need):
    torch = need("torch")
    data = torch.utils.data.TensorDataset(
        torch.from_numpy(streets.images), torch.from_numpy(streets.truth).long()
    )
    return lambda: torch.utils.data.DataLoader(data, batch_size=4)


@pytest.fixture
def module(lightning, network, need):
    torch = need("torch")

    class Module(lightning.LightningModule):
        def __init__(self, learning_rate: float = 0.0):
            super().__init__()
            self.net, self.learning_rate, self.metric = network(), learning_rate, None

        def training_step(self, batch, batch_idx):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1], ignore_index=255)

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            logits = self.net(batch[0])
            if self.metric is not None:
                self.metric.update(logits, batch[1])
                self.log("val_own", self.metric)
            return {"truth": batch[1], "pred": logits}

        test_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=self.learning_rate)

    return Module


def trainer(lightning, tmp_path, *callbacks, **options):
    return lightning.Trainer(
        default_root_dir=tmp_path,
        accelerator="cpu",
        callbacks=list(callbacks),
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"enable_checkpointing": False, **options},
    )


def test_fit_with_the_sanity_check_on(lightning, module, loader, answer, streets, tmp_path):
    from segiou.hooks.lightning import SegmentationScores
    from segiou.hooks.torchmetrics import SegmentationScores as Metric

    seen = []
    callback = SegmentationScores(
        streets.names, ignore=255, report=lambda report, epoch: seen.append((epoch, report.pixels))
    )
    model = module()
    model.metric = Metric(streets.names, ignore=255)
    fit = trainer(lightning, tmp_path, callback, max_epochs=2, num_sanity_val_steps=1)
    fit.fit(model, loader(), loader())
    np.testing.assert_array_equal(callback.counts[0].matrix, answer.matrix)
    # Two epochs, each from nothing; the sanity check left no trace and no report.
    assert seen == [(0, answer.pixels), (1, answer.pixels)]
    logged = fit.callback_metrics
    assert float(logged["val/mean_iou"]) == pytest.approx(answer.mean_iou(), rel=1e-6)
    assert float(logged["val_own"]) == pytest.approx(answer.mean_iou(), rel=1e-6)
    assert {f"val/iou/{name}" for name in streets.names} <= set(logged)
    assert all(value.ndim == 0 for value in logged.values())


def test_each_epoch_scores_the_network_of_that_epoch(
    lightning, module, loader, streets, tmp_path, need
):
    from segiou.hooks.lightning import SegmentationScores

    path = tmp_path / "reports" / "{stage}_{epoch:03d}.json"
    callback = SegmentationScores(streets.names, ignore=255, report=path)
    model = module(learning_rate=0.5)
    trainer(lightning, tmp_path, callback, max_epochs=2).fit(model, loader(), loader())
    with need("torch").no_grad():
        pred = model.net(need("torch").from_numpy(streets.images))
    trained = ConfusionMatrix(streets.names, ignore=255).update(streets.truth, pred, argmax=1)
    assert callback.counts[0].matrix.tolist() == trained.matrix.tolist()
    first, last = (json.loads(path.read_text()) for path in sorted(tmp_path.glob("reports/*")))
    assert first["mean_iou"] != last["mean_iou"] == trained.mean_iou()


def test_test_loop_with_two_loaders(lightning, module, loader, answer, streets, tmp_path):
    from segiou.hooks.lightning import SegmentationScores

    callback = SegmentationScores(streets.names, ignore=255, scores=["mean_iou", "pixel_accuracy"])
    test = trainer(lightning, tmp_path, callback)
    test.test(module(), [loader(), loader()], verbose=False)
    assert [counted.pixels for counted in callback.counts.values()] == [answer.pixels] * 2
    logged = test.callback_metrics
    for i in range(2):
        value = float(logged[f"test/pixel_accuracy/dataloader_idx_{i}"])
        assert value == pytest.approx(answer.pixel_accuracy(), rel=1e-6)


def test_pairs_may_come_from_anywhere(lightning, module, loader, answer, streets, tmp_path):
    from segiou.hooks.lightning import SegmentationScores

    callback = SegmentationScores(
        streets.names,
        ignore=255,
        pairs=lambda outputs, batch: (batch[1], outputs["pred"].argmax(1)),
    )
    trainer(lightning, tmp_path, callback).validate(module(), loader(), verbose=False)
    np.testing.assert_array_equal(callback.counts[0].matrix, answer.matrix)


def test_a_page_is_written_each_epoch(lightning, module, loader, answer, streets, tmp_path):
    from segiou.hooks.lightning import SegmentationScores

    path = tmp_path / "reports" / "{stage}-{epoch}.html"
    callback = SegmentationScores(streets.names, ignore=255, report=path)
    fit = trainer(lightning, tmp_path, callback, max_epochs=2, num_sanity_val_steps=1)
    fit.fit(module(), loader(), loader())
    fit.test(module(), [loader(), loader()], verbose=False)
    assert sorted(page.name for page in path.parent.iterdir()) == [
        "test-2_dataloader_idx_0.html",
        "test-2_dataloader_idx_1.html",
        "val-0.html",
        "val-1.html",
    ]
    page = (path.parent / "val-1.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "val, epoch 1" in page
    assert f"{100 * answer.mean_iou():.2f} %" in page
    assert all(name in page for name in streets.names)
    with pytest.raises(ValueError, match=r"unknown extension '\.pdf'"):
        SegmentationScores(2, report="report.pdf")


def test_a_repeated_image_counts_once(lightning, module, answer, streets, tmp_path, need):
    from segiou.hooks.lightning import SegmentationScores

    torch = need("torch")
    rows = [0, 1, 2, 3, 4, 5, 0, 1]  # as a distributed sampler fills up
    data = torch.utils.data.TensorDataset(
        torch.from_numpy(streets.images[rows]),
        torch.from_numpy(streets.truth[rows]).long(),
        torch.tensor(rows),
    )
    batches = torch.utils.data.DataLoader(data, batch_size=4)
    by_id = SegmentationScores(streets.names, ignore=255, ids=lambda outputs, batch: batch[2])
    padded = SegmentationScores(streets.names, ignore=255, prefix="padded/")
    validate = trainer(lightning, tmp_path, by_id, padded)
    validate.validate(module(), batches, verbose=False)
    np.testing.assert_array_equal(by_id.counts[0].matrix, answer.matrix)
    assert padded.counts[0].pixels == answer.pixels * 8 // 6


def test_a_step_that_gives_no_pair(lightning, module, loader, answer, streets, tmp_path):
    from segiou.hooks.lightning import SegmentationScores

    class Silent(module):
        def validation_step(self, batch, batch_idx):
            return self.given(batch)

    silent = Silent()
    returned = {"None": None, r"a dict of \['loss'\]": {"loss": 1}}
    for words, given in returned.items():
        silent.given = lambda batch, given=given: given
        callback = SegmentationScores(streets.names, ignore=255)
        with pytest.raises(TypeError, match=f"the step returned {words}; return"):
            trainer(lightning, tmp_path, callback).validate(silent, loader(), verbose=False)
    # One's own function may leave batches out.
    silent.given = lambda batch: {"pred": silent.net(batch[0])} if len(batch[0]) == 4 else None
    callback = SegmentationScores(
        streets.names,
        ignore=255,
        pairs=lambda outputs, batch: outputs and (batch[1], outputs["pred"]),
    )
    trainer(lightning, tmp_path, callback).validate(silent, loader(), verbose=False)
    assert callback.counts[0].pixels == answer.pixels * 4 // 6


def test_a_compiled_module(lightning, module, loader, answer, streets, tmp_path, need):
    from segiou.hooks.lightning import SegmentationScores
    from segiou.hooks.torchmetrics import SegmentationScores as Metric

    model = module()
    model.metric = Metric(streets.names, ignore=255)
    compiled = need("torch").compile(model, backend="eager")
    callback = SegmentationScores(streets.names, ignore=255)
    validate = trainer(lightning, tmp_path, callback)
    (logged,) = validate.validate(compiled, loader(), verbose=False)
    np.testing.assert_array_equal(callback.counts[0].matrix, answer.matrix)
    assert logged["val_own"] == pytest.approx(answer.mean_iou(), rel=1e-6)


@pytest.mark.gate
def test_each_form_of_scores_is_logged_as_documented(lightning, tmp_path, need):
    """The table of docs/hooks.md: IoU 1/2 and 2/3, and 3 of 4 pixels."""
    torch = need("torch")
    from torchmetrics import ClasswiseWrapper, MetricCollection

    from segiou.hooks.torchmetrics import SegmentationScores as Metric

    class Module(lightning.LightningModule):
        def __init__(self, **metrics):
            super().__init__()
            self.metrics = torch.nn.ModuleDict(metrics)

        def validation_step(self, batch, batch_idx):
            for name, metric in self.metrics.items():
                metric.update(batch[1], batch[0])
                if name == "logged":
                    self.log("miou", metric)
                elif name == "collection":
                    self.log_dict(metric)

        def on_validation_epoch_end(self):
            for name, metric in self.metrics.items():
                if name not in ("logged", "collection"):
                    self.log_dict(metric.compute())
                    metric.reset()

    data = torch.utils.data.TensorDataset(
        torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1]])
    )

    def logged(**metrics):
        validate = trainer(lightning, tmp_path)
        batches = torch.utils.data.DataLoader(data)
        validate.validate(Module(**metrics), batches, verbose=False)
        return {name: float(value) for name, value in validate.callback_metrics.items()}

    accuracy = {"pixel_accuracy": 0.75}
    one = Metric(2, scores="pixel_accuracy")
    named = ClasswiseWrapper(Metric(2, scores="iou"), labels=["a", "b"], prefix="iou_")
    several = Metric(["a", "b"], scores=["pixel_accuracy", "iou"])
    of_classes = {"iou/a": 0.5, "iou/b": pytest.approx(2 / 3)}
    assert logged(logged=Metric(2)) == {"miou": pytest.approx(7 / 12)}
    assert logged(collection=MetricCollection({"pixel_accuracy": one})) == accuracy
    assert logged(named=named) == {k.replace("/", "_"): v for k, v in of_classes.items()}
    assert logged(several=several) == accuracy | of_classes
    mixed = MetricCollection({"miou": Metric(2), "classes": several.clone()})
    assert logged(mixed=mixed) == {"miou": pytest.approx(7 / 12)} | accuracy | of_classes
    for wrong in (several.clone(), Metric(2, scores="iou")):
        with pytest.raises(TypeError, match=r"self\.log_dict\(metric\.compute\(\)\) and metric"):
            logged(logged=wrong)
    with pytest.raises(TypeError, match="single scalar"):
        logged(collection=MetricCollection([several.clone()]))


TWO_DEVICES = """
import sys, json, logging, warnings
import numpy as np, torch
import lightning.pytorch as pl
from torch.utils.data import DataLoader, TensorDataset
from segiou.hooks.lightning import SegmentationScores
from segiou.hooks.torchmetrics import SegmentationScores as Metric
from segiou.measures.boundary import BoundaryOptions

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
data = np.load(sys.argv[1])
truth, pred = (torch.from_numpy(data[k][:5]) for k in ("truth", "pred"))

class Given(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
    def validation_step(self, batch, batch_idx):
        return {"truth": batch[0], "pred": batch[1]}

class Logged(Given):
    def __init__(self):
        super().__init__()
        self.metric = Metric(names, ignore=255)
        self.several = Metric(names, ignore=255, scores=["pixel_accuracy", "iou"])
    def validation_step(self, batch, batch_idx):
        self.metric.update(batch[1], batch[0])
        self.log("own", self.metric)
        self.several.update(batch[1], batch[0])
    def on_validation_epoch_end(self):  # as documented
        self.log_dict(self.several.compute(), sync_dist=True)
        self.several.reset()

names = data["names"].tolist()
by_id = SegmentationScores(names, ignore=255, ids=lambda outputs, batch: batch[2],
                           report=lambda report, epoch: pages.append(report.pixels))
padded = SegmentationScores(names, ignore=255, prefix="padded/")
pages, said, noise = [], [], []

def validated(data, *callbacks, module=Given, times=1):
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", logger=False,
                         enable_checkpointing=False, enable_progress_bar=False,
                         callbacks=[*callbacks])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module, loader = module(), DataLoader(data, batch_size=2)
        for _ in range(times):
            trainer.validate(module, loader, verbose=False)
    said.append([str(w.message) for w in caught if "ids=" in str(w.message)])
    noise.extend(str(w.message) for w in caught if "sync_dist" in str(w.message))
    return trainer

validated(TensorDataset(truth[:4], pred[:4]), SegmentationScores(names, ignore=255))
rows = TensorDataset(truth, pred, torch.arange(5))
validated(rows, SegmentationScores(names, ignore=255, ids=lambda outputs, batch: batch[2]))
validated(rows, module=Logged, times=2)
squares = [torch.from_numpy(data[k]) for k in ("squares", "shifted")]
measured = SegmentationScores(2, ids=lambda outputs, batch: batch[2], prefix="measured/",
                              measures=[BoundaryOptions(1)])
found = validated(TensorDataset(*squares, torch.arange(3)), measured).callback_metrics
trainer = validated(rows, by_id, padded, times=2)
if trainer.is_global_zero:
    print(json.dumps({"state": by_id.counts[0].state_dict(), "padded": padded.counts[0].pixels,
                      "said": said, "noise": noise, "pages": pages,
                      "world": trainer.world_size, "images": len(measured.counts[0]),
                      "measured": {key: float(value) for key, value in found.items()}}))
"""


def test_two_devices(need, run_two, streets, tmp_path):
    need("lightning.pytorch")
    path = tmp_path / "streets.npz"
    blocks = Blocks()
    several = {"squares": blocks.truth[1:], "shifted": blocks.pred[1:]}
    names = np.array(streets.names)
    np.savez(path, truth=streets.truth, pred=streets.pred, names=names, **several)
    alone = ConfusionMatrix(streets.names, ignore=255)
    alone.update(streets.truth[:5], streets.pred[:5])
    (out,) = run_two(TWO_DEVICES, path)
    assert out["world"] == 2
    assert out["state"]["table"] == alone.state_dict()["table"]
    assert out["padded"] == alone.pixels * 6 // 5
    assert out["pages"] == [alone.pixels] * 2
    assert out["noise"] == []  # of Lightning, for values that are equal on all processes
    # Once for each loop, though two epochs and several metrics are scored.
    *nothing, (of_log,), of_measures, (said,) = out["said"]
    assert [*nothing, of_measures] == [[], [], []]
    for text in (of_log, said):
        assert "2 processes draw 6 images from a data set of 5" in text
        assert "1 is counted twice" in text

    # Three images on two devices, which draw four: none counts twice in a measure.
    assert out["images"] == 3
    assert out["measured"]["val/measured/boundary_iou/1"] == pytest.approx(ring_iou(blocks))
    assert out["measured"]["val/measured/iou/1"] == pytest.approx((6 + 3) / (12 + 15 + 18))


def ring_iou(blocks):
    """Boundary IoU of the squares with a width of one pixel, from the pixels of their rings."""
    both = either = 0
    for truth, pred in zip(blocks.truth[1:], blocks.pred[1:], strict=True):
        sides = []
        for square in (truth, pred):
            rows, columns = np.nonzero(square)
            middle = rows.min() + 1, columns.min() + 1
            sides.append({*zip(rows.tolist(), columns.tolist(), strict=True)} - {middle})
        both += len(sides[0] & sides[1])
        either += len(sides[0] | sides[1])
    return both / either


@pytest.mark.parametrize("mode", ["min_size", "max_size", "max_size_cycle", "sequential"])
def test_a_combined_loader_is_logged_as_lightning_does(
    lightning, module, streets, network, tmp_path, mode, need
):
    torch = need("torch")
    from lightning.pytorch.utilities import CombinedLoader

    from segiou.hooks.lightning import SegmentationScores

    class Joined(module):
        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            parts = [batch] if mode == "sequential" else [part for part in batch if part]
            images, truth = (torch.cat([part[i] for part in parts]) for i in (0, 1))
            seen.append((truth, self.net(images).argmax(1)))
            return {"truth": truth, "pred": self.net(images)}

    def loader(rows):
        images, truth = torch.from_numpy(streets.images), torch.from_numpy(streets.truth).long()
        return torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(images[rows], truth[rows]), batch_size=1
        )

    seen = []
    callback = SegmentationScores(streets.names, ignore=255, scores=["pixel_accuracy"])
    made = trainer(lightning, tmp_path, callback)
    loaders = CombinedLoader([loader(slice(4)), loader(slice(4, 6))], mode)
    made.validate(Joined(), loaders, verbose=False)
    expected = ConfusionMatrix(streets.names, ignore=255)
    for pair in seen:
        expected.update(*pair)
    logged = {key: float(value) for key, value in made.callback_metrics.items()}
    if mode != "sequential":
        assert logged == {"val/pixel_accuracy": pytest.approx(expected.pixel_accuracy())}
        assert set(callback.counts) == {0}
        return
    assert sorted(logged) == [f"val/pixel_accuracy/dataloader_idx_{i}" for i in (0, 1)]
    assert sum(callback.counts.values()) == expected


@pytest.mark.parametrize("as_tensor", [True, False])
def test_combined_loaders_may_have_equal_ids(
    lightning, module, loader, answer, streets, tmp_path, as_tensor, need
):
    torch = need("torch")
    from segiou.hooks.lightning import SegmentationScores

    def part(rows):
        images, truth = torch.from_numpy(streets.images), torch.from_numpy(streets.truth).long()
        ids = torch.arange(len(images[rows]))  # from 0 in each
        data = torch.utils.data.TensorDataset(images[rows], truth[rows], ids)
        return torch.utils.data.DataLoader(data, batch_size=2)

    def ids(outputs, batch):
        return batch[2] if as_tensor else batch[2].tolist()

    callback = SegmentationScores(streets.names, ignore=255, combine=True, ids=ids)
    made = trainer(lightning, tmp_path, callback)
    loaders = [part(slice(4)), part(slice(4, 6))]
    made.validate(module(), loaders, verbose=False)
    np.testing.assert_array_equal(callback.counts[0].matrix, answer.matrix)
    assert float(made.callback_metrics["val/mean_iou"]) == pytest.approx(answer.mean_iou())


class Blocks:
    """Four images of 8 x 8 pixels: squares that are shifted by 0, 1, 2 and 3 pixels."""

    def __init__(self):
        self.truth, self.pred = np.zeros((2, 4, 8, 8), int)
        for i in range(4):
            self.truth[i, 2:5, 2:5] = self.pred[i, 2:5, 2 + i : 5 + i] = 1

    def rows(self, need, order=range(4)):
        torch = need("torch")
        sides = (torch.from_numpy(side[[*order]]) for side in (self.truth, self.pred))
        return torch.utils.data.TensorDataset(*sides, torch.tensor([*order]))


@pytest.fixture
def given(lightning, need):
    """A module that returns the truth and prediction of its batch."""
    torch = need("torch")

    class Given(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def training_step(self, batch, batch_idx):
            return self.weight.sum()

        def validation_step(self, batch, batch_idx):
            return {"truth": batch[0], "pred": batch[1]}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Given


def batched(need, rows, size=2):
    return need("torch").utils.data.DataLoader(rows, batch_size=size)


@pytest.mark.needs("measures.surfaces")
def test_measures_of_each_image(lightning, given, tmp_path, need):
    """Surface distances and Boundary IoU of an epoch, once per image."""
    from segiou.hooks.lightning import SegmentationScores
    from segiou.measures.surfaces import SurfaceOptions
    from segiou.scoring import Evaluator

    blocks, asked = Blocks(), {"measures": ["boundary", SurfaceOptions((1,))]}
    wanted = Evaluator(["background", "square"], **asked).update(blocks.truth, blocks.pred)
    report = wanted.report()
    callback = SegmentationScores(
        ["background", "square"], ids=lambda outputs, batch: batch[2], **asked
    )
    validate = trainer(lightning, tmp_path, callback)
    rows = blocks.rows(need, [0, 1, 2, 3, 0, 1])  # as a distributed sampler fills up
    validate.validate(given(), batched(need, rows), verbose=False)
    logged = {key: float(value) for key, value in validate.callback_metrics.items()}
    # The squares are shifted by i pixels, which is their Hausdorff distance.
    assert logged["val/hausdorff/square"] == report.scores(names=["hausdorff"])["hausdorff/square"]
    names = ["mean_iou", "boundary_iou", "surface_dice", "hausdorff_95"]
    for key, value in report.scores(names=names).items():
        assert logged[f"val/{key}"] == pytest.approx(value), key
    counts = callback.counts[0]
    assert len(counts) == 4
    assert counts.total() == wanted.total()
    assert counts.scores() == wanted.scores()


@pytest.mark.needs("measures.surfaces")
def test_measures_that_are_asked_for(lightning, given, tmp_path, need):
    from segiou import ChannelCounts
    from segiou.hooks.lightning import SegmentationScores

    names = ["mean_iou", "hd95"]
    callback = SegmentationScores(2, measures=["surfaces"], scores=names)
    validate = trainer(lightning, tmp_path, callback)
    validate.validate(given(), batched(need, Blocks().rows(need)), verbose=False)
    assert set(validate.callback_metrics) == {"val/mean_iou", *(f"val/hd95{x}" for x in OF_ROWS)}
    with pytest.raises(ValueError, match=r"'hd95' does not .* pass measures=\['surfaces'\]"):
        SegmentationScores(2, measures=["boundary"], scores=names)
    with pytest.raises(ValueError, match="measures need counts per image, which ChannelCounts"):
        SegmentationScores(ChannelCounts(2), threshold=0.5, measures=["boundary"])


OF_ROWS = ("", "/0", "/1")


def test_several_validations_of_an_epoch_write_a_report_each(lightning, given, tmp_path, need):
    from segiou.hooks.lightning import SegmentationScores

    loader = batched(need, Blocks().rows(need), 1)  # four steps per epoch
    reports = {
        "{stage}-{epoch}.json": [f"val-{i}{more}.json" for i in (0, 1) for more in ("", STEPS[i])],
        "{step}.json": ["2.json", "4.json", "6.json", "8.json"],
        "last.json": ["last.json"],
    }
    for i, (path, names) in enumerate(reports.items()):
        folder = tmp_path / str(i)
        callback = SegmentationScores(2, report=folder / path)
        fit = trainer(
            lightning, tmp_path, callback, max_epochs=2, val_check_interval=0.5, log_every_n_steps=1
        )
        fit.fit(given(), loader, loader)
        assert sorted(one.name for one in folder.iterdir()) == sorted(names)
    with pytest.raises(ValueError, match=r"may contain \{epoch\}, \{step\} and \{stage\} only"):
        SegmentationScores(2, report="{batch}.json")


STEPS = ("_step_4", "_step_8")


def test_the_progress_bar_has_the_means(lightning, given, tmp_path, need):
    from segiou.hooks.lightning import SegmentationScores

    for prog_bar in (True, False):
        callback = SegmentationScores(2, scores=["mean_iou", "iou"], prog_bar=prog_bar)
        validate = trainer(lightning, tmp_path, callback)
        validate.validate(given(), batched(need, Blocks().rows(need)), verbose=False)
        assert set(validate.progress_bar_metrics) == ({"val/mean_iou"} if prog_bar else set())
        assert set(validate.callback_metrics) == {"val/mean_iou", "val/iou/0", "val/iou/1"}


def test_checkpoints_have_no_folders_with_their_own_names(lightning, given, tmp_path, need):
    from lightning.pytorch.callbacks import ModelCheckpoint

    from segiou.hooks.lightning import SegmentationScores

    loader = batched(need, Blocks().rows(need))
    best = ModelCheckpoint(
        dirpath=tmp_path,
        monitor="val/mean_iou",
        mode="max",
        filename="{epoch}-{val/mean_iou:.3f}",
        auto_insert_metric_name=False,
    )
    fit = trainer(lightning, tmp_path, SegmentationScores(2), best, max_epochs=1, **KEPT)
    fit.fit(given(), loader, loader)
    value = float(fit.callback_metrics["val/mean_iou"])
    assert [one.name for one in tmp_path.glob("**/*.ckpt")] == [f"0-{value:.3f}.ckpt"]


KEPT = {"enable_checkpointing": True}


def test_a_private_part_that_is_gone_warns_once(lightning, monkeypatch):
    """As in another version of Lightning."""
    from segiou.hooks._frameworks import calling_loops

    monkeypatch.delattr("lightning.pytorch.loops.evaluation_loop._EvaluationLoop")
    with pytest.warns(UserWarning, match="not reported, because segiou was tested with Lightning"):
        assert list(calling_loops()) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(calling_loops()) == []
