// Kernels of several phases (stages.md §4.3, §4.4, §4.10): columns and rows in one sweep,
// statistics and their use, few long sums; named examples and random ones, checked by the kernel
// interpreter.
#include <gtest/gtest.h>

#include <random>

#include "compiler/fusion_check.h"
#include "cost/strides.h"
#include "fuse/fuse.h"
#include "hlo/text.h"
#include "hlo/verify.h"

namespace heddle::compiler {
namespace {

target::Target target_of(const char* name) { return *target::find_target(name); }

FusionCheck run(const std::string& text, const char* target_name = "icelake") {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  FusionCheck check = check_fusion(**module, target_of(target_name), 11, 1 << 14);
  EXPECT_EQ(check.failure, "") << check.text;
  return check;
}

int64_t kernels_of(const std::string& text, std::vector<fuse::Refusal>* refusals = nullptr) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  EXPECT_TRUE(
      fuse::fuse(module->get(), target_of("icelake"), fuse::Mode::stitch, refusals).has_value());
  auto verified = hlo::verify(**module);
  EXPECT_TRUE(verified.has_value()) << verified.error().message;
  int64_t kernels = 0;
  for (const hlo::Instr* instr : (*module)->entry()->instrs())
    kernels += instr->is(hlo::Opcode::fusion) ? 1 : 0;
  return kernels;
}

constexpr const char* kHead = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
larger { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
)";

// Gradients of a layer norm: rows, and two sums over the rows (stages.md §4.3).
std::string layer_norm_backward(int rows, int columns) {
  const std::string box = fmt::format("[{},{}]", rows, columns), r = fmt::format("[{}]", rows),
                    c = fmt::format("[{}]", columns);
  return kHead + fmt::format(R"(ENTRY e {{
  dy = f32{0} parameter(0)
  x = f32{0} parameter(1)
  gamma = f32{2} parameter(2)
  gammas = f32{0} broadcast(gamma), dimensions={{1}}
  g = f32{0} multiply(dy, gammas)
  zero = f32[] constant(0)
  scale = f32[] constant(0.01)
  scales = f32{1} broadcast(scale), dimensions={{}}
  gsum = f32{1} reduce(g, zero), dimensions={{1}}, to_apply=add
  gmean = f32{1} multiply(gsum, scales)
  gmeans = f32{0} broadcast(gmean), dimensions={{0}}
  gx = f32{0} multiply(g, x)
  gxsum = f32{1} reduce(gx, zero), dimensions={{1}}, to_apply=add
  gxmean = f32{1} multiply(gxsum, scales)
  gxmeans = f32{0} broadcast(gxmean), dimensions={{0}}
  along = f32{0} multiply(x, gxmeans)
  centered = f32{0} subtract(g, gmeans)
  dx = f32{0} subtract(centered, along)
  dyx = f32{0} multiply(dy, x)
  dgamma = f32{2} reduce(dyx, zero), dimensions={{0}}, to_apply=add
  dbeta = f32{2} reduce(dy, zero), dimensions={{0}}, to_apply=add
  ROOT all = (f32{0}, f32{2}, f32{2}) tuple(dx, dgamma, dbeta)
}})",
                             box, r, c);
}

TEST(PhasesTest, LayerNormBackwardIsOneSweep) {
  const FusionCheck ran = run(layer_norm_backward(512, 100));
  ASSERT_EQ(ran.kernel.phases.size(), 2u) << ran.text;
  // Rows and columns in one sweep: nothing is computed twice.
  for (const stage::Placed& placed : ran.placed.placement.stages)
    EXPECT_TRUE(placed.phase > 0 || placed.recompute == 1.0);
  EXPECT_EQ(ran.kernel.scratch_bytes, 0) << ran.text;
  EXPECT_EQ(kernels_of(layer_norm_backward(512, 100)), 1);
  run(layer_norm_backward(512, 100), "avx2");
}

// The numbers of rows have no suitable divisor: the last strip is shorter.
TEST(PhasesTest, StripsNeedNotComeOutEven) {
  EXPECT_EQ(run(layer_norm_backward(1021, 37)).kernel.phases.size(), 2u);
  run(layer_norm_backward(2003, 20), "avx2");
  run(layer_norm_backward(2003, 17), "portable");
}

