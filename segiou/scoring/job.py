"""What a scoring job is asked for: one object, made once, checked when it is made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    refuse_kind,
)
from segiou._support.files import Problem
from segiou._support.text import encodable
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.masks.sources import LocalFolder, RemoteFolder, Source, open_source
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.scoring.pair import Geometry, PairScorer
from segiou.scoring.pairings import DataError

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions
    from segiou.boundary.surfaces import SurfaceOptions
    from segiou.instances.object_files import ObjectOptions
    from segiou.runs.surface_plan import SurfacePlan

Unpaired = Literal["error", "skip"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that :func:`segiou.score_folder` and the command are asked for.

    What can be called (executors, callbacks) is no part of it.

    Parameters
    ----------
    truth, pred, truth_suffix, pred_suffix, key, ids, missing, extra, shard
        Which pairs, as :func:`segiou.score_folder` takes them.
    options : ClassOptions
        The classes, and what is ignored.
    protocol : Protocol, optional
        How means are made.
    on_error, allow_lossy, resize_pred, geometry, spacing, boundary, objects, surfaces
        How a pair is read and what is measured, as :func:`segiou.score_folder` takes them.
    run, workers, processes, dask, storage_options, name
        Where the run is kept and who works, as :func:`segiou.score_folder` takes them.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If arguments do not fit together.
    """

    truth: str | Path
    pred: str | Path
    options: ClassOptions
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))
    truth_suffix: str | None = None
    pred_suffix: str | None = None
    key: str | None = None
    ids: tuple[str, ...] | None = None
    missing: Unpaired = "error"
    extra: Unpaired = "error"
    on_error: Literal["stop", "skip"] = "stop"
    allow_lossy: bool = False
    resize_pred: Literal["nearest"] | None = None
    geometry: Geometry = "check"
    boundary: BoundaryOptions | None = None
    objects: ObjectOptions | None = None
    surfaces: SurfaceOptions | str | None = None
    spacing: Sequence[float] | None = None
    run: str | Path | None = None
    shard: tuple[int, int] | None = None
    workers: int | None = None
    processes: int | None = None
    dask: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("truth", "pred", "run"):
            value = getattr(self, name)
            if value is not None or name != "run":
                check_kind(name, value, (str, os.PathLike), "a path or an address")
        for name in ("truth_suffix", "pred_suffix", "key", "name"):
            if (value := getattr(self, name)) is not None:
                check_kind(name, value, str, "text")
        for name in ("missing", "extra"):
            check_choice(name, getattr(self, name), get_args(Unpaired))
        check_choice("on_error", self.on_error, ("stop", "skip"))
        check_flag("allow_lossy", self.allow_lossy)
        if self.resize_pred is not None:
            check_choice("resize_pred", self.resize_pred, ("nearest",))
        check_choice("geometry", self.geometry, get_args(Geometry))
        if self.shard is not None:
            _check_shard(self.shard)
        check_kind("storage_options", self.storage_options or {}, Mapping, "a mapping")
        for name in ("workers", "processes"):
            if (count := getattr(self, name)) is not None:
                check_integer(name, count, 1)
        if self.dask is not None:
            check_kind("dask", self.dask, str, "the address of a Dask scheduler")
        # Values too far apart to be counted are refused once, and not with every pair.
        Encoding.of_classes(self.options)

    @property
    def title(self) -> str:
        """The name of what is scored: by default the last part of the predictions' path."""
        return self.name or encodable(Path(str(self.pred)).name or str(self.pred))

    @cached_property
    def scorer(self) -> PairScorer:
        """All that workers need.

        Raises
        ------
        DataError
            If truth and prediction are one place.
        """
        sources = [open_source(place, self.storage_options) for place in (self.truth, self.pred)]
        if self._same(*sources):
            text = (
                "truth and prediction are the same; give two different folders, or say which "
                "files are which: truth_suffix, pred_suffix (--truth-suffix, --pred-suffix)"
            )
            raise DataError([Problem(str(self.truth), text)])
        if self.run is not None:
            # A run file names full paths, which mean the same wherever it is read.
            sources = [_absolute(source) for source in sources]
        return PairScorer(
            self.options,
            self.allow_lossy,
            self.resize_pred,
            sources[0],
            sources[1],
            geometry=self.geometry,
            objects=self.objects,
        )

    def plans(self, volumes: bool) -> tuple[BoundaryOptions | None, SurfacePlan | None]:
        """What is measured at boundaries and between surfaces of these pairs.

        Parameters
        ----------
        volumes : bool
            Whether the pairs are volumes.

        Returns
        -------
        tuple of BoundaryOptions or None and SurfacePlan or None

        Raises
        ------
        ValueError
            If a tolerance is none of such pairs.
        """
        if self.boundary is None and self.surfaces is None:
            return None, None
        from segiou.runs.surface_plan import plans_of

        return plans_of(
            self.options,
            self.boundary,
            self.surfaces,
            spacing=self.spacing,
            volumes=volumes,
            usual=self.protocol.name,
        )

    def _same(self, truth: Source, pred: Source) -> bool:
        """Whether both are one place, and no suffixes tell their files apart."""
        is_folder = not (isinstance(truth, LocalFolder) and Path(truth.root).is_file())
        told_apart = is_folder and self.truth_suffix != self.pred_suffix
        return not told_apart and (truth == pred or _same_file(truth, pred))


def _check_shard(shard: object) -> None:
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise refuse_kind("shard", shard, "two integers, (part, parts)")
    part, parts = (check_integer("shard", number) for number in shard)
    if not 1 <= part <= parts:
        msg = f"shard {part}/{parts}: there are parts 1 to {parts}"
        raise ValueError(msg)


def _same_file(truth: Source, pred: Source) -> bool:
    if not (isinstance(truth, LocalFolder) and isinstance(pred, LocalFolder)):
        return False
    paths = Path(truth.root), Path(pred.root)
    return all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def _absolute(source: Source) -> Source:
    if isinstance(source, RemoteFolder):
        return source
    # All that other places are described by is paths.
    paths = {name: str(Path(path).absolute()) for name, path in vars(source).items()}
    return type(source)(**paths)


def object_options(choice: ObjectOptions | str | bool | None, labels: Any) -> ObjectOptions | None:
    """Read a caller's choice; the module is loaded only where objects are scored."""
    if choice is None or choice is False:
        return None
    from segiou.instances.object_files import ObjectOptions

    return ObjectOptions.of(choice).with_things_of(labels)
