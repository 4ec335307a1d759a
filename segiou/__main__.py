"""Let ``python -m segiou`` be the ``segiou`` command."""

import sys

from segiou.cli import main

sys.exit(main())
