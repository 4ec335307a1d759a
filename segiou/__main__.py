"""Let ``python -m segiou`` be the ``segiou`` command."""

import sys

from segiou.cli.main import main

sys.exit(main())
