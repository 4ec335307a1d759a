from segiou.explorer.page import (
    Explorer as Explorer,
    explore as explore,
    explorer_page as explorer_page,
)
