"""A validated scoring job, and the places that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from segiou._support.arguments import check_integer, check_kind, refuse_kind
from segiou._support.files import Problem
from segiou._support.options import Options, option
from segiou._support.text import did_you_mean, encodable, plural, without_credentials
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.masks.raw_mask import VOLUME_SUFFIXES, MaskError
from segiou.masks.read import from_bytes
from segiou.masks.reading import OBJECT, OF_VOLUMES, Reading
from segiou.masks.sources.adjusted import AdjustedSource, is_one_file, place_of
from segiou.masks.sources.class_files import (
    BACKGROUND,
    ClassMasks,
    undeclared_files,
    unmatched_files,
)
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.opening import adjusted, is_array_name, open_source
from segiou.masks.sources.pairing import Pairing
from segiou.masks.sources.patterns import is_pattern
from segiou.masks.sources.remote import RemoteFolder
from segiou.measures.mask_pair import Masks
from segiou.measures.registry import plans_of, with_defaults
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header, Shard
from segiou.scoring.array_axes import BY_SHAPE
from segiou.scoring.clusters import check_clusters
from segiou.scoring.pair_options import PairOptions
from segiou.scoring.problems import DataError

if TYPE_CHECKING:
    from segiou.measures.measure import Measure
    from segiou.measures.plan import Plan

#: Arguments that choose the pairs, and how they are read; runs record them.
PAIR_ARGUMENTS: Final = (*PairOptions.names(), *Reading.names())
_PATH = (str, os.PathLike), "a path or a URL"


def _check_shard(name: str, shard: object) -> None:
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise refuse_kind(name, shard, "two integers, (part, parts)")
    part, parts = (check_integer(name, number) for number in shard)
    if not 1 <= part <= parts:
        msg = f"shard {part}/{parts}: part must be between 1 and {parts}"
        raise ValueError(msg)


@dataclass(frozen=True, kw_only=True)
class Job(Options):
    """Validated arguments of :func:`segiou.score_folder`, without executors and callbacks.

    Parameters
    ----------
    truth, pred, shard
        The files, as in :func:`segiou.score_folder`.
    options : ClassOptions
        The classes and ignored values.
    protocol : Protocol, optional
        The averaging protocol.
    pair_by : PairOptions
        Which files are pairs.
    reading : Reading
        How masks are read.
    spacing, measures
        How pairs are measured, as in :func:`segiou.score_folder`.
    run, workers, processes, dask, storage_options, name
        The run file and the workers, as in :func:`segiou.score_folder`.
    command : str
        The command line that the job comes from, without passwords; empty in Python.
    clusters : str
        Classes of the clusters in the predictions, once matched.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If arguments contradict each other.
    """

    truth: str | Path = option(MISSING, check_kind, *_PATH)
    pred: str | Path = option(MISSING, check_kind, *_PATH)
    options: ClassOptions
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))
    pair_by: PairOptions = field(default_factory=PairOptions)
    reading: Reading = field(default_factory=Reading)
    measures: tuple[Measure, ...] = ()
    spacing: Sequence[float] | None = None
    run: str | Path | None = option(None, check_kind, *_PATH)
    shard: tuple[int, int] | None = option(None, _check_shard)
    workers: int | None = option(None, check_integer, 1)
    processes: int | None = option(None, check_integer, 1)
    dask: str | None = option(None, check_kind, str, "the address of a Dask scheduler")
    storage_options: Mapping[str, Any] | None = option(
        None, check_kind, Mapping, "a mapping", repr=False
    )
    name: str = option("", check_kind, str, "text")
    command: str = ""
    clusters: str = ""

    @classmethod
    def from_arguments(
        cls, options: ClassOptions, measures: Iterable[Measure], given: Mapping[str, Any]
    ) -> Job:
        """Build a job from the arguments of :func:`segiou.score_folder` or of the command line.

        Parameters
        ----------
        options : ClassOptions
            The classes.
        measures : iterable of Measure
            The measures as chosen.
        given : mapping
            The arguments; others are ignored.
        """
        arguments = {name: given[name] for name in cls.names() if name in given}
        arguments["protocol"] = load_protocol(
            "segiou" if given["protocol"] is None else given["protocol"]
        )
        arguments["measures"] = with_defaults(measures, given["labels"], given.get("spacing"))
        implied = {
            name: x for measure in arguments["measures"] for name, x in measure.reading.items()
        }
        arguments["reading"] = Reading(**implied | Reading.of(given).chosen)
        arguments["pair_by"] = PairOptions.of(given)
        if (match := arguments["reading"].match) is not None:
            check_clusters(match, pred_labels=given.get("pred_labels"))
        pattern = arguments["reading"].class_files
        if pattern and OBJECT not in pattern:  # the remaining pixels are not a class
            names = options.labels.class_names
            at = names.index(BACKGROUND) if BACKGROUND in names else 0
            options = replace(options, exclude=tuple({**dict.fromkeys(options.exclude), at: 0}))
        return cls(**arguments | {"options": options})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.run is not None:
            from segiou.runs.database import check_local

            check_local(self.run)
        for name in ("truth_threshold", "pred_threshold"):
            if name in self.reading.chosen and self.options.num_classes != 2:
                msg = f"{name} requires two classes, got {self.options.num_classes}"
                raise ValueError(msg)
        if self.reading.class_files is not None:
            self.pair_by.check_beside("class_files")
        # Values too far apart to be counted are rejected here once, not for every pair.
        Encoding.of_classes(self.options)

    @property
    def title(self) -> str:
        """The name of the run: by default the last part of the predictions' path."""
        path = without_credentials(str(self.pred))
        return self.name or encodable(Path(path).name or path)

    def plans(self, *, volumes: bool) -> tuple[Plan, ...]:
        """Plans of the measures for images or volumes.

        Parameters
        ----------
        volumes : bool
            Whether the masks are volumes.

        Raises
        ------
        ValueError
            If a measure does not fit such masks.
        """
        spacing: Any = self.spacing
        masks = Masks(volumes, spacing, "mm" if volumes else "")
        return plans_of(self.measures, self.options, masks, self.protocol.name)

    @cached_property
    def _recorded_reading(self) -> Reading:
        """How masks are read, with the place of regions of interest; absolute in a run file."""
        if (roi := self.reading.roi) is None:
            return self.reading
        if is_array_name(roi, open_source(self.truth, self.storage_options)):
            return replace(self.reading, roi=str(roi))
        source = open_source(roi, self.storage_options)
        region = _absolute(source) if self.run is not None else source
        return replace(self.reading, roi=region.root)

    def header(self, pairing: Pairing, expected: int) -> Header:
        """The header of the run.

        Parameters
        ----------
        pairing : Pairing
            All pairs.
        expected : int
            Number of pairs to score.
        """
        roots = [source.root for source in self.sources]
        volumes = self._has_volumes(pairing)
        origin = {"truth": encodable(roots[0]), "pred": encodable(roots[1])}
        header = Header(
            self.options,
            self.protocol,
            self.title,
            provenance={
                **origin,
                "pairing": pairing.rule,
                **({"masks": "volumes"} if volumes else {}),
                **({"array_axes": BY_SHAPE} if _has_arrays(pairing) else {}),
                **({"command": encodable(self.command)} if self.command else {}),
                **self.pair_by.recorded,
                **self._recorded_reading.chosen,
                **({"clusters": encodable(self.clusters)} if self.clusters else {}),
            },
            plans=self.plans(volumes=volumes),
            shards=() if self.shard is None else (Shard(*self.shard, len(pairing.pairs)),),
        )
        if self.run is None:
            return header
        always = {name: getattr(self.reading, name) for name in ("allow_lossy", "resize_pred")}
        reading = always | self._recorded_reading.chosen
        return replace(header, truth=roots[0], pred=roots[1], reading=reading, expected=expected)

    def _has_volumes(self, pairing: Pairing) -> bool:
        """Whether there are volumes, or the first truth file is an array with a spacing."""
        paths = [pair.truth.lower() for pair in pairing.pairs]
        if not paths or not paths[0].endswith(".npz"):
            return any(path.endswith(VOLUME_SUFFIXES) for path in paths)
        try:
            source, first = self.sources[0], pairing.pairs[0].truth
            return from_bytes(source.read(first)[0], first).spacing is not None
        except MaskError:  # reported when the pair is scored
            return False

    @cached_property
    def sources(self) -> tuple[Source, Source]:
        """The places of truth and prediction; DataError if they are the same."""
        sources = [self._opened(path) for path in (self.truth, self.pred)]
        # Suffixes can distinguish the files of one folder.
        by = self.pair_by
        same_suffix = is_one_file(sources[0]) or by.truth_suffix == by.pred_suffix
        if same_suffix and by.pairs is None and _is_one_place(*sources):
            text = (
                "truth and prediction are the same path; pass two folders, or set truth_suffix "
                "and pred_suffix (--truth-suffix, --pred-suffix) to tell the files apart"
            )
            raise DataError([Problem(str(self.truth), text)])
        if self.run is not None:
            # A run file stores absolute paths, so that it can be read from any folder.
            sources = [_absolute(source) for source in sources]
        if self.reading.array_axes in OF_VOLUMES:
            _check_no_stores(sources)
        if self.reading.class_files is not None:
            sources = self._joined_classes(sources)
        reading = self._recorded_reading
        sources = [*adjusted(sources[0], sources[1], reading, self.storage_options)]
        for measure in self.measures:
            sources[1] = measure.predictions(sources[1], self.options)
        return sources[0], sources[1]

    @property
    def _pattern(self) -> str:
        """The pattern of files of classes."""
        return str(self.reading.class_files)

    def _joined_classes(self, files: list[Source]) -> list[Source]:
        """Sources of one file per class as masks; DataError if no file matches."""
        labels = self.options.labels, self.options.pred_labels
        pattern = self._pattern
        if self.pair_by.extra == "error" and (problems := self._undeclared(files)):
            raise DataError(problems)
        try:
            sides = zip(files, labels, strict=True)
            masks = [
                ClassMasks.of(side, pattern, label_set, allow_lossy=self.reading.allow_lossy)
                for side, label_set in sides
            ]
        except ValueError as error:
            raise DataError([Problem(str(self.truth), str(error))]) from error
        if masks == files:
            of = "" if OBJECT in pattern else " with a class of the labels"
            text = (
                f"no file matches class_files={pattern!r} (--class-files){of}; correct the "
                "pattern: {id}, {class} and {object} are parts of the relative path without its "
                "extension"
            )
            raise DataError([Problem(str(self.truth), text)])
        return masks

    def _undeclared(self, files: Iterable[Source]) -> list[Problem]:
        """One problem for each class of a side that is not declared."""
        problems = []
        sides = zip(files, (self.options.labels, self.options.pred_labels), strict=True)
        for source, labels in sides:
            for name, paths in undeclared_files(source, self._pattern, labels).items():
                near = did_you_mean(name, labels.class_names)
                text = f"class {name!r} of {plural(len(paths), 'file')} is not declared{near}"
                fix = "declare or rename it, or skip such files: extra='skip' (--extra skip)"
                problems.append(Problem(source.root, f"{text}; {fix}"))
        return problems

    def skipped_classes(self) -> list[Problem]:
        """The files of undeclared classes that are skipped on request."""
        if self.reading.class_files is None or self.pair_by.extra == "error":
            return []
        sides = zip(self.sources, (self.options.labels, self.options.pred_labels), strict=True)
        return [
            Problem(path, f"is of class {name!r}, which is not declared")
            for source, labels in sides
            if isinstance(masks := place_of(source), ClassMasks)
            for name, paths in undeclared_files(masks.place, self._pattern, labels).items()
            for path in paths
        ]

    @property
    def for_empty(self) -> tuple[str, str]:
        """The entry of an empty image in the truth and in the predictions, if it may be missing."""
        if self.reading.class_files is not None:
            return ("one file of zeros",) * 2
        truth, pred = (place_of(source).for_empty for source in self.sources)
        return truth, pred

    def unmatched_text(self) -> str:
        """A note on masks that are skipped because no image contains them; empty without any."""
        if self.reading.class_files is None:
            return ""
        places = [place for place in map(place_of, self.sources) if isinstance(place, ClassMasks)]
        if not (paths := [*chain.from_iterable(map(unmatched_files, places))]):
            return ""
        pattern = f"class_files={self._pattern!r} (--class-files)"
        skipped = f"{plural(len(paths), 'mask')} that {pattern} does not match"
        return f"skipped {skipped}, such as {paths[0]}"

    def _opened(self, path: str | Path) -> Source:
        """The source at a place; an .npz file with a key is one mask."""
        is_npz = str(path).lower().endswith(".npz") and not is_pattern(str(path))
        if self.reading.array_key and is_npz:
            return LocalFolder(str(Path(path).expanduser()))
        return open_source(path, self.storage_options)


