"""`python -m ksp`."""

from __future__ import annotations

import sys

from ksp.cli.main import main

sys.exit(main())
