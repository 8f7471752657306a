"""Ways to spend less time importing, each in a file of its own. `python -m bench cold-start` measures them together.

    archive             the libraries' modules come compiled from one file; `python -m function.quick_start` makes it
    lazy                modules that no request uses are loaded if they are used after all
    absent              modules that are asked for and done without
    dataclass_methods   what dataclasses write and compile comes compiled
    models, openapi     pydantic builds what no request validates at its first use
    numpy_types         NumPy without its types for checkers
    endpoints           FastAPI is told where the endpoints stand
    collection          no garbage is collected

Each is undone when the imports are over, or lasts without changing what a program can do: hmac then works without
OpenSSL, and NumPy's linear algebra names a stand-in in the annotations of its results. Where one leans on how a library
is made inside, a test fails when the library changes.
"""
