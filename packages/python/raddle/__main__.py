"""``python -m raddle`` executes the binary."""

import os
import sys

from raddle import find_bin

program = find_bin()
os.execv(program, [program, *sys.argv[1:]])
