"""HLO text of a network without its weights: elide.py HEDDLE MODEL.onnx OUT.hlo

Constants whose text has 2,000 characters or more become {...}; `heddle … --random-constants` invents
them again. A network of 400 MB is then a text of 200 kB, which says as much about speed.
"""
import re
import subprocess
import sys

LARGE = re.compile(r"constant\((.{2000,})\)(, metadata=.*)?$")


def main(heddle, model, out):
    child = subprocess.Popen([heddle, "compile", model, "--stop-after", "import"], text=True,
                             stdout=subprocess.PIPE)
    with open(out, "w") as file:
        for line in child.stdout:
            file.write(LARGE.sub(lambda found: "constant({...})" + (found[2] or ""), line))
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
