"""The command ``raters``: folders of masks of the same cases, one per rater."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from segiou._support.arguments import check_level
from segiou.cli import inputs
from segiou.cli.output import write_finding
from segiou.raters.folders import ConsensusWriter, RaterCase, compare_raters
from segiou.raters.page import CaseMaps, raters_html
from segiou.raters.result import RaterAgreement
from segiou.scoring.segment_classes import classes_of_segments


def command(parsed: argparse.Namespace) -> int:
    """Score the raters, and write the outputs."""
    kind = inputs.report_format(parsed)
    check_level("--level", parsed.level)
    folders = _named_folders(parsed.rater)
    maps, is_drawn = CaseMaps(len(folders)), parsed.html or kind == "html"
    consensus = None
    if parsed.consensus:
        options = {"rule": parsed.consensus_by, "overwrite": parsed.overwrite}
        consensus = ConsensusWriter(parsed.consensus, len(folders), **options)

    def on_case(case: RaterCase) -> None:
        if is_drawn:
            maps.add(case.id, case.votes, case.pattern)
        if consensus is not None:
            consensus.write(case)

    agreement = _agreement(parsed, folders, on_case)
    write_finding(agreement, parsed, page=lambda: raters_html(agreement, maps))
    return 0


def _agreement(
    parsed: argparse.Namespace, folders: Mapping[str, str], on_case: Callable[[RaterCase], None]
) -> RaterAgreement:
    """Score the raters, and the model if there is one."""
    labels = parsed.labels
    if labels is None:
        labels = classes_of_segments(folders.values())
    if labels is None:
        msg = "--labels is required: a number of classes, a preset or a label file"
        raise ValueError(msg)
    model = _named_folders([parsed.model]) if parsed.model else {}
    return compare_raters(
        folders,
        labels=labels,
        model=next(iter(model.values()), None),
        model_name=next(iter(model), "model"),
        ignore=parsed.ignore,
        array_axes=parsed.array_axes,
        groups=parsed.group_by,
        level=parsed.level,
        read_palette=parsed.read_palette,
        on_case=on_case,
    )


def _named_folders(texts: list[str]) -> Mapping[str, str]:
    """Folders by name: NAME=FOLDER, or the folder's own name."""
    folders: dict[str, str] = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or "/" in name:
            name, folder = Path(text).name or Path(text).resolve().name, text
        if not name or not folder:
            msg = f"{text!r} lacks a name or a folder; expected NAME=FOLDER or a folder"
            raise ValueError(msg)
        if name in folders:
            msg = f"two raters are named {name!r}; name them: NAME={folder}"
            raise ValueError(msg)
        folders[name] = folder
    return folders
