from segiou.suspects.ranking import find_suspects as find_suspects
from segiou.suspects.result import (
    ClassPair as ClassPair,
    Region as Region,
    Reviewed as Reviewed,
    Suspects as Suspects,
)
