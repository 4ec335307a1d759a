from segiou.scoring.dispatch import EngineLostError as EngineLostError
from segiou.scoring.folder import score_folder as score_folder
from segiou.scoring.inspection import (
    Fit as Fit,
    Inspection as Inspection,
    inspect_folder as inspect_folder,
)
from segiou.scoring.pair import PairScorer as PairScorer
from segiou.scoring.pairings import (
    DataError as DataError,
    Stopped as Stopped,
    pairing_problems as pairing_problems,
    undeclared_text as undeclared_text,
)
from segiou.scoring.score_arrays import score as score
