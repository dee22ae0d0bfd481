// Random modules that put boxes into donated arrays and into a loop's state: what makes a box,
// where it begins, who else reads the array, the box or what became of it. One thread and two,
// static and dynamic memory, against the reference interpreter. HEDDLE_RANDOM_GRAPHS more of them
// from HEDDLE_RANDOM_SEED on.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "compiled_run.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "program/views.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using tensor::Literal;
using Extents = std::vector<int64_t>;

class RandomBoxes {
 public:
  explicit RandomBoxes(uint64_t seed) : random_(seed) {
    in_loop_ = pick(3) == 0;
    const int arrays = 1 + pick(3);
    for (int a = 0; a < arrays; ++a) add_array(a);
    for (int b = 0; b < arrays + pick(2); ++b) add_box(b < arrays ? b : pick(arrays));
    for (Array& array : arrays_)
      if (pick(3) == 0) extra_.push_back({array.extents, elementwise("negate", array.now)});
  }

  std::string text() const { return in_loop_ ? loop_text() : entry_text(); }

 private:
  struct Value {
    Extents extents;
    std::string name;
  };
  struct Array {
    Extents extents;
    std::string first, now;
    bool donated;
  };

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  std::string shape(const Extents& extents, const char* type = "f32") const {
    return fmt::format("{}[{}]", type, fmt::join(extents, ","));
  }

  std::string add(const std::string& shape, const std::string& operation) {
    const std::string name = fmt::format("v{}", lines_.size());
    lines_.push_back(fmt::format("  {} = {} {}\n", name, shape, operation));
    return name;
  }

  // Comes from outside; in a loop it goes round.
  std::string given(const std::string& shape) {
    inputs_.push_back(shape);
    return fmt::format("in{}", inputs_.size() - 1);
  }

  std::string elementwise(const std::string& operation, const std::string& x) {
    return add(shapes_.at(x), fmt::format("{}({})", operation, x));
  }

  std::string known(const Extents& extents, const std::string& name) {
    shapes_[name] = shape(extents);
    return name;
  }

  void add_array(int number) {
    Extents extents;
    const int rank = 1 + pick(4);
    for (int d = 0; d < rank; ++d)
      extents.push_back(d == rank - 1 ? 8 + pick(40) : 2 + pick(rank > 2 ? 6 : 30));
    Array array{extents, known(extents, given(shape(extents))), "", pick(5) > 0};
    array.now = array.first;
    arrays_.push_back(array);
    (void)number;
  }

  std::string product(const Extents& box) {
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < box.size(); ++d) rows *= box[d];
    const int64_t k = 3 + pick(40);
    const std::string a = given(shape({rows, k})), b = given(shape({k, box.back()}));
    const std::string dot = add(
        shape({rows, box.back()}),
        fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", a, b));
    return add(shape(box), fmt::format("reshape({})", dot));
  }

