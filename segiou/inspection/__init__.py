"""What is in the masks of a folder, before anybody scores them."""

from segiou.inspection.findings import Fit, Inspection
from segiou.inspection.looking import inspect_folder

__all__ = ["Fit", "Inspection", "inspect_folder"]
