"""Lets every test import the builders that lie beside it: `exports`, `real_data` and the others."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