std::string dice(const std::string& type, int rows, int columns) {
  std::string text = R"(HloModule m
add { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT s = T[] add(a, b) }
ENTRY e {
  x = T[R,C] parameter(0)
  alpha = T[C] parameter(1)
  zero = T[] constant(0)
  part = T[] constant(0.002)
  parts = T[C] broadcast(part), dimensions={}
  total = T[C] reduce(x, zero), dimensions={0}, to_apply=add
  mean = T[C] multiply(total, parts)
  means = T[R,C] broadcast(mean), dimensions={1}
  centered = T[R,C] subtract(x, means)
  squares = T[R,C] multiply(centered, centered)
  square_total = T[C] reduce(squares, zero), dimensions={0}, to_apply=add
  variance = T[C] multiply(square_total, parts)
  epsilon = T[] constant(0.01)
  epsilons = T[C] broadcast(epsilon), dimensions={}
  plus = T[C] add(variance, epsilons)
  inverse = T[C] rsqrt(plus)
  inverses = T[R,C] broadcast(inverse), dimensions={1}
  normal = T[R,C] multiply(centered, inverses)
  gate = T[R,C] logistic(normal)
  passed = T[R,C] multiply(gate, x)
  one = T[] constant(1)
  ones = T[R,C] broadcast(one), dimensions={}
  other = T[R,C] subtract(ones, gate)
  alphas = T[R,C] broadcast(alpha), dimensions={1}
  slope = T[R,C] multiply(other, alphas)
  leaked = T[R,C] multiply(slope, x)
  y = T[R,C] add(passed, leaked)
  ROOT r = (T[R,C], T[C], T[C]) tuple(y, mean, variance)
})";
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool word = i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0);
    if (!word && text[i] == 'T' && text[i + 1] == '[') {
      result += type;
    } else if (!word && text[i] == 'R' && text[i + 1] == ',') {
      result += std::to_string(rows);
    } else if (!word && text[i] == 'C' && text[i + 1] == ']') {
      result += std::to_string(columns);
    } else {
      result += text[i];
    }
  }
  return result;
}

// Statistics of a batch and their use (stages.md §4.4), in every type of floats.
TEST(PhasesTest, BatchStatisticsAreFoldedIntoTheNextPhase) {
  const FusionCheck ran = run(dice("f32", 1000, 40));
  EXPECT_EQ(ran.kernel.phases.size(), 3u) << ran.text;
  EXPECT_EQ(ran.report.buffers[0].max_loads_per_elem, 3);
  EXPECT_EQ(kernels_of(dice("f32", 1000, 40)), 1);
  for (const char* type : {"f16", "bf16", "f64"}) {
    run(dice(type, 1000, 40));
    run(dice(type, 997, 41), "avx2");
  }
  run(dice("f32", 1009, 43), "avx2");
}

// Wide: the values without the row dimension would be too much work for every task to repeat.
TEST(PhasesTest, WideHeadsHaveAPhaseOfTheirOwn) {
  const FusionCheck ran = run(dice("f32", 24, 1500));
  EXPECT_GT(ran.kernel.phases.size(), 3u) << ran.text;
}

// One long vector divided by its norm: lanes along the dimension that is cut.
TEST(PhasesTest, OneLongVector) {
  for (const int64_t elems : {100000, 100003}) {
    const FusionCheck ran = run(kHead + fmt::format(R"(ENTRY e {{
  x = f32[{0}] parameter(0)
  zero = f32[] constant(0)
  s = f32[{0}] multiply(x, x)
  t = f32[] reduce(s, zero), dimensions={{0}}, to_apply=add
  q = f32[] rsqrt(t)
  b = f32[{0}] broadcast(q), dimensions={{}}
  ROOT y = f32[{0}] multiply(x, b)
}})",
                                                    elems));
    EXPECT_EQ(ran.kernel.phases.size(), 2u) << ran.text;
  }
}

// A mean over rows of a reduction of each row.
TEST(PhasesTest, SumOfWhatRowsGive) {
  for (const char* target : {"icelake", "avx2"}) {
    const FusionCheck ran = run(std::string(kHead) + R"(ENTRY e {
  x = f32[600,70] parameter(0)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  top = f32[600] reduce(x, least), dimensions={1}, to_apply=larger
  tops = f32[600,70] broadcast(top), dimensions={0}
  d = f32[600,70] subtract(x, tops)
  e = f32[600,70] exponential(d)
  t = f32[600] reduce(e, zero), dimensions={1}, to_apply=add
  l = f32[600] log(t)
  loss = f32[] reduce(l, zero), dimensions={0}, to_apply=add
  ts = f32[600,70] broadcast(t), dimensions={0}
  p = f32[600,70] divide(e, ts)
  ROOT r = (f32[], f32[600,70]) tuple(loss, p)
})",
                                target);
    EXPECT_EQ(ran.kernel.phases.size(), 2u) << ran.text;
  }
}