  std::string sum(const Extents& box) {
    Extents longer = box;
    longer.push_back(2 + pick(60));
    const std::string x = given(shape(longer));
    const std::string zero = add("f32[]", "constant(0)");
    return add(shape(box),
               fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply=sum", x, zero, box.size()));
  }

  std::string turned(const Extents& box) {
    Extents back(box.rbegin(), box.rend());
    std::vector<size_t> dimensions;
    for (size_t d = box.size(); d-- > 0;) dimensions.push_back(d);
    const std::string x = given(shape(back));
    return add(shape(box),
               fmt::format("transpose({}), dimensions={{{}}}", x, fmt::join(dimensions, ",")));
  }

  // A part of an array as it was, or is.
  std::string part_of(const Array& array, const Extents& box) {
    std::vector<std::string> ranges;
    for (size_t d = 0; d < box.size(); ++d) {
      const int64_t low = pick(static_cast<int>(array.extents[d] - box[d] + 1));
      ranges.push_back(fmt::format("[{}:{}]", low, low + box[d]));
    }
    const std::string& from = pick(2) == 0 ? array.first : array.now;
    return add(shape(box), fmt::format("slice({}), slice={{{}}}", from, fmt::join(ranges, ", ")));
  }

  std::string box_value(const Array& array, const Extents& box) {
    std::string value;
    switch (pick(7)) {
      case 0:
        value = product(box);
        break;
      case 1:
        value = sum(box);
        break;
      case 2:
        value = turned(box);
        break;
      case 3:
        value = part_of(array, box);
        break;
      default:
        value = given(shape(box));
    }
    known(box, value);
    if (pick(3) > 0) value = known(box, elementwise("tanh", value));
    for (const Value& other : boxes_)
      if (other.extents == box && pick(2) == 0)
        value = known(box, add(shape(box), fmt::format("add({}, {})", value, other.name)));
    return value;
  }

  std::string start() {
    switch (pick(4)) {
      case 0:
        return add("s32[]", fmt::format("constant({})", pick(9) - 2));
      case 1: {
        const std::string factor = add("s32[]", fmt::format("constant({})", pick(11) - 3));
        return add("s32[]", fmt::format("multiply({}, {})", counter(), factor));
      }
      default:
        return counter();
    }
  }

  std::string counter() {
    if (in_loop_ && pick(2) == 0) return "i";
    if (places_.empty() || pick(3) == 0) places_.push_back(given("s32[]"));
    return places_[static_cast<size_t>(pick(static_cast<int>(places_.size())))];
  }

  void add_box(int number) {
    Array& array = arrays_[static_cast<size_t>(number)];
    Extents box;
    for (int64_t extent : array.extents)
      box.push_back(pick(3) == 0 ? extent : 1 + pick(static_cast<int>(extent)));
    std::string value = box_value(array, box);
    boxes_.push_back({box, value});
    if (pick(4) == 0) extra_.push_back(boxes_.back());
    std::string operands = fmt::format("{}, {}", array.now, value);
    for (size_t d = 0; d < box.size(); ++d) operands += ", " + start();
    array.now = known(array.extents,
                      add(shape(array.extents), fmt::format("dynamic-update-slice({})", operands)));
  }

  std::string body() const {
    std::string all;
    for (const std::string& line : lines_) all += line;
    return all;
  }

  static constexpr const char* kSum =
      "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n";

  std::string entry_text() const {
    std::string aliases, parameters, names, shapes;
    size_t output = 0;
    auto add_output = [&](const Extents& extents, const std::string& name) {
      names += (names.empty() ? "" : ", ") + name;
      shapes += (shapes.empty() ? "" : ", ") + shape(extents);
      ++output;
    };
    for (const Array& array : arrays_) {
      if (array.donated)
        aliases += fmt::format("{}{{{}}}: ({}, {{}}, may-alias)", aliases.empty() ? "" : ", ",
                               output, array.first.substr(2));
      add_output(array.extents, array.now);
    }
    for (const Value& value : extra_) add_output(value.extents, value.name);
    for (size_t i = 0; i < inputs_.size(); ++i)
      parameters += fmt::format("  in{} = {} parameter({})\n", i, inputs_[i], i);
    return fmt::format(
        "HloModule boxes, input_output_alias={{ {} }}\n{}ENTRY e {{\n{}{}"
        "  ROOT t = ({}) tuple({})\n}}\n",
        aliases, kSum, parameters, body(), shapes, names);
  }

  // State: counter, how often, what comes from outside (arrays among it), other results.
  std::string loop_text() const {
    std::string shapes = "s32[], s32[]", next = "i1, n", elements, start, zeros, outputs, results;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      shapes += ", " + inputs_[i];
      elements += fmt::format("  in{} = {} get-tuple-element(s), index={}\n", i, inputs_[i], i + 2);
      start += fmt::format(", in{}", i);
      std::string value = fmt::format("in{}", i);
      for (const Array& array : arrays_)
        if (array.first == value) value = array.now;
      next += ", " + value;
    }
    for (size_t e = 0; e < extra_.size(); ++e) {
      shapes += ", " + shape(extra_[e].extents);
      next += ", " + extra_[e].name;
      start += fmt::format(", z{}", e);
      zeros += fmt::format("  z{} = {} broadcast(nothing), dimensions={{}}\n", e,
                           shape(extra_[e].extents));
    }
    std::string parameters, aliases, names, types;
    for (size_t i = 0; i < inputs_.size(); ++i)
      parameters += fmt::format("  in{} = {} parameter({})\n", i, inputs_[i], i);
    size_t output = 0;
    for (const Array& array : arrays_) {
      if (array.donated)
        aliases += fmt::format("{}{{{}}}: ({}, {{}}, may-alias)", aliases.empty() ? "" : ", ",
                               output, array.first.substr(2));
      results += fmt::format("  o{} = {} get-tuple-element(w), index={}\n", output,
                             shape(array.extents), 2 + std::stoi(array.first.substr(2)));
      names += fmt::format("{}o{}", names.empty() ? "" : ", ", output++);
      types += (types.empty() ? "" : ", ") + shape(array.extents);
    }
    for (size_t e = 0; e < extra_.size(); ++e) {
      results += fmt::format("  o{} = {} get-tuple-element(w), index={}\n", output,
                             shape(extra_[e].extents), 2 + inputs_.size() + e);
      names += fmt::format(", o{}", output++);
      types += ", " + shape(extra_[e].extents);
    }
    return fmt::format(
        "HloModule boxes, input_output_alias={{ {} }}\n{}"
        "cond {{ s = ({}) parameter(0) i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] get-tuple-element(s), index=1 ROOT l = pred[] compare(i, n), direction=LT }}\n"
        "body {{\n  s = ({}) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] get-tuple-element(s), index=1\n{}{}  one = s32[] constant(1)\n"
        "  i1 = s32[] add(i, one)\n  ROOT t = ({}) tuple({})\n}}\n"
        "ENTRY e {{\n{}  many = s32[] parameter({})\n  three = s32[] constant(3)\n"
        "  few = s32[] and(many, three)\n  n = s32[] add(few, three)\n  i = s32[] constant(0)\n"
        "  nothing = f32[] constant(0)\n{}  init = ({}) tuple(i, n{})\n"
        "  w = ({}) while(init), condition=cond, body=body\n{}  ROOT r = ({}) tuple({})\n}}\n",
        aliases, kSum, shapes, shapes, elements, body(), shapes, next, parameters, inputs_.size(),
        zeros, shapes, start, shapes, results, types, names);
  }

