// The programs that heddle calibrate measures, as HLO text.
#include "api/calibrate_texts.h"

#include <fmt/format.h>

namespace heddle::api {
namespace {

const char* kHead =
    "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  ROOT c = f32[] add(a, b)\n}\nlarger {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  ROOT c = f32[] maximum(a, b)\n}\nENTRY e {\n";

std::string softmax_text(int64_t rows, int64_t columns) {
  return fmt::format(R"({0}  x = f32[{1},{2}] parameter(0)
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[{1}] reduce(x, least), dimensions={{1}}, to_apply=larger
  mm = f32[{1},{2}] broadcast(m), dimensions={{0}}
  t = f32[{1},{2}] subtract(x, mm)
  p = f32[{1},{2}] exponential(t)
  s = f32[{1}] reduce(p, zero), dimensions={{1}}, to_apply=sum
  ss = f32[{1},{2}] broadcast(s), dimensions={{0}}
  ROOT y = f32[{1},{2}] divide(p, ss)
}})",
                     kHead, rows, columns);
}

std::string norm_text(int64_t rows, int64_t columns) {
  return fmt::format(R"({0}  x = f32[{1},{2}] parameter(0)
  r = f32[{1},{2}] parameter(1)
  zero = f32[] constant(0)
  part = f32[] constant({3})
  parts = f32[{1}] broadcast(part), dimensions={{}}
  a = f32[{1},{2}] add(x, r)
  s = f32[{1}] reduce(a, zero), dimensions={{1}}, to_apply=sum
  mean = f32[{1}] multiply(s, parts)
  means = f32[{1},{2}] broadcast(mean), dimensions={{0}}
  d = f32[{1},{2}] subtract(a, means)
  q = f32[{1},{2}] multiply(d, d)
  v = f32[{1}] reduce(q, zero), dimensions={{1}}, to_apply=sum
  w = f32[{1}] multiply(v, parts)
  i = f32[{1}] rsqrt(w)
  is = f32[{1},{2}] broadcast(i), dimensions={{0}}
  ROOT y = f32[{1},{2}] multiply(d, is)
}})",
                     kHead, rows, columns, 1.0 / static_cast<double>(columns));
}

std::string map_text(const std::string& op, int64_t rows, int64_t columns) {
  return fmt::format(R"({0}  x = f32[{1},{2}] parameter(0)
  b = f32[{2}] parameter(1)
  bb = f32[{1},{2}] broadcast(b), dimensions={{1}}
  a = f32[{1},{2}] add(x, bb)
  ROOT y = f32[{1},{2}] {3}(a)
}})",
                     kHead, rows, columns, op);
}

std::string reduce_text(int64_t rows, int64_t columns, int dimension) {
  return fmt::format(R"({0}  x = f32[{1},{2}] parameter(0)
  y = f32[{1},{2}] parameter(1)
  zero = f32[] constant(0)
  m = f32[{1},{2}] multiply(x, y)
  ROOT s = f32[{3}] reduce(m, zero), dimensions={{{4}}}, to_apply=sum
}})",
                     kHead, rows, columns, dimension == 1 ? rows : columns, dimension);
}

}  // namespace

std::string copy_text(int64_t elems) {
  return fmt::format("{0}  x = f32[{1}] parameter(0)\n  ROOT y = f32[{1}] negate(x)\n}}\n", kHead,
                     elems);
}

std::string row_text(int64_t elems, int count) {
  std::string text = fmt::format("{}  v0 = f32[{}] parameter(0)\n", kHead, elems);
  for (int i = 1; i <= count; ++i)
    text += fmt::format("  {}v{} = f32[{}] {}(v{}, v0)\n", i == count ? "ROOT " : "", i, elems,
                        i % 2 == 0 ? "add" : "multiply", i - 1);
  return text + "}\n";
}

