"""One scoring job: pairs in, a run out, in memory or going on in its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from segiou._arguments import check_choice, refuse_kind
from segiou.pairing import Pair, Pairing
from segiou.run import Run
from segiou.runs import Header, ImageCount, ImageFiles, Problem, RunWriter
from segiou.runs.tables import shown
from segiou.scoring.dispatch import Dispatcher, Scored
from segiou.scoring.engines import EngineChoice, Progress, task_of
from segiou.scoring.pair import PairScorer
from segiou.scoring.pairings import PairingRule
from segiou.scoring.problems import DataError, Stopped
from segiou.sources import ArchiveFolder, LocalFolder, Source

__all__ = ["Job"]


@dataclass(frozen=True)
class Job:
    """Everything that :func:`score_folder` was asked for.

    Attributes
    ----------
    scorer : PairScorer
    rule : PairingRule
    header : Header
        Of the run; what the pairing tells is added.
    engine : EngineChoice
    on_error : {"stop", "skip"}
    stop : callable
    progress : callable, optional
    on_paired : callable, optional
    """

    scorer: PairScorer
    rule: PairingRule
    header: Header
    engine: EngineChoice
    on_error: Literal["stop", "skip"]
    stop: Callable[[], bool]
    progress: Progress | None
    on_paired: Callable[[Sequence[Pair]], None] | None = None

    def __post_init__(self) -> None:
        check_choice("on_error", self.on_error, ("stop", "skip"))
        if self.progress is not None and not callable(self.progress):
            raise refuse_kind("progress", self.progress, "a function of pairs done and total")
        if not callable(self.stop):
            raise refuse_kind("stop", self.stop, "a function that says whether to stop")

    def in_memory(self) -> Run:
        """Score all pairs and keep the counts in memory."""
        pairing, problems = self._paired()
        images: list[ImageCount] = []
        skipped: list[Problem] = []
        for _, result in self._results(pairing.pairs, len(pairing.pairs)):
            if isinstance(result, ImageCount):
                images.append(result)
            else:
                skipped += result
        skipped.sort(key=lambda p: p.where)
        self._check(problems, skipped, len(images), len(pairing.pairs))
        header = self._with_pairing(pairing)
        left_out = (*skipped, *self.rule.left_out(pairing))
        return Run(
            header.options,
            images,
            left_out,
            header.name,
            header.protocol,
            header.provenance,
            header.boundary,
        )

    def in_file(self, path: str | Path) -> Run:
        """Score the pairs that the run file does not hold yet, and keep them there."""
        job = replace(self, scorer=_absolute(self.scorer))
        sources = (job.scorer.truth_source, job.scorer.pred_source)
        pairing, problems = job._paired()
        header = replace(
            job._with_pairing(pairing),
            truth=sources[0].root,
            pred=sources[1].root,
            reading={
                "allow_lossy": job.scorer.allow_lossy,
                "resize_pred": job.scorer.resize_pred,
            },
            expected=len(pairing.pairs),
        )
        with RunWriter(path, header) as writer:
            skipped = job._into(writer, pairing)
            if not problems and (job.on_error == "skip" or not skipped):
                writer.finish()
        run = Run.open(path)
        job._check(problems, skipped, len(run), len(pairing.pairs))
        return run

    def _paired(self) -> tuple[Pairing, list[Problem]]:
        pairing, problems = self.rule.paired(self.scorer.truth_source, self.scorer.pred_source)
        if self.on_paired is not None and not problems:
            self.on_paired(pairing.pairs)
        return pairing, problems

    def _into(self, writer: RunWriter, pairing: Pairing) -> list[Problem]:
        known = writer.settle(self._files_of(pairing.pairs))
        todo = [pair for pair in pairing.pairs if pair.id not in known]
        for problem in self.rule.left_out(pairing):
            writer.skip(problem)
        skipped: list[Problem] = []
        for pair, result in self._results(todo, len(pairing.pairs), writer.flush_if_due):
            if isinstance(result, ImageCount):
                writer.add(result)
                continue
            skipped += result
            for problem in result:
                writer.skip(problem, pair.id)
        return sorted(skipped, key=lambda p: p.where)

    def _files_of(self, pairs: Sequence[Pair]) -> Callable[[str], ImageFiles | None]:
        by_id = {pair.id: pair for pair in pairs}
        truth, pred = self.scorer.truth_source, self.scorer.pred_source

        def files_of(id: str) -> ImageFiles | None:
            pair = by_id.get(id)
            if pair is None:
                return None
            stamps = truth.stamp(pair.truth), pred.stamp(pair.pred)
            return ImageFiles(pair.truth, pair.pred, *stamps)

        return files_of

    def _results(
        self,
        pairs: Sequence[Pair],
        total: int,
        tick: Callable[[], None] = lambda: None,
    ) -> Iterator[Scored]:
        """Results as they come; ``tick`` is called now and then."""
        done = total - len(pairs)
        with self.engine.open() as engine:
            task = task_of(self.scorer, engine)
            for batch in Dispatcher(engine, task, pairs, stop=self.stop).results():
                for scored in batch:
                    done += 1
                    if self.progress is not None:
                        self.progress(done, total)
                    yield scored
                tick()
        if done < total:
            raise Stopped(done, total)

    def _with_pairing(self, pairing: Pairing) -> Header:
        sources = {"truth": self.scorer.truth_source, "pred": self.scorer.pred_source}
        provenance = {side: shown(source.root) for side, source in sources.items()}
        return replace(self.header, provenance={**provenance, "pairing": pairing.rule})

    def _check(
        self, problems: Sequence[Problem], skipped: Sequence[Problem], images: int, pairs: int
    ) -> None:
        found = [*problems, *(skipped if self.on_error == "stop" else ())]
        # Of few pairs, a shard may hold none: then there is nothing to score, and nothing wrong.
        if pairs and not images and not found:
            found = [*skipped]
        if found:
            raise DataError(found)


def _absolute(scorer: PairScorer) -> PairScorer:
    """The same with full paths, which mean the same wherever the run is read."""

    def absolute(source: Source) -> Source:
        if isinstance(source, LocalFolder):
            return LocalFolder(str(Path(source.root).absolute()))
        if isinstance(source, ArchiveFolder):
            full = (str(Path(part).absolute()) for part in (source.root, source.archive))
            return ArchiveFolder(*full)
        return source

    return replace(
        scorer,
        truth_source=absolute(scorer.truth_source),
        pred_source=absolute(scorer.pred_source),
    )
