"""Print where the processor time of a start goes: `python -m bench.start_profile`, after `python -m bench cold-start`.

Each start is a process of its own in the image. Times are of one thread each, so a busy machine changes them little.
"""

import json
import statistics
import subprocess

from bench.function.image import IMAGE
from bench.report import show

STARTS = 20
PARTS = {
    "NumPy": ("numpy",),
    "ONNX Runtime": ("onnxruntime",),
    "tokenizers, safetensors, simsimd": ("tokenizers", "safetensors", "simsimd"),
    "pydantic and its helpers": (
        *("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions", "annotated_doc"),
    ),
    "FastAPI": ("fastapi",),
    "Starlette, anyio, Mangum": ("starlette", "anyio", "mangum"),
    "powertools": ("aws_lambda_powertools",),
    "this function's own modules": ("function",),
}
INSIDE = """
import sys, time
parts = {"the interpreter, before the handler": time.process_time() * 1e3}
import json, threading
import _frozen_importlib as frozen
clock, load, local = time.thread_time, frozen._find_and_load_unlocked, threading.local()
modules = {}
def timed(name, import_):
    stack = local.__dict__.setdefault("stack", [])
    stack.append(0.0)
    begin = clock()
    try:
        return load(name, import_)
    finally:
        taken, inner = clock() - begin, stack.pop()
        modules[name] = modules.get(name, 0) + (taken - inner) * 1e3
        if stack:
            stack[-1] += taken
frozen._find_and_load_unlocked = timed
time.perf_counter_ns = time.thread_time_ns  # the handler's phases become processor time
import function.archive
function.archive.use_archive()
before = dict(modules)
def wrap(owner, name, part):
    function = getattr(owner, name)
    def timed_call(*arguments, **options):
        begin = clock()
        try:
            return function(*arguments, **options)
        finally:
            parts[part] = parts.get(part, 0) + (clock() - begin) * 1e3
    setattr(owner, name, timed_call)
import function.engine.embedder as embedder, function.engine.loading as loading
wrap(embedder, "read_tokenizer", "thread: the tokenizer")
wrap(embedder, "open_session", "thread: ONNX Runtime's session")
wrap(loading, "load", "thread: all")
import function.handler as handler
phases = handler.cold_start.phases
parts["the app"], parts["one request, to warm up"] = phases["app"], phases["warm-up"]
modules["function.handler"] -= phases["app"] + phases["warm-up"]
print(json.dumps([parts, modules, time.process_time() * 1e3]))
"""


def main() -> None:
    """Measure and print."""
    script = f"for i in $(seq {STARTS + 1}); do python3 -c \"$INSIDE\"; done"
    environment = ("--env", f"INSIDE={INSIDE}", "--env", "BUNDLE_DIR=/var/task/bundle")
    paths = ("--env", "PYTHONPATH=/var/task:/var/runtime")
    command = ["docker", "run", "--rm", *environment, *paths, "--entrypoint", "sh", IMAGE, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: dict[str, list[float]] = {}
    for line in done.stdout.splitlines()[1:]:
        parts, modules, total = json.loads(line)
        found = {"the interpreter, before the handler": parts.pop("the interpreter, before the handler")}
        rest = dict(modules)
        for part, packages in PARTS.items():
            own = [name for name in rest if name.partition(".")[0] in packages]
            found[f"import: {part}"] = sum(rest.pop(name) for name in own)
        found["import: the standard library"] = sum(rest.values())
        parts["thread: the rest of opening the bundle"] = (
            parts.pop("thread: all") - parts["thread: the tokenizer"] - parts["thread: ONNX Runtime's session"]
        )
        for part, milliseconds in {**found, **parts, "all": total}.items():
            rows.setdefault(part, []).append(milliseconds)
    show(("part", "CPU ms"), [(part, f"{statistics.median(found):.1f}") for part, found in rows.items()])


if __name__ == "__main__":
    main()