// Integers wrap, and maxima start from the least number.
TEST(PhasesTest, IntegersAndOtherCombines) {
  for (const char* type : {"s32", "u32", "s64"}) {
    for (const char* combine : {"add", "maximum", "minimum", "and", "or", "multiply"}) {
      run(fmt::format(R"(HloModule m
c {{ a = {0}[] parameter(0)
  b = {0}[] parameter(1)
  ROOT s = {0}[] {1}(a, b) }}
ENTRY e {{
  x = {0}[701,24] parameter(0)
  start = {0}[] constant(3)
  t = {0}[24] reduce(x, start), dimensions={{0}}, to_apply=c
  ts = {0}[701,24] broadcast(t), dimensions={{1}}
  ROOT y = {0}[701,24] subtract(x, ts)
}})",
                      type, combine));
    }
  }
}

// An initial value that is not neutral is combined once, and infinities and NaN propagate.
TEST(PhasesTest, StartsTakePartOnce) {
  run(std::string(kHead) + R"(ENTRY e {
  x = f32[640,40] parameter(0)
  seven = f32[] constant(7)
  zero = f32[] constant(0)
  zeros = f32[640,40] broadcast(zero), dimensions={}
  inf = f32[640,40] divide(x, zeros)
  t = f32[40] reduce(x, seven), dimensions={0}, to_apply=add
  u = f32[40] reduce(inf, seven), dimensions={0}, to_apply=add
  m = f32[40] reduce(inf, seven), dimensions={0}, to_apply=larger
  s = f32[40] add(t, u)
  ss = f32[640,40] broadcast(s), dimensions={1}
  ms = f32[640,40] broadcast(m), dimensions={1}
  a = f32[640,40] add(x, ss)
  ROOT y = f32[640,40] maximum(a, ms)
})");
}

// Sums over the outer dimensions of an image with the channels last.
TEST(PhasesTest, SeveralDimensionsAreReduced) {
  const FusionCheck ran = run(std::string(kHead) + R"(ENTRY e {
  x = f32[2,30,30,24] parameter(0)
  zero = f32[] constant(0)
  t = f32[24] reduce(x, zero), dimensions={0,1,2}, to_apply=add
  ts = f32[2,30,30,24] broadcast(t), dimensions={3}
  ROOT y = f32[2,30,30,24] subtract(x, ts)
})");
  EXPECT_EQ(ran.kernel.phases.size(), 2u) << ran.text;
}

// NCHW to NHWC and a layer norm over the channels (stages.md §4.5): the sums run along the source's
// lanes, the result is transposed in registers.
TEST(PhasesTest, TransposeInsideOfALayerNorm) {
  const std::string text = std::string(kHead) + R"(ENTRY e {
  x = f32[4,40,20,36] parameter(0)
  gamma = f32[40] parameter(1)
  zero = f32[] constant(0)
  part = f32[] constant(0.025)
  parts = f32[4,20,36] broadcast(part), dimensions={}
  total = f32[4,20,36] reduce(x, zero), dimensions={1}, to_apply=add
  mean = f32[4,20,36] multiply(total, parts)
  means = f32[4,40,20,36] broadcast(mean), dimensions={0,2,3}
  centered = f32[4,40,20,36] subtract(x, means)
  h = f32[4,20,36,40] transpose(centered), dimensions={0,2,3,1}
  squares = f32[4,20,36,40] multiply(h, h)
  square_total = f32[4,20,36] reduce(squares, zero), dimensions={3}, to_apply=add
  variance = f32[4,20,36] multiply(square_total, parts)
  inverse = f32[4,20,36] rsqrt(variance)
  inverses = f32[4,20,36,40] broadcast(inverse), dimensions={0,1,2}
  normal = f32[4,20,36,40] multiply(h, inverses)
  gammas = f32[4,20,36,40] broadcast(gamma), dimensions={3}
  ROOT y = f32[4,20,36,40] multiply(normal, gammas)
})";
  for (const char* target : {"icelake", "avx2", "portable"}) {
    const FusionCheck ran = run(text, target);
    EXPECT_EQ(cost::strided_elems(ran.placed), 0) << ran.text;
  }
  EXPECT_EQ(kernels_of(text), 1);
}

