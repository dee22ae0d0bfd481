#include "hlo/dim_classes.h"

#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/text.h"

namespace heddle::hlo {
namespace {

// Each fusion joins the extents of its parameters to those of an array that all before it have
// read: walks through all of these would be 10^10 steps.
TEST(DimClasses, AnArrayThatManyFusionsReadTakesNoLongWalks) {
  constexpr int kFusions = 100'000;
  Module module("chain");
  const Shape shape = Shape::array(Type::f32, {4});
  Computation* entry = module.add_computation("entry");
  module.set_entry(entry);
  Instr* common = entry->add(Opcode::parameter, shape, {}, ParameterAttrs{0});
  Instr* value = common;
  for (int i = 0; i < kFusions; ++i) {
    Computation* body = module.add_computation("body");
    Instr* a = body->add(Opcode::parameter, shape, {}, ParameterAttrs{0});
    Instr* b = body->add(Opcode::parameter, shape, {}, ParameterAttrs{1});
    body->set_root(body->add(Opcode::add, shape, {a, b}));
    value = entry->add(Opcode::fusion, shape, {value, common}, FusionAttrs{}, {body});
  }
  entry->set_root(value);
  const DimClasses classes(module);
  EXPECT_EQ(classes.of(common, 0), classes.of(value, 0));
}

constexpr const char* kRows = R"(HloModule rows
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  at = s64[6] parameter(0)
  n = s32[] parameter(1)
  y = f32[9,2] parameter(2)
  u = f32[6,2] parameter(3)
  m = s32[] parameter(4)
  rows = s64[6] custom-call(at, n, n), custom_call_target="heddle.first_rows"
  more = s64[6] custom-call(at, m, m), custom_call_target="heddle.first_rows"
  places = s64[6] iota(), iota_dimension=0
  p = s64[6] add(rows, places)
  q = s64[6] add(more, places)
  v = s64[6,1] reshape(p)
  ROOT s = f32[9,2] scatter(y, v, u), update_window_dims={1}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
})";

const Instr* named(const Module& module, std::string_view name) {
  for (const Instr* instr : module.entry()->instrs())
    if (instr->name() == name) return instr;
  return nullptr;
}

TEST(DimClasses, UpdatesOfAScatterFollowItsPositions) {
  const auto module = *parse_module(kRows);
  DimClasses classes(*module, DimClasses::Made::free);
  const std::vector<Symbol> symbols = symbols_of(*module);
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].bound, 6);
  // Both begin in `at`.
  EXPECT_FALSE(classes.assign(symbols));
  ASSERT_TRUE(classes.assign({symbols[0]}));
  EXPECT_EQ(classes.symbol_of(named(*module, "u"), 0), 0);
  EXPECT_EQ(classes.symbol_of(named(*module, "u"), 1), -1);
  EXPECT_EQ(classes.symbol_of(named(*module, "y"), 0), -1);
  EXPECT_EQ(classes.symbol_of(named(*module, "s"), 0), -1);
}

TEST(DimClasses, WhatIsMadeFromNothingIsInNoClassIfItIsFree) {
  const auto module = *parse_module(kRows);
  const Instr *p = named(*module, "p"), *places = named(*module, "places");
  EXPECT_EQ(DimClasses(*module).of(places, 0), DimClasses(*module).of(p, 0));
  const DimClasses free(*module, DimClasses::Made::free);
  EXPECT_NE(free.of(places, 0), free.of(p, 0));
  EXPECT_EQ(free.of(named(*module, "rows"), 0), free.of(p, 0));
}

TEST(DimClasses, WhatAFusionIsGivenThatStandsForSeveralStaysFreeInside) {
  const auto module = *parse_module(R"(
HloModule inside
f {
  at = s32[9] parameter(0)
  x = s32[9] parameter(1)
  y = s32[9] parameter(2)
  a = pred[9] compare(at, x), direction=LT
  b = pred[9] compare(at, y), direction=LT
  ROOT both = (pred[9], pred[9]) tuple(a, b)
}
ENTRY e {
  at = s32[9] iota(), iota_dimension=0
  x = s32[9] parameter(0)
  y = s32[9] parameter(1)
  ROOT made = (pred[9], pred[9]) fusion(at, x, y), kind=kLoop, calls=f
})");
  const Instr* fusion = module->entry()->root();
  const Computation& inside = *fusion->called().at(0);
  const DimClasses local(fusion, DimClasses(*module, DimClasses::Made::free));
  EXPECT_NE(local.of(inside.parameters()[1], 0), local.of(inside.parameters()[2], 0));
  EXPECT_EQ(local.of(inside.parameters()[1], 0), local.of(inside.root(), 0, 0));
}

// Numbers that are written to positions of different counts, once equal operators are one.
TEST(DimClasses, NumbersThatSeveralScattersWriteAreFree) {
  const auto module = *parse_module(R"(
HloModule found
second {
  a = s32[] parameter(0)
  ROOT b = s32[] parameter(1)
}
ENTRY e {
  at = s32[9,1] parameter(0)
  further = s32[9,1] parameter(1)
  zeros = s32[9] parameter(2)
  number = s32[9] iota(), iota_dimension=0
  a = s32[9] scatter(zeros, at, number), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second
  b = s32[9] scatter(zeros, further, number), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second
  ROOT both = (s32[9], s32[9]) tuple(a, b)
})");
  const DimClasses classes(*module, DimClasses::Made::free);
  EXPECT_NE(classes.of(named(*module, "at"), 0), classes.of(named(*module, "further"), 0));
}

