from segiou.scoring.clusters import match_clusters as match_clusters
from segiou.scoring.engines import ExecutorLostError as ExecutorLostError
from segiou.scoring.evaluator import Evaluator as Evaluator
from segiou.scoring.folder import (
    Callbacks as Callbacks,
    score_folder as score_folder,
    score_job as score_job,
)
from segiou.scoring.inspection import Inspection as Inspection, inspect_folder as inspect_folder
from segiou.scoring.job import Job as Job
from segiou.scoring.label_set_match import LabelSetMatch as LabelSetMatch
from segiou.scoring.pair import PairScorer as PairScorer
from segiou.scoring.problems import DataError as DataError, ScoringInterrupted as ScoringInterrupted
from segiou.scoring.score_arrays import score as score
