# Everything a newcomer needs: `make demo`, `make test` and `make docs`. Each creates .venv and installs what it uses.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1

.PHONY: demo test pytest lint types docs bench reproduce mutants attack soak clean

demo: .venv/demo.stamp
	$(BIN)/python examples/demo.py

test: .venv/dev.stamp
	@$(MAKE) --no-print-directory -j 3 lint types pytest

pytest: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/dev.stamp
	$(BIN)/mypy

docs: .venv/docs.stamp
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo docs/_build/html/index.html

bench: .venv/demo.stamp
	$(BIN)/python benchmarks/routing.py
	$(BIN)/python benchmarks/train_step.py --quick
	$(BIN)/python benchmarks/paper_network.py

# Everything from the stored weights; PAPER=1 for the paper's network only, WHAT=table1a for another part (see
# python -m reproduction); TRAIN=1 trains what is missing.
WHAT ?= $(if $(PAPER),paper,all)
reproduce: .venv/train,figures.stamp
	$(BIN)/python -m reproduction $(WHAT) $(if $(TRAIN),,--no-training)

mutants: .venv/dev.stamp
	$(BIN)/python tests/mutants.py

# Thousands of damaged files, hostile words and kills, all on this machine; bounded in number.
attack: .venv/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m attack --page

# Trainings, predictions and the page, killed and continued for a long time.
MINUTES ?= 30
soak: .venv/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m attack.soak --page --minutes $(MINUTES)

.venv/%.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("equicaps needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[$*]'
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true  # on all cores, unlike pip; some packages carry templates
	touch $@

clean:
	rm -rf .venv