// Random graphs over one shape: elementwise operators, sums of rows, of columns and of all, and
// their broadcasts; some values are outputs.
std::string random_text(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const int64_t rows = 150 + below(400), columns = 34000 / rows + 1 + below(60);
  const std::string shapes[] = {fmt::format("[{},{}]", rows, columns), fmt::format("[{}]", rows),
                                fmt::format("[{}]", columns), "[]"};
  std::vector<std::pair<std::string, int>> values{{"x", 0}, {"y", 0}, {"r", 1}, {"c", 2}};
  std::string text = kHead;
  text +=
      fmt::format("ENTRY e {{\n  x = f32{0} parameter(0)\n  y = f32{0} parameter(1)\n", shapes[0]);
  text += fmt::format("  r = f32{} parameter(2)\n  c = f32{} parameter(3)\n", shapes[1], shapes[2]);
  text +=
      "  zero = f32[] constant(0)\n  least = f32[] constant(-inf)\n  n = f32[] constant(0.003)\n";
  int number = 0;
  auto add = [&](int space, const std::string& rest) {
    values.emplace_back(fmt::format("v{}", number++), space);
    text += fmt::format("  {} = f32{} {}\n", values.back().first, shapes[space], rest);
    return values.back().first;
  };
  static constexpr const char* kInto[] = {"", "{0}", "{1}", "{}"};
  auto wide = [&](const std::pair<std::string, int>& value, int space) {
    if (value.second == space) return value.first;
    if (value.second == 3)
      return add(space, fmt::format("broadcast({}), dimensions={{}}", value.first));
    return add(0, fmt::format("broadcast({}), dimensions={}", value.first, kInto[value.second]));
  };
  const int64_t steps = 6 + below(9);
  for (int64_t i = 0; i < steps; ++i) {
    const auto one = values[static_cast<size_t>(below(std::ssize(values)))];
    const auto other = values[static_cast<size_t>(below(std::ssize(values)))];
    if (below(3) == 0 && one.second != 3) {
      const int to = one.second == 0 ? 1 + static_cast<int>(below(3)) : 3;
      const char* over = one.second != 0 ? "{0}" : to == 1 ? "{1}" : to == 2 ? "{0}" : "{0,1}";
      if (below(4) == 0) {
        add(to, fmt::format("reduce({}, least), dimensions={}, to_apply=larger", one.first, over));
      } else {
        const std::string sum =
            add(to, fmt::format("reduce({}, zero), dimensions={}, to_apply=add", one.first, over));
        const std::string scale = to == 3 ? "n" : add(to, "broadcast(n), dimensions={}");
        add(to, fmt::format("multiply({}, {})", sum, scale));
      }
    } else if (below(5) == 0) {
      const char* functions[] = {"tanh", "logistic", "abs", "negate"};
      add(one.second, fmt::format("{}({})", functions[below(4)], one.first));
    } else {
      const int space = one.second == other.second ? one.second
                        : one.second == 3          ? other.second
                        : other.second == 3        ? one.second
                                                   : 0;
      const std::string a = wide(one, space), b = wide(other, space);
      const char* operators[] = {"add", "subtract", "maximum"};
      add(space, fmt::format("{}({}, {})", operators[below(3)], a, b));
    }
  }
  std::string names, types;
  const int64_t leaves = 1 + below(3);
  for (int64_t i = 0; i < leaves; ++i) {
    const auto& value =
        i == 0 ? values.back() : values[static_cast<size_t>(4 + below(std::ssize(values) - 4))];
    names += (i ? ", " : "") + value.first;
    types += fmt::format("{}f32{}", i ? ", " : "", shapes[value.second]);
  }
  return text + fmt::format("  ROOT out = ({}) tuple({})\n}}\n", types, names);
}

TEST(PhasesTest, RandomGraphs) {
  int phases = 0, refused = 0;
  for (uint64_t seed = 0; seed < 260; ++seed) {
    auto module = hlo::parse_module(random_text(seed));
    ASSERT_TRUE(module.has_value()) << module.error().message << random_text(seed);
    SCOPED_TRACE(seed);
    (*module)->entry()->remove_dead();
    const char* target = seed % 3 == 0 ? "avx2" : "icelake";
    const FusionCheck check = check_fusion(**module, target_of(target), seed, 1 << 17);
    if (check.failure.starts_with("refused")) {
      ++refused;
      continue;
    }
    EXPECT_EQ(check.failure, "") << "seed " << seed << "\n" << random_text(seed) << check.text;
    phases += check.kernel.phases.size() > 1 ? 1 : 0;
    if (HasFailure()) break;
  }
  EXPECT_GE(phases, 25);
  EXPECT_LE(refused, 10);
}

}  // namespace
}  // namespace heddle::compiler
