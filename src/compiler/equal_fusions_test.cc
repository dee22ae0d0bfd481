#include "compiler/equal_fusions.h"

#include <gtest/gtest.h>

#include <string>

#include "hlo/text.h"

namespace heddle::compiler {
namespace {

// The entry of a small module, with one thing changed.
std::unique_ptr<hlo::Module> parsed(std::string text, const std::string& what,
                                    const std::string& by) {
  if (!what.empty()) text.replace(text.find(what), what.size(), by);
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

const char* const kText = R"(HloModule m
combine {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  p = f32[4,6] parameter(0)
  q = f32[4,6] parameter(1)
  c = f32[] constant(2)
  s = f32[4,6] subtract(p, q)
  t = f32[3,6] slice(s), slice={[0:3], [0:6]}
  ROOT r = f32[3] reduce(t, c), dimensions={1}, to_apply=combine
}
)";

TEST(equal_fusions, NamesDoNotCount) {
  const auto a = parsed(kText, "", "");
  std::string renamed = kText;
  for (size_t at; (at = renamed.find("(s)")) != std::string::npos;) renamed.replace(at, 3, "(z)");
  renamed.replace(renamed.find("  s = "), 6, "  z = ");
  const auto c = parsed(renamed, "", "");
  EXPECT_TRUE(are_equal(*a->entry(), *c->entry()));
  EXPECT_EQ(shallow_hash(*a->entry()), shallow_hash(*c->entry()));
}

TEST(equal_fusions, EverythingElseDoes) {
  const auto a = parsed(kText, "", "");
  const std::pair<const char*, const char*> changes[] = {
      {"subtract(p, q)", "subtract(q, p)"},
      {"subtract(p, q)", "add(p, q)"},
      {"slice={[0:3], [0:6]}", "slice={[1:4], [0:6]}"},
      {"add(a, b)", "maximum(a, b)"},
      {"constant(2)", "constant(3)"}};
  for (const auto& [what, by] : changes)
    EXPECT_FALSE(are_equal(*a->entry(), *parsed(kText, what, by)->entry())) << by;
}

}  // namespace
}  // namespace heddle::compiler
