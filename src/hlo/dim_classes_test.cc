#include "hlo/dim_classes.h"

#include <gtest/gtest.h>

#include "hlo/builder.h"

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

}  // namespace
}  // namespace heddle::hlo
