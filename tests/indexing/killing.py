"""Work that kills its process at a chosen moment.

The moments are when it opens, renames or removes something in a folder: nothing else that it does outlives it.
"""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from semsearch.indexing.vectors import embed
from tests.project import ROOT

NEVER = 10**9  # a moment that no work reaches

KILLED = """
import os, pickle, signal, sys
from semsearch.indexing import steps
from semsearch.indexing.vectors import embed
steps.measure_floor = lambda folder, manifest, on_progress: manifest  # as in the process of the tests
embed.TEXTS_PER_SHARD = int(sys.argv[1])
folder, left = sys.argv[2], int(sys.argv[3])
work = pickle.load(sys.stdin.buffer)

def count(event, arguments):
    global left
    if event in EVENTS and any(str(argument).startswith(folder) for argument in arguments):
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.chmod")
sys.addaudithook(count)
work()
print("moments left:", left)
"""


def run_until(moment: int, folder: Path, work: Callable[[], object]) -> subprocess.CompletedProcess[bytes]:
    """Do the work in a process of its own, which is killed at a moment of the folder, from 0. It can be pickled."""
    command = [sys.executable, "-c", KILLED, *map(str, (embed.TEXTS_PER_SHARD, folder, moment))]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, input=pickle.dumps(work))


def count_moments(folder: Path, work: Callable[[], object]) -> int:
    """Do the work to its end, and return the number of its moments."""
    done = run_until(NEVER, folder, work)
    assert done.returncode == 0, done.stderr.decode()
    return NEVER - int(done.stdout.decode().rpartition(":")[2])