std::string operator_text(const std::string& op, int count) {
  constexpr int kElems = 2048;
  std::string text = fmt::format(
      "{0}  x = f32[{1}] parameter(0)\n  p = f32[{1}] abs(x)\n  s0 = f32[{1}] negate(p)\n", kHead,
      kElems);
  for (int i = 1; i <= count; ++i) {
    const std::string d = fmt::format("d{}", i);
    const bool binary = hlo::opcode_info(*hlo::opcode_from_text(op)).least_operands == 2;
    // The maximum with x: p would always be the smaller one.
    const std::string call = op == "maximum" ? fmt::format("maximum({}, x)", d)
                             : binary        ? fmt::format("{}(p, {})", op, d)
                                             : fmt::format("{}({})", op, d);
    text += fmt::format(
        "  a{0} = f32[] constant({2})\n  b{0} = f32[] constant({3})\n"
        "  m{0} = f32[{1}] broadcast(a{0}), dimensions={{}}\n"
        "  n{0} = f32[{1}] broadcast(b{0}), dimensions={{}}\n"
        "  c{0} = f32[{1}] multiply(p, m{0})\n  d{0} = f32[{1}] add(c{0}, n{0})\n"
        "  t{0} = f32[{1}] {4}\n  {5}s{0} = f32[{1}] add(s{6}, t{0})\n",
        i, kElems, 0.3 + 0.01 * i, 0.4 + 0.02 * i, call, i == count ? "ROOT " : "", i - 1);
  }
  return text + "}\n";
}

std::vector<hlo::Opcode> measured_operators() {
  std::vector<hlo::Opcode> all = {hlo::Opcode::maximum, hlo::Opcode::floor};
  for (int i = 0; i < hlo::kOpcodeCount; ++i) {
    const auto opcode = static_cast<hlo::Opcode>(i);
    const hlo::OpcodeInfo& info = hlo::opcode_info(opcode);
    if (info.stage == hlo::StageKind::map && hlo::is_costly(opcode) && !info.kernel_op.empty())
      all.push_back(opcode);
  }
  return all;
}

std::string sum_text(int64_t rows, int64_t columns) {
  return fmt::format(R"({0}  x = f32[{1},{2}] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[{1}] reduce(x, zero), dimensions={{1}}, to_apply=sum
}})",
                     kHead, rows, columns);
}

std::string product_text(tensor::Type a, tensor::Type b, tensor::Type sums, int64_t rows,
                         int64_t columns, int64_t k) {
  return fmt::format(R"({0}  x = {1}[{4},{6}] parameter(0)
  i = s32[{6},{5}] iota(), iota_dimension=0
  c = s32[] constant(5)
  cs = s32[{6},{5}] broadcast(c), dimensions={{}}
  r = s32[{6},{5}] remainder(i, cs)
  w = {2}[{6},{5}] convert(r)
  ROOT y = {3}[{4},{5}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}})",
                     kHead, tensor::type_name(a), tensor::type_name(b), tensor::type_name(sums),
                     rows, columns, k);
}

std::vector<SampleText> samples() {
  return {{"softmax 64x256", softmax_text(64, 256)},
          {"softmax 2048x512", softmax_text(2048, 512)},
          {"layer norm 128x768", norm_text(128, 768)},
          {"layer norm 4096x768", norm_text(4096, 768)},
          {"bias, tanh 128x3072", map_text("tanh", 128, 3072)},
          {"bias, tanh 4096x3072", map_text("tanh", 4096, 3072)},
          {"bias, negate 32x256", map_text("negate", 32, 256)},
          {"bias, negate 512x1024", map_text("negate", 512, 1024)},
          {"bias, negate 8192x2048", map_text("negate", 8192, 2048)},
          {"multiply, sum of rows 512x1024", reduce_text(512, 1024, 1)},
          {"multiply, sum of rows 16384x1024", reduce_text(16384, 1024, 1)},
          {"multiply, sum of columns 4096x512", reduce_text(4096, 512, 0)}};
}

}  // namespace heddle::api
