"""The scripts of the image build. They run in the image's stages, and none is imported by the function."""

# what the image holds of this repository, besides the bundle; .dockerignore lets the same through
SHIPPED = (
    "function",
    *(f"semsearch/{part}" for part in ("__init__.py", "version.py", "engine", "search", "aws", "app")),
)
