"""The two rows over all tensors of a network, as HLO text: too long to be written by hand.

    python many_tensors.py l7|l8 [--small]

The 148 tensors are those of a GPT-2 of width 256 with 32000 words: 17.9 million parameters. `--small`
has the same kinds of tensors, few and short.
"""
import argparse
import sys

FULL = {"width": 256, "words": 32000, "places": 1024, "layers": 12}
SMALL = {"width": 5, "words": 23, "places": 7, "layers": 2}
# AdamW; the corrections of the first steps are inputs.
LEARNING_RATE, DECAY, MEAN_KEPT, SQUARE_KEPT, EPSILON = 1e-3, 0.01, 0.9, 0.999, 1e-8
MOST_NORM = 1.0
ADD = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
"""


def shapes(width, words, places, layers):
    layer = [(width,), (width,), (width, 3 * width), (3 * width,), (width, width), (width,),
             (width,), (width,), (width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    return [(words, width), (places, width), *layer * layers, (width,), (width,)]


def text_of(shape):
    return f"f32[{','.join(map(str, shape))}]"


def tuple_of(name, types, operands):
    return f"  ROOT {name} = ({', '.join(types)}) tuple({', '.join(operands)})"


def step(name, shape):
    """One AdamW step of a tensor: parameter, gradient, mean, square and the two corrections."""
    t = text_of(shape)
    numbers = {"kept": MEAN_KEPT, "taken": 1 - MEAN_KEPT, "square_kept": SQUARE_KEPT,
               "square_taken": 1 - SQUARE_KEPT, "rate": LEARNING_RATE, "epsilon": EPSILON,
               "decay": DECAY}
    lines = [f"{name} {{", f"  p = {t} parameter(0)", f"  g = {t} parameter(1)",
             f"  m = {t} parameter(2)", f"  v = {t} parameter(3)",
             "  mean_correction = f32[] parameter(4)", "  square_correction = f32[] parameter(5)"]
    for number, x in numbers.items():
        lines += [f"  {number} = f32[] constant({x:.9g})",
                  f"  {number}s = {t} broadcast({number}), dimensions={{}}"]
    for correction in ["mean_correction", "square_correction"]:
        lines.append(f"  {correction}s = {t} broadcast({correction}), dimensions={{}}")
    for result, op, operands in [
            ("m_old", "multiply", "m, kepts"), ("m_add", "multiply", "g, takens"),
            ("next_m", "add", "m_old, m_add"), ("g2", "multiply", "g, g"),
            ("v_old", "multiply", "v, square_kepts"), ("v_add", "multiply", "g2, square_takens"),
            ("next_v", "add", "v_old, v_add"), ("m_hat", "divide", "next_m, mean_corrections"),
            ("v_hat", "divide", "next_v, square_corrections"), ("root", "sqrt", "v_hat"),
            ("divisor", "add", "root, epsilons"), ("direction", "divide", "m_hat, divisor"),
            ("decayed", "multiply", "p, decays"), ("change", "add", "direction, decayed"),
            ("move", "multiply", "change, rates"), ("next_p", "subtract", "p, move")]:
        lines.append(f"  {result} = {t} {op}({operands})")
    return "\n".join([*lines, tuple_of("next", [t] * 3, ["next_p", "next_m", "next_v"]), "}", ""])


def adamw(sizes):
    """Parameters: all p, all g, all m, all v, the corrections; results: all p, all m, all v. The word
    `positive` tells the test which values to take: v is the mean of squares."""
    count = len(sizes)
    names = {shape: "step_" + "x".join(map(str, shape)) for shape in sizes}
    lines = []
    for k, what in enumerate("pgmv"):
        lines += [f"  {what}{i} = {text_of(shape)} parameter({k * count + i})"
                  for i, shape in enumerate(sizes)]
    lines += [f"  mean_correction = f32[] parameter({4 * count})",
              f"  square_correction = f32[] parameter({4 * count + 1})"]
    for i, shape in enumerate(sizes):
        t = text_of(shape)
        lines.append(f"  next{i} = ({t}, {t}, {t}) call(p{i}, g{i}, m{i}, v{i}, mean_correction, "
                     f"square_correction), to_apply={names[shape]}")
        lines += [f"  next_{what}{i} = {t} get-tuple-element(next{i}), index={k}"
                  for k, what in enumerate("pmv")]
    lines.append(tuple_of("all", [text_of(shape) for shape in sizes] * 3,
                          [f"next_{what}{i}" for what in "pmv" for i in range(count)]))
    steps = [step(name, shape) for shape, name in names.items()]
    head = ["HloModule l7_adamw", "", f"// L7: one step of AdamW on {count} tensors. Written by "
            "bench/rows/many_tensors.py.", "// positive", "", *steps]
    return "\n".join([*head, "ENTRY main {", *lines, "}", ""])


def clip(sizes):
    """Parameters: the gradients; results: the gradients scaled, the norm."""
    lines = [f"  g{i} = {text_of(shape)} parameter({i})" for i, shape in enumerate(sizes)]
    lines.append("  zero = f32[] constant(0)")
    total = "zero"
    for i, shape in enumerate(sizes):
        lines += [f"  squares{i} = {text_of(shape)} multiply(g{i}, g{i})",
                  f"  total{i} = f32[] reduce(squares{i}, zero), "
                  f"dimensions={{{','.join(map(str, range(len(shape))))}}}, to_apply=add",
                  f"  upto{i} = f32[] add({total}, total{i})"]
        total = f"upto{i}"
    lines += [f"  norm = f32[] sqrt({total})", "  epsilon = f32[] constant(1e-6)",
              "  norm_plus = f32[] add(norm, epsilon)",
              f"  most = f32[] constant({MOST_NORM:.9g})", "  wanted = f32[] divide(most, norm_plus)",
              "  one = f32[] constant(1)", "  scale = f32[] minimum(wanted, one)"]
    for i, shape in enumerate(sizes):
        lines += [f"  scales{i} = {text_of(shape)} broadcast(scale), dimensions={{}}",
                  f"  clipped{i} = {text_of(shape)} multiply(g{i}, scales{i})"]
    lines.append(tuple_of("all", [*(text_of(shape) for shape in sizes), "f32[]"],
                          [*(f"clipped{i}" for i in range(len(sizes))), "norm"]))
    head = ["HloModule l8_clip_by_global_norm", "", f"// L8: {len(sizes)} gradients scaled so that their "
            "common norm is at most 1. Written by bench/rows/many_tensors.py.", "", ADD]
    return "\n".join([*head, "ENTRY main {", *lines, "}", ""])


def text(row, sizes):
    return {"l7": adamw, "l8": clip}[row](sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("row", choices=["l7", "l8"])
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    sys.stdout.write(text(options.row, shapes(**(SMALL if options.small else FULL))))


if __name__ == "__main__":
    main()
