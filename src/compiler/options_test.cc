#include "compiler/options.h"

#include <gtest/gtest.h>

#include <set>

namespace heddle::compiler {
namespace {

std::string another(const std::string& value) { return value + "x"; }
bool another(bool value) { return !value; }
int64_t another(int64_t value) { return value + 3; }
std::vector<std::string> another(std::vector<std::string> value) {
  value.emplace_back("cse");
  return value;
}

// A row of options.def that changes a program and is in no key gives stale programs.
TEST(Options, EveryValueIsAnotherKeyOrNotKept) {
  const std::optional<std::string> plain = options_key({});
  ASSERT_TRUE(plain);
  std::set<std::string> keys = {*plain};
  int rows = 0;
  const auto differs = [&](const char* name, const Options& options) {
    ++rows;
    const std::optional<std::string> key = options_key(options);
    EXPECT_TRUE(!key || keys.insert(*key).second) << name << ": " << *key;
  };
#define HEDDLE_CHOICE(part, Type, field, plain, words, help)             \
  for (std::string_view left = words; !left.empty();) {                  \
    const std::string_view word = nth_word(0, left);                     \
    left.remove_prefix(std::min(left.size(), word.size() + 1));          \
    Options options;                                                     \
    options.field = option_choice<decltype(options.field)>(word, words); \
    EXPECT_EQ(choice_word(options.field, words), word) << #field;        \
    if (word != std::string_view(plain)) differs(#field, options);       \
  }
#define HEDDLE_TEXT(part, Type, field, plain, value, help) HEDDLE_DIFFERS_##part(field)
#define HEDDLE_NUMBER(part, Type, field, ...) HEDDLE_DIFFERS_##part(field)
#define HEDDLE_INNER(part, Type, field, plain) HEDDLE_DIFFERS(field)
#define HEDDLE_DIFFERS(field)               \
  {                                         \
    Options options;                        \
    options.field = another(options.field); \
    differs(#field, options);               \
  }
#define HEDDLE_DIFFERS_said HEDDLE_DIFFERS
#define HEDDLE_DIFFERS_told HEDDLE_DIFFERS
#define HEDDLE_DIFFERS_keyed HEDDLE_DIFFERS
#define HEDDLE_DIFFERS_target(field)
#define HEDDLE_DIFFERS_where(field)
#define HEDDLE_DIFFERS_none(field)
#include "compiler/options.def"
  EXPECT_GT(rows, 20);
}

TEST(Options, AreSaidInAProgram) {
  EXPECT_EQ(options_text({}), "level=O2 fuse=stitch memory=static precision=f32");
  Options options;
  options.level = Level::O0;
  options.memory = Memory::pooled;
  options.numerics = Numerics::relaxed;
  options.order = plan::Order::dfs;
  options.streams = -1;
  options.disable = {"cse", "hold"};
  EXPECT_EQ(options_text(options),
            "level=O0 fuse=stitch memory=dynamic numerics=relaxed precision=f32 order=dfs "
            "streams=any");
  EXPECT_EQ(options_key(options), options_text(options) + " disable=cse,hold");
  options.bisect_limit = 3;
  EXPECT_EQ(options_key(options), std::nullopt);
}

}  // namespace
}  // namespace heddle::compiler
