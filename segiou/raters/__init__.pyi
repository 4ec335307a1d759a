from segiou.raters.folders import compare_raters as compare_raters
from segiou.raters.result import RaterAgreement as RaterAgreement
