from segiou.measures.clicks.measure import (
    ClickOptions as ClickOptions,
    number_of_clicks as number_of_clicks,
)
