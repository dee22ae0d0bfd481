"""python -m heddle: the heddle command, which is a program of its own in this package."""
import os
import pathlib
import sys


def main() -> int:
    program = pathlib.Path(__file__).parent / "bin" / "heddle"
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except OSError as error:
        print(f"error: {program}: {error.strerror}; is the package heddle installed whole? "
              "pip install --force-reinstall heddle", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
