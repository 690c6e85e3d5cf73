# Every task a person runs. Each target does its own set-up; a second run installs nothing.
# Settings: PYTHON=/path/to/python3.12  TORCH_INDEX=address  PORT=8000  FILES="notebooks/12_grad_fn.ipynb"
#           SUBJECTS="cnn-1 lstm-30"

# Any Python will do to start the set-up: it looks for one that is new enough.
LAUNCH := $(shell command -v python3 || command -v python || command -v "$(PYTHON)")
SETUP = @if [ -z "$(LAUNCH)" ]; then \
	echo "There is no python3 here: install Python 3.11 or newer." >&2; exit 1; fi; "$(LAUNCH)" tools/setup_env.py
PY := .venv/bin/python
PORT ?= 8000
FILES ?=
SUBJECTS ?=
# The tests of the site and of notebooks read it; the set-up wrote it.
BROWSER = CHROMIUM="$$(cat .venv/chromium.path)"

.DEFAULT_GOAL := help
.PHONY: help book test lab serve zip notebooks release-check bench lint clean

help: ## show this list
	@echo "Inside Autograd. What you can do here:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

book: ## build the site and say where it is
	$(SETUP)
	@$(PY) tools/build_book.py

test: ## run every test: code, notebooks, built site
	$(SETUP) --with-browser
	@echo "== style"
	@$(PY) -m ruff check .
	@echo "== tests of the code"
	@$(BROWSER) $(PY) -m pytest tests --ignore=tests/site -q -n 2 --dist loadfile
	@echo "== every notebook, cell by cell, against its stored output"
	@$(PY) -m pytest --nbval --nbval-current-env notebooks -n 2 --dist loadfile -q
	@echo "== the site"
	@$(PY) tools/build_book.py
	@$(BROWSER) $(PY) -m pytest tests/site -q -n 2 --dist loadfile

lab: ## work through the chapters in JupyterLab, on your own copies in work/
	$(SETUP)
	@$(PY) tools/learner_copies.py
	@$(PY) tools/lab.py

serve: ## build the site and serve it to this computer (PORT=8000)
	$(SETUP)
	@$(PY) tools/build_book.py
	@$(PY) tools/serve.py "$(PORT)"

zip: ## put the site into one archive that opens without a server
	$(SETUP)
	@$(PY) tools/build_book.py
	@$(PY) tools/offline_copy.py

notebooks: ## run the chapters again and store their outputs (FILES="notebooks/12_grad_fn.ipynb")
	$(SETUP)
	@$(PY) tools/notebooks.py $(FILES)

release-check: ## try the chapters the way Colab and Binder run them (takes long)
	$(SETUP) --with-browser
	@$(BROWSER) $(PY) tools/release_check.py

bench: ## measure the helper against other tools, about 15 minutes (SUBJECTS="cnn-1 lstm-30")
	$(SETUP)
	@$(PY) benchmarks/environment.py
	@.venv-bench/bin/python benchmarks/bench.py $(SUBJECTS)

lint: ## check the style of the code
	$(SETUP)
	@$(PY) -m ruff check .

clean: ## remove what was built; .venv and your work/ stay
	@rm -rf _build .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
