"""Ways to spend less time importing. Each is undone when the imports are over, or lasts without being seen.

Each says what it saves; `python -m bench cold-start` measures them together. Where one leans on how a library is made
inside, a test fails when the library changes.
"""
