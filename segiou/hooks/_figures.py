"""Logs figures to the experiment trackers of Lightning."""

from __future__ import annotations

from typing import Any

from segiou.report.report import Report


def log_figure(trainer: Any, report: Report, name: str) -> None:
    """Log the confusion matrix to each logger of a trainer that keeps figures."""
    from segiou import plots

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