TEST(DimClasses, LeavesOfTuplesInsideOfTuplesFollow) {
  auto module = *parse_module(R"(
HloModule nested, heddle_symbols={rows 8 -1 1 0.0}
larger {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GT
  d = f32[] select(c, a, b)
  k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(d, k)
}
f {
  x = f32[8,4] parameter(0)
  at = s32[8,4] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  none = s32[] constant(0)
  most = (f32[8], s32[8]) reduce(x, at, low, none), dimensions={1}, to_apply=larger
  y = f32[8,4] negate(x)
  ROOT both = (f32[8,4], (f32[8], s32[8])) tuple(y, most)
}
ENTRY e {
  x = f32[8,4] parameter(0)
  made = (f32[8,4], (f32[8], s32[8])) fusion(x), kind=kLoop, calls=f
  most = (f32[8], s32[8]) get-tuple-element(made), index=1
  place = s32[8] get-tuple-element(most), index=1
  ROOT z = s32[8] negate(place)
})");
  DimClasses classes(*module);
  ASSERT_TRUE(classes.assign(module->symbols));
  EXPECT_EQ(classes.symbol_of(named(*module, "made"), 0, 2), 0);
  EXPECT_EQ(classes.symbol_of(named(*module, "most"), 0, 1), 0);
  EXPECT_EQ(classes.symbol_of(named(*module, "z"), 0), 0);
}

TEST(DimClasses, RowsOfASortAreNotItsOwn) {
  auto module = *parse_module(R"(
HloModule sorted, heddle_symbols={rows 8 -1 1 0.0; columns 4 -1 1 0.1}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[8,4] parameter(0)
  ROOT s = f32[8,4] sort(x), dimensions={1}, to_apply=less
})");
  DimClasses classes(*module);
  EXPECT_TRUE(classes.assign({module->symbols[0]}));
  EXPECT_EQ(classes.symbol_of(named(*module, "s"), 0), 0);
  EXPECT_FALSE(classes.assign({module->symbols[1]})) << "how long a row is decides the order";
}

TEST(DimClasses, WhatAFusionMakesFromNothingStaysFreeBehindIt) {
  const auto module = *parse_module(R"(
HloModule inside
f {
  n = s32[] parameter(0)
  at = s32[9] iota(), iota_dimension=0
  all = s32[9] broadcast(n), dimensions={}
  less = pred[9] compare(at, all), direction=LT
  x = f32[9] parameter(1)
  y = f32[9] negate(x)
  ROOT both = (pred[9], f32[9]) tuple(less, y)
}
ENTRY e {
  n = s32[] parameter(0)
  x = f32[9] parameter(1)
  made = (pred[9], f32[9]) fusion(n, x), kind=kLoop, calls=f
  less = pred[9] get-tuple-element(made), index=0
  y = f32[9] get-tuple-element(made), index=1
  ROOT z = f32[9] select(less, y, y)
})");
  const DimClasses free(*module, DimClasses::Made::free);
  const int rows = free.of(named(*module, "x"), 0);
  EXPECT_EQ(free.of(named(*module, "y"), 0), rows);
  EXPECT_EQ(free.of(named(*module, "z"), 0), rows);
  EXPECT_NE(free.of(named(*module, "less"), 0), rows);
}

// A step of 2 over any length, of its half again, and of a multiple of 4.
TEST(DimClasses, WindowsHaveQuotients) {
  const auto module = *parse_module(R"(HloModule windows
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[13] parameter(0)
  y = f32[12] parameter(1)
  zero = f32[] constant(0)
  half = f32[7] reduce-window(x, zero), window={size=3 stride=2 pad=1_1}, to_apply=add
  quarter = f32[4] reduce-window(half, zero), window={size=3 stride=2 pad=1_1}, to_apply=add
  less = f32[10] reduce-window(x, zero), window={size=4}, to_apply=add
  even = f32[6] reduce-window(y, zero), window={size=2 stride=2}, to_apply=add
  ROOT all = (f32[4], f32[10], f32[6]) tuple(quarter, less, even)
})");
  Symbol n, m;
  n.name = "n", n.bound = 13, n.least = 8, n.places = {{0, 0}};
  m.name = "m", m.bound = 3, m.places = {{1, 0}};
  DimClasses classes(*module);
  SymbolTable table({n, m});
  ASSERT_TRUE(classes.derive(&table));
  const auto extent = [&](std::string_view name) {
    const int s = classes.symbol_of(named(*module, name), 0);
    return s < 0 ? "none" : to_string(table.of[static_cast<size_t>(s)], table.names());
  };
  EXPECT_EQ(extent("half"), "(n + 1)/2");
  EXPECT_EQ(extent("quarter"), "(n + 3)/4");
  EXPECT_EQ(extent("less"), "n - 3");
  EXPECT_EQ(extent("even"), "m");
  EXPECT_EQ(table.symbols[2].bound, 7);
  // Behind mask_padding the symbols are known, and say which is which.
  module->symbols = table.symbols;
  for (size_t s = 0; s < module->symbols.size(); ++s) {
    module->symbols[s].extent = static_cast<int64_t>(s);
    std::erase(module->symbols[s].name, ' ');
  }
  EXPECT_EQ(*read_symbols(symbols_text(module->symbols)), module->symbols);
  DimClasses masked(*module);
  ASSERT_TRUE(masked.assign(module->symbols));
  EXPECT_EQ(masked.symbol_of(named(*module, "quarter"), 0),
            classes.symbol_of(named(*module, "quarter"), 0));
  EXPECT_EQ(masked.symbol_of(named(*module, "even"), 0), 1);
}

}  // namespace
}  // namespace heddle::hlo
