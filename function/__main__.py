"""python -m function."""

import sys

from function.server import main

sys.exit(main())
