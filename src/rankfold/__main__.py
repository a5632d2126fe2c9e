"""``python -m rankfold``: the command line, where its script is not on the path."""

from rankfold.cli import main

if __name__ == "__main__":
    main(prog_name="rankfold")
