#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hlo/state_arrays.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "opt/passes.h"
#include "opt/rules.h"
#include "opt/test_util.h"

namespace heddle::opt {

std::unique_ptr<hlo::Module> parse(std::string_view text) {
  std::string whole(text);
  if (whole.find("ENTRY") == std::string::npos) whole = "ENTRY main {\n" + whole + "\n}";
  auto module = hlo::parse_module(whole);
  HEDDLE_CHECK(module, "{}\n{}", module ? "" : module.error().message, whole);
  Status status = hlo::verify(**module);
  HEDDLE_CHECK(status, "{}\n{}", status ? "" : status.error().message, whole);
  return std::move(*module);
}

pass::RunReport run(hlo::Module& module, std::string_view pipeline, pass::RunOptions options) {
  static const pass::PassTable table(passes());
  options.verify = options.check_changed = true;
  Result<pass::RunReport> report = pass::run(module, pipeline, table, options);
  HEDDLE_CHECK(report, "{}", report ? "" : report.error().message);
  return std::move(*report);
}

namespace {

std::string list(const Ints& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

std::string head(const Instr* x) {
  const std::string name(hlo::opcode_text(x->opcode()));
  const std::string extents =
      x->shape().is_array() ? "[" + list(x->shape().extents()) + "]" : std::string();
  switch (x->opcode()) {
    case Opcode::reshape:
      return name + extents;
    case Opcode::broadcast:
    case Opcode::iota:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::pad:
    case Opcode::concatenate:
    case Opcode::reverse:
    case Opcode::reduce:
    case Opcode::dot: {
      std::string attrs;
      if (x->is(Opcode::slice)) {
        const auto& s = x->attrs_as<hlo::SliceAttrs>();
        for (size_t d = 0; d < s.starts.size(); ++d) {
          attrs += fmt::format("{}{}:{}", d ? "," : "", s.starts[d], s.limits[d]);
          if (s.strides[d] != 1) attrs += fmt::format(":{}", s.strides[d]);
        }
      } else if (x->is(Opcode::pad)) {
        const auto& p = x->attrs_as<hlo::PadAttrs>();
        for (size_t d = 0; d < p.low.size(); ++d)
          attrs += fmt::format("{}{}_{}_{}", d ? "x" : "", p.low[d], p.high[d], p.interior[d]);
      } else if (x->is(Opcode::iota)) {
        attrs = fmt::format("{}", x->attrs_as<hlo::DimensionAttrs>().dimension);
      } else if (x->is(Opcode::dot)) {
        const auto& d = x->attrs_as<hlo::DotAttrs>();
        attrs = fmt::format("b{}/{} c{}/{}", list(d.lhs_batch_dims), list(d.rhs_batch_dims),
                            list(d.lhs_contracting_dims), list(d.rhs_contracting_dims));
      } else {
        attrs = list(x->dimensions());
      }
      return name + extents + "{" + attrs + "}";
    }
    case Opcode::convert:
    case Opcode::bitcast_convert:
      return name + "." + std::string(tensor::type_name(x->shape().type()));
    case Opcode::compare: {
      static const char* const kNames[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
      return std::string("compare.") +
             kNames[static_cast<int>(x->attrs_as<hlo::CompareAttrs>().direction)];
    }
    case Opcode::get_tuple_element:
      return fmt::format("{}.{}", name, x->tuple_index());
    default:
      return name;
  }
}

}  // namespace

std::string expression(const Instr* x) {
  if (x->is(Opcode::parameter)) return fmt::format("p{}", x->parameter_number());
  if (x->is(Opcode::constant)) {
    if (x->shape().is_scalar()) return tensor::to_string(x->literal());
    return "constant[" + list(x->shape().extents()) + "]";
  }
  std::string out = head(x) + "(";
  for (size_t i = 0; i < x->operands().size(); ++i)
    out += (i ? ", " : "") + expression(x->operand(i));
  return out + ")";
}

std::string expression(const hlo::Module& module) { return expression(module.entry()->root()); }

namespace {

double tolerance_of(Type type) {
  switch (type) {
    case Type::f64:
      return 1e-9;
    case Type::f32:
      return 2e-5;
    case Type::f16:
      return 2e-2;
    default:
      return 0.1;
  }
}

// NaNs are equal.
bool close(double x, double y, double room) {
  return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= room;
}

// The first element that differs, or -1.
int64_t first_difference(const Literal& a, const Literal& b, bool inexact) {
  const Type type = a.type();
  for (int64_t i = 0; i < a.elems(); ++i) {
    if (tensor::is_complex(type)) {
      const auto x = a.get_complex(i), y = b.get_complex(i);
      const double room = inexact ? 1e-5 * (1 + std::abs(x)) : 0;
      if (!close(x.real(), y.real(), room) || !close(x.imag(), y.imag(), room)) return i;
      continue;
    }
    if (a.get_bits(i) == b.get_bits(i)) continue;
    if (!tensor::is_float(type)) return i;
    const double x = a.get_f64(i), y = b.get_f64(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!inexact || !(std::abs(x - y) <= tolerance_of(type) * (1 + std::abs(x)))) return i;
  }
  return -1;
}

void compare(const Literal& a, const Literal& b, bool inexact, const std::string& what) {
  ASSERT_TRUE(a.shape().compatible(b.shape()))
      << what << ": " << tensor::to_string(a.shape()) << " and " << tensor::to_string(b.shape());
  for (size_t i = 0; i < a.elements().size(); ++i)
    compare(a.elements()[i], b.elements()[i], inexact, what + "#" + std::to_string(i));
  if (!a.shape().is_array()) return;
  const int64_t i = first_difference(a, b, inexact);
  if (i < 0) return;
  const bool complex = tensor::is_complex(a.type());
  FAIL() << what << ": element " << i << " of " << tensor::to_string(a.shape()) << " is "
         << (complex ? b.get_complex(i).real() : b.get_f64(i)) << ", was "
         << (complex ? a.get_complex(i).real() : a.get_f64(i));
}

}  // namespace

namespace {

void expect_same_values(const hlo::Module& before, const hlo::Module& after,
                        const std::vector<Literal>& arguments, bool inexact,
                        std::string_view what) {
  // States added by a pass start like the interpreter's, and are not results.
  const std::vector<Literal> states = hlo::states_of(after);
  std::vector<Literal> all = arguments;
  all.insert(all.end(), states.begin(), states.end());
  Result<Literal> a = interp::evaluate(before, arguments);
  Result<Literal> b = interp::evaluate(after, all);
  ASSERT_TRUE(a) << what << ": " << a.error().message;
  ASSERT_TRUE(b) << what << ": " << b.error().message;
  if (!states.empty()) {
    std::vector<Literal> elements(b->elements().begin(), b->elements().end() - std::ssize(states));
    const bool alone = !a->shape().is_tuple();
    b = alone ? elements[0] : Literal::tuple(std::move(elements));
  }
  compare(*a, *b, inexact, std::string(what));
}

// Floats that expose almost correct rules; integers at the ends of their range.
void make_special(Literal& argument, size_t shift) {
  static const double kFloats[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1, -1, 1e-45, 3e38, -0.25};
  static const int64_t kIntegers[] = {0, 1, -1, INT64_MIN, INT64_MAX, 127, 128, 255, INT32_MIN, 7};
  if (!argument.shape().is_array() || tensor::is_complex(argument.type())) return;
  for (int64_t i = 0; i < argument.elems(); ++i) {
    const size_t pick = (static_cast<size_t>(i) * (1 + shift) + shift) % std::size(kFloats);
    if (tensor::is_float(argument.type())) {
      argument.set_f64(i, kFloats[pick]);
    } else {
      argument.set_s64(i, argument.type() == Type::pred ? kIntegers[pick] & 1 : kIntegers[pick]);
    }
  }
}

}  // namespace

void expect_same_values(const hlo::Module& before, const hlo::Module& after, uint64_t seed,
                        bool inexact, std::string_view what) {
  expect_same_values(before, after, interp::random_arguments(before, seed), inexact, what);
}

void expect_same_special_values(const hlo::Module& before, const hlo::Module& after,
                                std::string_view what) {
  for (size_t round = 0; round < 4; ++round) {
    std::vector<Literal> arguments = interp::random_arguments(before, 1);
    for (size_t i = 0; i < arguments.size(); ++i) make_special(arguments[i], 3 * round + i);
    expect_same_values(before, after, arguments, false, what);
  }
}

std::string simplified(std::string_view text, std::string_view pipeline, bool inexact) {
  auto module = parse(text);
  auto before = module->clone();
  run(*module, pipeline);
  expect_same_values(*before, *module, 1, inexact, text);
  return expression(*module);
}

void expect_unchanged(std::string_view text, std::string_view pipeline) {
  auto module = parse(text);
  const std::string before = hlo::to_string(*module);
  EXPECT_FALSE(run(*module, pipeline).changed) << text;
  EXPECT_EQ(hlo::to_string(*module), before);
}

void check_rule_cases(const std::vector<RuleCase>& cases) {
  for (const RuleCase& c : cases) {
    SCOPED_TRACE(std::string(c.rule) + ":\n" + std::string(c.text));
    auto module = parse(c.text);
    auto before = module->clone();
    pass::RunOptions options;
    for (const Rule& rule : all_rules())
      if (rule.name != c.rule) options.disabled.push_back(fmt::format("algebraic.{}", rule.name));
    const pass::RunReport report = run(*module, "algebraic", options);
    const bool fires = !c.expected.empty();
    EXPECT_EQ(report.changed, fires);
    if (c.expected != "*") {
      EXPECT_EQ(expression(*module), fires ? std::string(c.expected) : expression(*before));
    }
    EXPECT_TRUE(report.notes.empty());
    for (uint64_t seed : {1, 2}) expect_same_values(*before, *module, seed, false, c.rule);
    expect_same_special_values(*before, *module, c.rule);
  }
}

// Every rule of the table has a case where it applies and one where it does not.
TEST(Rules, EachHasBothKindsOfCases) {
  std::map<std::string_view, std::pair<int, int>> counts;
  for (const auto* table : {&arithmetic_cases(), &logic_cases(), &convert_cases(), &reshape_cases(),
                            &broadcast_cases(), &slice_cases(), &reduce_cases()})
    for (const RuleCase& c : *table)
      ++(c.expected.empty() ? counts[c.rule].second : counts[c.rule].first);
  for (const Rule& rule : all_rules()) {
    EXPECT_GT(counts[rule.name].first, 0) << rule.name << " has no positive case";
    EXPECT_GT(counts[rule.name].second, 0) << rule.name << " has no negative case";
  }
  EXPECT_EQ(counts.size(), all_rules().size()) << "a case names a rule that there is not";
}

}  // namespace heddle::opt
