from segiou.checks.measure_check import MeasureCheck as MeasureCheck, check_measure as check_measure
