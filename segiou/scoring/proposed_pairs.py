"""Proposals to pair files otherwise, tried on a few of their pairs before they are printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from segiou._support.files import Problem
from segiou.masks.sources.adjusted import place_of
from segiou.masks.sources.mask_places import places_of_masks
from segiou.masks.sources.pairing import Pair, Pairing, Proposal, instead
from segiou.runs.header import Header
from segiou.runs.run import Run
from segiou.scoring.file_pairs import pair_sources
from segiou.scoring.job import Job
from segiou.scoring.pair import PairScorer
from segiou.scoring.segment_classes import has_segments, segments_in
from segiou.scoring.trials import LARGE, sampled, tried

#: Pairs of a proposal that are scored.
_SAMPLE = 8
#: Factor by which other pairs must raise the mean IoU of pairs that can be scored.
_MUCH = 1.5


class Trial(NamedTuple):
    """A proposal for a given job, the job with its places, and what scoring some pairs gave."""

    given: Job
    job: Job
    proposal: Proposal
    scorer: PairScorer
    pairs: Sequence[Pair]
    run: Run
    problems: list[Problem]

    @property
    def command(self) -> str:
        """The options of the proposal as a shell takes them; the whole command if places change."""
        if not self.proposal.places:
            return self.proposal.command
        places, given = self.proposal.places, self.given
        changed = {str(getattr(given, side)): place for side, place in places.items()}
        words = shlex.split(given.command) or ["segiou", "score", str(given.truth), str(given.pred)]
        text = shlex.join(changed.get(word, word) for word in words)
        return f"{text} {self.proposal.command}".strip()

    @property
    def undeclared(self) -> int:
        """Number of undeclared values; of other problems, more than any mask has."""
        values = {value for problem in self.problems for value in problem.values}
        return len(values) if all(problem.values for problem in self.problems) else 1 << 32


def scorer_of(job: Job, pairing: Pairing, header: Header, nodata: int | None = None) -> PairScorer:
    """The scorer of a job's pairs."""
    segments: tuple[tuple[str, int], ...] = ()
    if any(has_segments(pair.truth) for pair in pairing.pairs):  # of all, whatever the shard
        segments = tuple(segments_in(place_of(job.sources[0])).items())
    return PairScorer(header, *job.sources, job.reading, nodata, segments)


def best_proposals(pairing: Pairing, job: Job) -> tuple[Pairing, Trial | None]:
    """The pairing with the proposals that fit best, and the trial of the first.

    Proposals whose pairs can be scored come first, by mean IoU; others are dropped beside them.
    """
    is_lost = not (pairing.pairs or pairing.proposals)
    if (pairing.duplicates or is_lost) and (placed := _placed(pairing, job)) is not None:
        return placed
    if pairing.pairs and pairing.missing and not pairing.proposals:
        now = _trial(Proposal(pairing, {}), job, job)
        if now is None:
            return pairing, None
        other = instead(pairing, *(source.find() for source in job.sources))
        if len(now.run):  # the current pairs may be of wrong files if others fit much better
            better, trial = _best(other, job, [(proposal, job) for proposal in other.proposals])
            mean = np.nan_to_num(now.run.report().mean_iou)
            is_better = bool(better.proposals) and better.proposals[0].mean_iou > _MUCH * mean
            return (better, trial) if is_better else (pairing, None)
        pairing = other
    return _best(pairing, job, [(proposal, job) for proposal in pairing.proposals])


def _placed(pairing: Pairing, job: Job) -> tuple[Pairing, Trial | None] | None:
    """The same with folders of masks beside others as places; None if none pairs more files."""
    choices: list[list[dict[str, Any]]] = []
    for name, source in zip(("truth", "pred"), job.sources, strict=True):
        inside = dict.fromkeys(source.find().values())
        twice = [paths for _, paths in pairing.duplicates if paths[0] in inside]
        one_key = twice[0] if twice else [] if pairing.duplicates else [*inside]
        places = places_of_masks(one_key, [*inside]) if one_key else []
        choices.append([{name: place} for place in places] or [{}])
    doubled = {key for key, _ in pairing.duplicates}
    pairs = tuple(pair for pair in pairing.pairs if pair.id not in doubled)
    kept = [
        (replace(proposal, places=truth | pred), other)
        for truth, pred in product(*choices)
        if (truth or pred) and (other := replace(job, **truth | pred))
        for proposal in _job_proposals(other)
        if len(proposal.pairing.pairs) > len(pairs)
    ]
    unclear = () if pairing.missing or pairing.extra or not pairs else pairing.duplicates
    pairing = replace(pairing, pairs=pairs, duplicates=unclear)
    return _best(pairing, job, kept) if kept else None


def _job_proposals(job: Job) -> list[Proposal]:
    """The pairing of a job and its proposals, without those of several files of one key."""
    try:
        pairing = pair_sources(*job.sources, job)
    except ValueError:  # such as places in archives
        return []
    return [
        proposal
        for proposal in (Proposal(pairing, {}), *pairing.proposals)
        if not proposal.pairing.duplicates
    ]


def _best(
    pairing: Pairing, given: Job, proposed: Sequence[tuple[Proposal, Job]]
) -> tuple[Pairing, Trial | None]:
    """The pairing with the proposals that fit best, and the trial of the first."""
    pairing = replace(pairing, proposals=tuple(proposal for proposal, _ in proposed))
    trials = [_trial(proposal, job, given) for proposal, job in proposed]
    known = [trial for trial in trials if trial is not None]
    if len(known) < len(trials) or not known:
        return pairing, None
    if good := [trial for trial in known if not trial.problems]:
        means = {id(trial): float(np.nan_to_num(trial.run.report().mean_iou)) for trial in good}
        distinct = {round(means[id(trial)], 9): trial for trial in reversed(good)}
        most = max(distinct)
        kept = [distinct[mean] for mean in sorted(distinct, reverse=True) if 2 * mean >= most]
        shown = [replace(trial.proposal, mean_iou=means[id(trial)]) for trial in kept]
        return replace(pairing, proposals=tuple(shown)), kept[0]
    best = min(known, key=lambda trial: trial.undeclared)
    return replace(pairing, proposals=(best.proposal,)), best


def _trial(proposal: Proposal, job: Job, given: Job) -> Trial | None:
    """A trial of a proposal; None if its files are large, or of another kind than the options."""
    pairing = proposal.pairing
    pairs = sampled(pairing.pairs, _SAMPLE)
    sizes = [
        source.stamp(path).size or 0
        for pair in pairs
        for source, path in zip(job.sources, pair.sides, strict=True)
    ]
    if max(sizes, default=0) > LARGE:
        return None
    try:
        header = job.header(pairing, len(pairing.pairs))
    except ValueError:  # reported once the files are paired
        return None
    scorer = scorer_of(job, pairing, header)
    return Trial(given, job, proposal, scorer, pairs, *tried(scorer, pairs))
