from segiou.measures.few_shot.measure import FewShotOptions as FewShotOptions
