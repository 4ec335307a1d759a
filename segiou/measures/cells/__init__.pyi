from segiou.measures.cells.matching import CellScores as CellScores, cell_scores as cell_scores
from segiou.measures.cells.measure import CellOptions as CellOptions
