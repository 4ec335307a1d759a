from segiou.counting.arrays import as_label_array as as_label_array
from segiou.counting.channels import (
    CHANNELS_BACKEND as CHANNELS_BACKEND,
    count_channels as count_channels,
)
from segiou.counting.counts import (
    ConfusionCounts as ConfusionCounts,
    Counts as Counts,
    check_counts as check_counts,
)
from segiou.counting.encoding import (
    BACKEND as BACKEND,
    Encoding as Encoding,
    UndeclaredValuesError as UndeclaredValuesError,
    count_pairs as count_pairs,
)
from segiou.counting.id_pairs import count_id_pairs as count_id_pairs
from segiou.counting.scores import (
    SCORES_BACKEND as SCORES_BACKEND,
    scores_to_labels as scores_to_labels,
)
from segiou.counting.value_codes import ValueCodes as ValueCodes
from segiou.counting.window_counts import count_windows as count_windows
