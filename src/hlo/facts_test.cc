// Facts of instructions and of modules, to text and back.
#include "hlo/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/text.h"
#include "hlo/verify.h"

namespace heddle::hlo {
namespace {

using testing::HasSubstr;

std::string module_text(const std::string& header, const std::string& facts) {
  return "HloModule m" + header +
         "\nENTRY e {\n  x = f32[8] parameter(0)\n  n = s32[] parameter(1)\n  ROOT a = f32[8] "
         "negate(x)" +
         facts + "\n}\n";
}

std::string error_of(const std::string& text) {
  auto module = parse_module(text);
  if (!module) return module.error().message;
  const Status verified = verify(**module);
  return verified ? "" : verified.error().message;
}

TEST(Facts, AreReadAndPrinted) {
  const std::string all =
      ", heddle_trips=12, heddle_strips=true, heddle_unread=true, heddle_in_place=true, "
      "heddle_join=table, heddle_unpack=true";
  auto module = parse_module(module_text("", all));
  ASSERT_TRUE(module) << module.error().message;
  const Facts& facts = (*module)->entry()->root()->facts();
  EXPECT_EQ(facts.trips, 12);
  EXPECT_TRUE(facts.strips && facts.unread && facts.in_place && facts.unpack);
  EXPECT_EQ(facts.join, Join::table);
  EXPECT_THAT(to_string(**module), HasSubstr(all));
  EXPECT_EQ((*module)->clone()->entry()->root()->facts(), facts);
  auto plain = parse_module(module_text("", ", heddle_strips=false"));
  ASSERT_TRUE(plain);
  EXPECT_EQ((*plain)->entry()->root()->facts(), Facts{});
  EXPECT_THAT(to_string(**plain), testing::Not(HasSubstr("heddle_")));
}

TEST(Facts, OfAnotherTypeAreErrors) {
  EXPECT_THAT(error_of(module_text("", ", heddle_trips=many")),
              HasSubstr("heddle_trips: got 'many', wanted a number, at least 0"));
  EXPECT_THAT(error_of(module_text("", ", heddle_trips=-1")), HasSubstr("got '-1'"));
  EXPECT_THAT(error_of(module_text("", ", heddle_trips=99999999999999999999")),
              HasSubstr("heddle_trips"));
  EXPECT_THAT(error_of(module_text("", ", heddle_in_place=1")),
              HasSubstr("heddle_in_place: got '1', wanted true or false"));
  EXPECT_THAT(error_of(module_text("", ", heddle_join=none")),
              HasSubstr("heddle_join: got 'none', wanted phases, table or loop"));
  EXPECT_THAT(error_of(module_text("", ", heddle_join={a\nb}")), HasSubstr("got '{a\\x0ab}'"));
}

TEST(Facts, SymbolsAreReadAndPrinted) {
  const std::string header = ", heddle_symbols={rows 8 1 2 0.0; n 4 1 1}";
  auto module = parse_module(module_text(header, ""));
  ASSERT_TRUE(module) << module.error().message;
  const std::vector<Symbol> want = {{"rows", 8, 1, {{0, 0}}, 2}, {"n", 4, 1, {}, 1}};
  EXPECT_EQ((*module)->symbols, want);
  EXPECT_THAT(to_string(**module, {.annotations = false}), HasSubstr(header));
  EXPECT_EQ((*module)->clone()->symbols, want);
}

TEST(Facts, SymbolsOfNothingAreErrors) {
  for (const char* text : {"{rows}", "{rows 8 1 2 0}", "{rows 8 1 2 0.x}", "{rows 8 1 9 0.0}",
                           "{rows 0 1 0}", "rows", "{rows 8 1 1 0.0.0}"})
    EXPECT_THAT(error_of(module_text(std::string(", heddle_symbols=") + text, "")),
                HasSubstr("heddle_symbols: got '"))
        << text;
  EXPECT_THAT(error_of(module_text(", heddle_symbols={rows 8 7 1 0.0}", "")),
              HasSubstr("invariant 14: symbol rows: parameter 7 is no s32[]"));
  EXPECT_THAT(error_of(module_text(", heddle_symbols={rows 8 0 1 0.0}", "")),
              HasSubstr("parameter 0 is no s32[]"));
  EXPECT_THAT(error_of(module_text(", heddle_symbols={rows 8 1 1 0.1 5.0}", "")),
              HasSubstr("there is no dimension 1 of parameter 0"));
}

}  // namespace
}  // namespace heddle::hlo