def _has_arrays(pairing: Pairing) -> bool:
    """Whether arrays are paired with volumes."""
    return any(
        pair.truth.lower().endswith(VOLUME_SUFFIXES) != pair.pred.lower().endswith(VOLUME_SUFFIXES)
        for pair in pairing.pairs[:1]
    )


def _check_no_stores(sources: Iterable[Source]) -> None:
    """Raise a DataError for volumes in a store, whose arrays of three axes are images."""
    from segiou.masks.sources.array_stores import ArrayStore, StoreFolder

    for source in sources:
        if isinstance(source, (ArrayStore, StoreFolder)):
            text = (
                "is a store, in which an array (N, H, W) is N images; omit array_axes "
                "(--array-axes), or save volumes as NIfTI or .npy"
            )
            raise DataError([Problem(source.root, text)])


def _is_one_place(truth: Source, pred: Source) -> bool:
    if truth != pred and place_of(truth) == place_of(pred):  # two arrays of one file
        return False
    if not (isinstance(truth, LocalFolder) and isinstance(pred, LocalFolder)):
        return truth == pred
    paths = Path(truth.root), Path(pred.root)
    return truth == pred or (all(p.exists() for p in paths) and paths[0].samefile(paths[1]))


def _absolute(source: Source) -> Source:
    if isinstance(source, RemoteFolder):
        return source
    if isinstance(source, AdjustedSource):
        return replace(source, place=_absolute(source.place))
    # All attributes of other sources are paths.
    paths = {name: str(Path(path).absolute()) for name, path in vars(source).items()}
    return type(source)(**paths)
