from segiou.raters.folders import compare_raters as compare_raters
from segiou.raters.scores import RaterAgreement as RaterAgreement
