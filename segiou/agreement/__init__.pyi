from segiou.agreement.folders import raters as raters
from segiou.agreement.scores import RaterAgreement as RaterAgreement
