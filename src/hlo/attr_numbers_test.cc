// Every number in the attributes of every opcode, replaced by ones that no rank and no extent
// allows: parsing or verification refuses the module, or it is valid and can be read again.
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "hlo/text_test_util.h"
#include "hlo/verify.h"

namespace heddle::hlo {
namespace {

constexpr std::string_view kNumbers[] = {"-1",         "0",
                                         "1",          "2",
                                         "3",          "4",
                                         "7",          "64",
                                         "2147483647", "2147483648",
                                         "4294967296", "9223372036854775807",
                                         "-2",         "-9223372036854775808"};

// Attributes kept as text: no part of the program computes with them.
bool is_text_only(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::infeed:
    case Opcode::outfeed:
    case Opcode::domain:
      return true;
    default:
      return false;
  }
}

struct Number {
  size_t at, size;
};

// The numbers after the operands of one line, those in strings left out.
std::vector<Number> numbers_of(const std::string& line) {
  std::vector<Number> numbers;
  size_t at = line.find("), ");
  if (at == std::string::npos) return numbers;
  bool quoted = false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
  };
  for (; at < line.size(); ++at) {
    if (line[at] == '\\')
      ++at;
    else if (line[at] == '"')
      quoted = !quoted;
    const char before = line[at - 1];
    const bool goes_on = (before == 'x' || before == '_') && is_digit(line[at - 2]);  // 2x2, 1_0
    if (quoted || !is_digit(line[at]) || (is_word(before) && !goes_on)) continue;
    size_t end = at;
    while (end < line.size() && is_digit(line[end])) ++end;
    numbers.push_back({at, end - at});
    at = end;
  }
  return numbers;
}

struct Tally {
  int refused = 0, valid = 0;
};

void try_text(const std::string& text, Tally& tally) {
  auto modules = parse_modules(text);
  if (!modules) {
    ++tally.refused;
    return;
  }
  for (const auto& module : *modules) {
    if (!verify(*module)) {
      ++tally.refused;
      continue;
    }
    ++tally.valid;
    expect_round_trip(*module, text.substr(0, 200));
  }
}

// All lines of a module, each with each of its numbers replaced in turn.
void mutate(const Module& module, std::map<Opcode, Tally>& tallies) {
  const std::string text = to_string(module);
  std::map<std::string, Opcode> opcodes;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->instrs())
      if (!is_text_only(*instr)) opcodes.emplace(instr->name(), instr->opcode());
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t mark = line.find('%'), space = line.find(' ', mark);
    const auto found = mark == std::string::npos
                           ? opcodes.end()
                           : opcodes.find(line.substr(mark + 1, space - mark - 1));
    if (found != opcodes.end() && line.find(" = ") == space) {
      for (const Number& number : numbers_of(line)) {
        for (std::string_view value : kNumbers) {
          std::string changed = text;
          changed.replace(begin + number.at, number.size, value);
          try_text(changed, tallies[found->second]);
        }
      }
    }
    begin = end + 1;
  }
}

// Opcodes whose attributes are numbers (called computations, enumerations and text are not).
constexpr Opcode kNumbered[] = {
    Opcode::broadcast,
    Opcode::concatenate,
    Opcode::dynamic_slice,
    Opcode::gather,
    Opcode::get_dimension_size,
    Opcode::set_dimension_size,
    Opcode::iota,
    Opcode::pad,
    Opcode::reshape,
    Opcode::reverse,
    Opcode::scatter,
    Opcode::slice,
    Opcode::transpose,
    Opcode::map,
    Opcode::reduce_precision,
    Opcode::reduce,
    Opcode::reduce_window,
    Opcode::scan,
    Opcode::select_and_scatter,
    Opcode::sort,
    Opcode::topk,
    Opcode::batch_norm_grad,
    Opcode::batch_norm_inference,
    Opcode::batch_norm_training,
    Opcode::convolution,
    Opcode::dot,
    Opcode::fft,
    Opcode::ragged_dot,
    Opcode::scaled_dot,
    Opcode::get_tuple_element,
    Opcode::fusion,
    Opcode::custom_call,
    Opcode::all_gather,
    Opcode::all_to_all,
    Opcode::reduce_scatter,
    Opcode::all_gather_start,
    Opcode::collective_permute,
    Opcode::send,
    Opcode::recv,
    Opcode::rng_get_and_update_state,
    Opcode::copy_start,
};

TEST(AttrNumbers, AreRefusedOrValid) {
  std::map<Opcode, Tally> tallies;
  for (const char* name : {"ops_elementwise.hlo", "ops_data.hlo", "ops_control.hlo"}) {
    auto modules = parse_modules(testdata(name));
    ASSERT_TRUE(modules) << modules.error().message;
    for (const auto& module : *modules) mutate(*module, tallies);
  }
  for (Opcode opcode : kNumbered)
    EXPECT_GT(tallies[opcode].refused + tallies[opcode].valid, 0) << opcode_text(opcode);
  // Dimension numbers have few right values: nearly all of these are wrong.
  for (Opcode opcode : {Opcode::transpose, Opcode::gather, Opcode::scatter, Opcode::dot,
                        Opcode::convolution, Opcode::reduce, Opcode::sort, Opcode::topk})
    EXPECT_GT(tallies[opcode].refused, 3 * tallies[opcode].valid) << opcode_text(opcode);
}

TEST(AttrNumbers, RanksHaveALimit) {
  const auto ones = [](int rank) {
    std::string dims = rank > 0 ? "1" : "";
    for (int i = 1; i < rank; ++i) dims += ",1";
    return "f32[" + dims + "]";
  };
  EXPECT_TRUE(parse_shape(ones(64)));
  const auto refused = parse_shape(ones(65));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("more than 64 dimensions"), std::string::npos);
  // Inferred for an operator: a product of two arrays has the dimensions of both.
  const auto outer = [&](int rank) {
    return "HloModule m\nENTRY e {\n  x = " + ones(rank) + " parameter(0)\n  ROOT y = dot(x, x)\n}";
  };
  EXPECT_TRUE(parse_module(outer(32)));
  EXPECT_FALSE(parse_module(outer(33)));
}

}  // namespace
}  // namespace heddle::hlo
