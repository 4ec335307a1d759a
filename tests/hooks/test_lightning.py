from __future__ import annotations

import json
import logging

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
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
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
    np.testing.assert_array_equal(callback.counted[0].matrix, answer.matrix)
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
    assert callback.counted[0].matrix.tolist() == trained.matrix.tolist()
    first, last = (json.loads(path.read_text()) for path in sorted(tmp_path.glob("reports/*")))
    assert first["mean_iou"] != last["mean_iou"] == trained.mean_iou()


def test_test_loop_with_two_loaders(lightning, module, loader, answer, streets, tmp_path):
    from segiou.hooks.lightning import SegmentationScores

    callback = SegmentationScores(streets.names, ignore=255, scores=["mean_iou", "pixel_accuracy"])
    test = trainer(lightning, tmp_path, callback)
    test.test(module(), [loader(), loader()], verbose=False)
    assert [counted.pixels for counted in callback.counted.values()] == [answer.pixels] * 2
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
    np.testing.assert_array_equal(callback.counted[0].matrix, answer.matrix)