  std::mt19937_64 random_;
  bool in_loop_ = false;
  std::vector<std::string> inputs_, lines_, places_;
  std::unordered_map<std::string, std::string> shapes_;
  std::vector<Array> arrays_;
  std::vector<Value> boxes_, extra_;
};

// Launches that store a box in its place.
int64_t count_boxes(const program::Program& program) {
  int64_t count = 0;
  program::for_each_command(program, program.commands, program.command_info,
                            [&](const program::Command& command, const program::CommandInfo&, int) {
                              if (const auto* launch = std::get_if<program::Launch>(&command))
                                count +=
                                    std::count(launch->in_part.begin(), launch->in_part.end(), 1);
                            });
  return count;
}

int64_t check(uint64_t seed) {
  const std::string text = RandomBoxes(seed).text();
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << (module ? "" : module.error().message) << text;
  if (!module) return 0;
  std::vector<Literal> arguments = interp::random_arguments(**module, seed), wanted, first;
  auto want = interp::evaluate(**module, arguments);
  EXPECT_TRUE(want) << (want ? "" : want.error().message) << text;
  if (!want) return 0;
  append_leaves(*want, &wanted);
  int64_t boxes = 0;
  for (const int threads : {1, 2}) {
    compiler::Options options;
    options.memory = threads == 1 ? compiler::Memory::planned : compiler::Memory::pooled;
    options.fuse = seed % 4 == 3 ? compiler::Fuse::greedy : compiler::Fuse::stitch;
    auto program = compiler::compile((*module)->clone(), {}, target::host_target(), options);
    EXPECT_TRUE(program) << (program ? "" : program.error().message);
    if (!program) return 0;
    boxes = count_boxes(*program);
    std::string failure;
    const std::vector<Literal> got = run_program(std::move(*program), arguments, threads, &failure);
    EXPECT_EQ(failure, "") << "seed " << seed << "\n" << text;
    if (got.size() != wanted.size()) return 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      tensor::Tolerance tolerance = tensor::derived_tolerance(wanted[i].type(), 64);
      tolerance.relative_to_max = tolerance.absolute = 8 * tolerance.relative;
      const auto comparison = tensor::compare(got[i], wanted[i], tolerance);
      EXPECT_TRUE(comparison.equal) << "seed " << seed << " threads " << threads << " output " << i
                                    << ": " << comparison.describe() << "\n"
                                    << text;
      EXPECT_TRUE(threads == 1 || got[i] == first[i]) << "seed " << seed << " output " << i;
    }
    first = got;
  }
  return boxes;
}

int64_t number_of(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

TEST(BoxPrograms, RandomOnesAreRight) {
  const int64_t first = number_of("HEDDLE_RANDOM_SEED", 0),
                count = number_of("HEDDLE_RANDOM_GRAPHS", 40);
  int64_t boxes = 0;
  for (int64_t seed = first; seed < first + count && !HasFailure(); ++seed)
    boxes += check(static_cast<uint64_t>(seed));
  EXPECT_GT(boxes, count / 3);  // the test reaches what it is about
  RecordProperty("boxes", static_cast<int>(boxes));
  fmt::print("{} boxes in {} modules\n", boxes, count);
}

}  // namespace
}  // namespace heddle
