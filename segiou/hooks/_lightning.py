"""Parts of Lightning that the callback uses: its package, its loggers and the logged names."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from segiou._support.optional import import_extra
from segiou.hooks._frameworks import joins_loaders
from segiou.report.formats import format_of
from segiou.report.report import Report


def _callback() -> Any:
    """Callback of the Lightning package in use; the classes of its two packages differ."""
    # The package that is already imported comes first.
    packages = ["lightning.pytorch", "pytorch_lightning"]
    packages.sort(key=lambda name: name not in sys.modules)
    try:
        return import_module(packages[0]).Callback
    except ImportError:
        need = "segiou.hooks.lightning needs lightning"
        return import_extra(packages[1], need, "lightning").Callback


Callback: Any = _callback()


def number_of_loaders(trainer: Any, stage: str) -> int:
    """The number of dataloaders that Lightning logs one by one."""
    return 1 if joins_loaders(trainer) else len(getattr(trainer, f"num_{stage}_batches"))


class ReportFiles:
    """Gives the report of each epoch to a function, or saves it to a separate file.

    If an epoch has several validations, the later ones end in ``_step_40``.
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        self._written: set[Path] = set()
        if isinstance(target, (str, Path)):
            # Raises for an unknown format now instead of after the first epoch.
            format_of(self._path(0, 0, "val"))

    def _path(self, epoch: int, step: int, stage: str) -> Path:
        try:
            return Path(str(self.target).format(epoch=epoch, step=step, stage=stage))
        except (LookupError, ValueError) as error:
            msg = f"report={str(self.target)!r} may contain {{epoch}}, {{step}} and {{stage}} only"
            raise ValueError(msg) from error

    def give(self, report: Report, trainer: Any, stage: str, suffix: str) -> None:
        """Give the report of a dataloader."""
        if callable(self.target):
            self.target(report, trainer.current_epoch)
        elif self.target is not None:
            epoch, step = trainer.current_epoch, trainer.global_step
            path = self._path(epoch, step, stage)
            path = path.with_stem(path.stem + suffix.replace("/", "_"))
            if path in self._written and "{epoch" in str(self.target):
                path = path.with_stem(f"{path.stem}_step_{step}")
            self._written.add(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            report.save(path)


def log_figure(trainer: Any, report: Report, name: str) -> None:
    """Log the confusion matrix to each logger of a trainer that keeps figures."""
    from segiou import plots
    from segiou.plots.style import no_pyplot

    with no_pyplot():
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
