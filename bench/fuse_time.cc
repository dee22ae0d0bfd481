// How long fusing takes for graphs of many operators.
//
//   fuse_time [OPERATORS...]
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fuse/fuse.h"
#include "hlo/text.h"

namespace {

using heddle::fuse::Mode;

// Blocks of normalisation, activation and residual over rows; `kinds` of them differ in extents.
std::string graph_of(int operators, int kinds) {
  std::mt19937 random(7);
  std::string text =
      "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  ROOT c = f32[] add(a, b)\n}\nENTRY e {\n  zero = f32[] constant(0)\n";
  std::vector<std::string> last(static_cast<size_t>(kinds));
  std::vector<std::string> shape(static_cast<size_t>(kinds)), row(static_cast<size_t>(kinds));
  int made = 1;
  for (int k = 0; k < kinds; ++k) {
    row[k] = fmt::format("f32[{}]", 64 + k);
    shape[k] = fmt::format("f32[{},{}]", 64 + k, 128 + 16 * (k % 40));
    text += fmt::format("  p{} = {} parameter({})\n", k, shape[k], k);
    last[k] = fmt::format("p{}", k);
    ++made;
  }
  const char* functions[] = {"exponential", "tanh", "negate", "logistic", "abs"};
  for (int block = 0; made < operators; ++block, made += 9) {
    const int k = static_cast<int>(random() % static_cast<unsigned>(kinds));
    const std::string &s = shape[k], &r = row[k], &x = last[k];
    text += fmt::format(
        "  s{0} = {2} reduce({3}, zero), dimensions={{1}}, to_apply=sum\n"
        "  b{0} = {1} broadcast(s{0}), dimensions={{0}}\n"
        "  d{0} = {1} subtract({3}, b{0})\n"
        "  q{0} = {1} multiply(d{0}, d{0})\n"
        "  v{0} = {2} reduce(q{0}, zero), dimensions={{1}}, to_apply=sum\n"
        "  w{0} = {1} broadcast(v{0}), dimensions={{0}}\n"
        "  y{0} = {1} divide(d{0}, w{0})\n"
        "  f{0} = {1} {4}(y{0})\n"
        "  x{0} = {1} add(f{0}, {3})\n",
        block, s, r, x, functions[random() % 5]);
    last[k] = fmt::format("x{}", block);
  }
  text += "  ROOT out = (";
  for (int k = 0; k < kinds; ++k) text += (k ? ", " : "") + shape[k];
  text += ") tuple(";
  for (int k = 0; k < kinds; ++k) text += (k ? ", " : "") + last[k];
  return text + ")\n}\n";
}

double seconds(const heddle::hlo::Module& module, Mode mode, int64_t* kernels) {
  auto copy = module.clone();
  const auto target = heddle::target::find_target("icelake");
  timespec begin{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  if (!heddle::fuse::fuse(copy.get(), *target, mode)) std::exit(1);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  *kernels = 0;
  for (const auto* instr : copy->entry()->instrs())
    *kernels += instr->is(heddle::hlo::Opcode::fusion);
  return static_cast<double>(end.tv_sec - begin.tv_sec) +
         1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
}

}  // namespace

int main(int count, char** values) {
  std::vector<int> sizes;
  for (int i = 1; i < count; ++i) sizes.push_back(std::atoi(values[i]));
  if (sizes.empty()) sizes = {1000, 3000, 10000, 25000, 50000};
  fmt::print("{:>10} {:>8} {:>10} {:>10} {:>10} {:>14}\n", "operators", "shapes", "greedy",
             "stitch", "kernels", "ms by 1000");
  std::vector<std::pair<double, double>> points;
  for (int size : sizes) {
    const auto module = heddle::hlo::parse_module(graph_of(size, std::max(2, size / 250)));
    if (!module) {
      fmt::print(stderr, "{}\n", module.error().message);
      return 1;
    }
    int64_t greedy_kernels = 0, kernels = 0;
    const double greedy = seconds(**module, Mode::greedy, &greedy_kernels);
    const double stitch = seconds(**module, Mode::stitch, &kernels);
    fmt::print("{:>10} {:>8} {:>9.3f}s {:>9.3f}s {:>10} {:>14.1f}\n", size, std::max(2, size / 250),
               greedy, stitch, kernels, 1e6 * stitch / size);
    points.emplace_back(std::log(size), std::log(stitch));
  }
  if (points.size() > 1) {
    double mx = 0, my = 0, xy = 0, xx = 0;
    for (const auto& [x, y] : points) mx += x / points.size(), my += y / points.size();
    for (const auto& [x, y] : points) xy += (x - mx) * (y - my), xx += (x - mx) * (x - mx);
    fmt::print("time grows with operators to the power of {:.2f}\n", xy / xx);
  }
  return 0;
}
