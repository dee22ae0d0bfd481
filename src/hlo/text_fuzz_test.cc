// Damaged texts: parsing returns with or without an error. Accepted text can be printed and
// verified.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "hlo/text_test_util.h"
#include "hlo/verify.h"

namespace heddle::hlo {
namespace {

// Bytes and words that mean something to the parser.
constexpr std::string_view kPieces[] = {"{",         "}",       "(",          ")",
                                        "[",         "]",       ",",          "=",
                                        "#0",        "%",       "\"",         "'",
                                        "/*",        "*/",      "//",         "->",
                                        "<=",        "-",       "0",          "9999999999999999999",
                                        "-1",        "?",       "\n",         "x",
                                        "f32[",      "s4",      "nan",        "inf",
                                        "{...}",     "ROOT ",   "ENTRY ",     "HloModule",
                                        "constant(", "T(",      "to_apply={", "get-tuple-element",
                                        "\0",        "\xff",    "<=4",        "dimensions={",
                                        "index=7",   "window={"};

class Damage {
 public:
  Damage(const std::string& text, uint32_t seed) : text_(text), random_(seed) {}

  std::string operator()() {
    std::string out = text_;
    const int steps = 1 + below(4);
    for (int i = 0; i < steps && !out.empty(); ++i) one(out);
    return out;
  }

 private:
  int below(size_t n) { return static_cast<int>(random_() % n); }

  void one(std::string& out) {
    const size_t at = below(out.size());
    const size_t length = 1 + below(std::min<size_t>(40, out.size() - at));
    switch (below(6)) {
      case 0:
        out[at] = static_cast<char>(below(256));
        break;
      case 1:
        out.resize(at);
        break;
      case 2:
        out.erase(at, length);
        break;
      case 3:
        out.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 4:
        out.insert(below(out.size()), out.substr(at, length));
        break;
      default: {  // one number for another
        const size_t digit = out.find_first_of("0123456789", at);
        if (digit != std::string::npos) out[digit] = static_cast<char>('0' + below(10));
      }
    }
  }

  const std::string& text_;
  std::mt19937 random_;
};

std::vector<std::string> seeds() {
  std::vector<std::string> parts;
  for (const char* name :
       {"ops_elementwise.hlo", "ops_data.hlo", "ops_control.hlo", "syntax.hlo", "literals.hlo"}) {
    const std::string file = testdata(name);
    for (size_t at = 0; at < file.size();) {
      const size_t end = std::min(file.find("// -----", at + 1), file.size());
      parts.push_back(file.substr(at, end - at));
      at = end;
    }
  }
  return parts;
}

TEST(TextFuzz, DamagedModulesReturn) {
  // HEDDLE_FUZZ multiplies the number of rounds.
  const char* factor = std::getenv("HEDDLE_FUZZ");
  const int rounds = 300 * (factor ? std::max(1, std::atoi(factor)) : 1);
  uint32_t seed = 1;
  int accepted = 0, refused = 0;
  for (const std::string& text : seeds()) {
    Damage damage(text, seed++);
    for (int i = 0; i < rounds; ++i) {
      const std::string damaged = damage();
      auto modules = parse_modules(damaged);
      if (!modules) {
        ++refused;
        // "line:column: …" in one line; memory is the only fault without a place.
        const std::string& message = modules.error().message;
        EXPECT_TRUE(message.find_first_not_of("0123456789:") != 0 && !message.empty()) << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        continue;
      }
      ++accepted;
      for (const auto& module : *modules) {
        const Status valid = verify(*module);
        static_cast<void>(valid);
        expect_round_trip(*module, damaged);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

TEST(TextFuzz, ShapesAndLiterals) {
  const std::string shape = "(f32[2,<=3,?]{2,1,0:T(8,128)S(1)}, s4[0,3], token[])";
  const std::string literal = "{ {1, -2.5e3}, {nan(0x1), inf} }";
  Damage shapes(shape, 7), literals(literal, 8);
  const Shape wanted = Shape::array(tensor::Type::f32, {2, 2});
  for (int i = 0; i < 3000; ++i) {
    if (auto read = parse_shape(shapes())) {
      auto again = parse_shape(tensor::to_string(*read));
      ASSERT_TRUE(again) << tensor::to_string(*read);
      EXPECT_EQ(*again, *read);
    }
    if (auto read = parse_literal(literals(), wanted)) {
      EXPECT_EQ(*parse_literal(tensor::to_string(*read), wanted), *read);
    }
  }
}

}  // namespace
}  // namespace heddle::hlo
