"""python -m semsearch: the same as the console script."""

from semsearch.commands.main import main

if __name__ == "__main__":
    main()
