"""Parts of Lightning that the callback uses: its package, its loggers and the logged names."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from segiou.hooks._scoring import missing
from segiou.report.report import Report


def _callback() -> Any:
    """Callback of the Lightning package in use; the classes of its two packages differ."""
    # The package that is already imported comes first.
    packages = ["lightning.pytorch", "pytorch_lightning"]
    packages.sort(key=lambda name: name not in sys.modules)
    for name in packages:
        try:
            return import_module(name).Callback
        except ImportError as error:
            reason = error
    raise missing("lightning", "lightning") from reason


Callback: Any = _callback()


def number_of_loaders(trainer: Any, stage: str) -> int:
    """The number of dataloaders that Lightning logs one by one.

    A CombinedLoader whose mode is not sequential joins the batches of its loaders. Tried with
    Lightning 2.6, in which only private names tell this.
    """
    loop = getattr(trainer, "_evaluation_loop", None)
    is_joined = not getattr(loop, "_is_sequential", True)
    return 1 if is_joined else len(getattr(trainer, f"num_{stage}_batches"))


def names_of_steps(trainer: Any, place: str) -> set[str]:
    """The names that steps of the module have logged; several dataloaders are in `place`."""
    names = set()
    for one in (trainer._results or {}).values():
        if one.meta.fx not in _ENDS and not one.has_reset:
            loader = one.meta.dataloader_idx
            names.add(one.meta.name + ("" if loader is None else place.format(loader)))
    return names


_ENDS = ("on_validation_epoch_end", "on_test_epoch_end")


def give(target: Any, report: Report, epoch: int, stage: str, suffix: str) -> None:
    """Give a report to a function, or to a file whose name has this suffix."""
    if callable(target):
        target(report, epoch)
    elif target is not None:
        path = Path(str(target).format(epoch=epoch, stage=stage))
        path.parent.mkdir(parents=True, exist_ok=True)
        report.save(path.with_stem(path.stem + suffix))


def log_figure(trainer: Any, report: Report, name: str) -> None:
    """Log the confusion matrix to each logger of a trainer that keeps figures."""
    from segiou import plots
    from segiou.plots.style import without_pyplot

    with without_pyplot():
        figure, step = plots.confusion_matrix(report).figure, trainer.global_step
    for logger in trainer.loggers:
        if send := _SENDERS.get(type(logger).__name__):
            send(logger, name, figure, step)


def _to_tensorboard(logger: Any, name: str, figure: Any, step: int) -> None:
    logger.experiment.add_figure(name, figure, step)


def _to_wandb(logger: Any, name: str, figure: Any, step: int) -> None:
    import matplotlib.pyplot  # noqa: F401 (required by wandb.Image)

    logger.log_image(name, [figure], step)


def _to_mlflow(logger: Any, name: str, figure: Any, step: int) -> None:
    logger.experiment.log_figure(logger.run_id, figure, f"{name}_{step}.png")


_SENDERS = {
    "TensorBoardLogger": _to_tensorboard,
    "WandbLogger": _to_wandb,
    "MLFlowLogger": _to_mlflow,
}
