from segiou.regions.components import label_components as label_components
from segiou.regions.label_codes import LabelCodes as LabelCodes
from segiou.regions.tolerance import Tolerance as Tolerance
