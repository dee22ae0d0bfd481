#include "hlo/opcode.h"

#include <gtest/gtest.h>

#include <set>

#include "hlo/attrs.h"

namespace heddle::hlo {
namespace {

TEST(Opcode, TableHasAllOfHlo) {
  EXPECT_EQ(kOpcodeCount, 134);  // of HLO, and erfc
  std::set<std::string_view> texts;
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(opcode_from_text(opcode_text(opcode)), opcode);
    texts.insert(opcode_text(opcode));
  }
  EXPECT_EQ(static_cast<int>(texts.size()), kOpcodeCount);
  EXPECT_EQ(opcode_from_text("no-such-thing"), std::nullopt);
  EXPECT_EQ(opcode_from_text(""), std::nullopt);
}

TEST(Opcode, RowsAreConsistent) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const OpcodeInfo& info = opcode_info(static_cast<Opcode>(i));
    EXPECT_TRUE(info.most_operands == -1 || info.least_operands <= info.most_operands) << info.text;
    // Elementwise operators are pure and can be part of a kernel.
    if (info.traits & Trait::elementwise) {
      EXPECT_TRUE(info.traits & Trait::pure) << info.text;
      EXPECT_EQ(info.stage, StageKind::map) << info.text;
    }
    EXPECT_NE(bool(info.traits & Trait::pure),
              bool(info.traits & (Trait::effect | Trait::collective)))
        << info.text;
  }
  EXPECT_EQ(opcode_info(Opcode::dot).stage, StageKind::dot);
  EXPECT_EQ(opcode_info(Opcode::reduce).stage, StageKind::reduce);
  EXPECT_TRUE(has_trait(Opcode::while_, Trait::calls));
}

TEST(Attrs, RowsNameTheirStruct) {
  auto of = [](Opcode opcode) { return default_attrs(opcode_info(opcode).attrs_index); };
  EXPECT_TRUE(std::holds_alternative<NoAttrs>(of(Opcode::add)));
  EXPECT_TRUE(std::holds_alternative<DotAttrs>(of(Opcode::dot)));
  EXPECT_TRUE(std::holds_alternative<TextAttrs>(of(Opcode::infeed)));
  EXPECT_TRUE(std::holds_alternative<CopyStartAttrs>(of(Opcode::copy_start)));
  for (int i = 0; i < static_cast<int>(std::variant_size_v<Attrs>); ++i)
    EXPECT_EQ(static_cast<int>(default_attrs(i).index()), i);
}

TEST(Attrs, HashFollowsEquality) {
  // One change to each struct; all hashes differ from the default's and from each other.
  std::vector<Attrs> all;
  for (size_t i = 0; i < std::variant_size_v<Attrs>; ++i)
    all.push_back(default_attrs(static_cast<int>(i)));
  SliceAttrs a{{1}, {2, 3}, {}}, b{{1, 2}, {3}, {}};  // the same numbers, cut elsewhere
  all.insert(all.end(), {a, b});
  all.push_back(DotAttrs{{}, {1}, {}, {0}});
  all.push_back(DotAttrs{{1}, {}, {0}, {}});
  all.push_back(CompareAttrs{Direction::lt});
  all.push_back(WindowAttrs{{{WindowDim{.size = 2}}}});
  all.push_back(WindowAttrs{{{WindowDim{.stride = 2}}}});
  all.push_back(CustomCallAttrs{"target", false, {{{0}, 1, {}}}, ""});
  all.push_back(CustomCallAttrs{"target", false, {{{}, 1, {0}}}, ""});
  using tensor::Literal, tensor::Shape, tensor::Type;
  const float one = 1, zero = 0;
  const Shape scalar = Shape::scalar(Type::f32);
  all.push_back(ConstantAttrs{Literal::from<float>(scalar, {&one, 1})});
  all.push_back(ConstantAttrs{Literal::from<float>(scalar, {&zero, 1})});
  all.push_back(ConstantAttrs{Literal(Shape::scalar(Type::s32))});
  all.push_back(ConstantAttrs{Literal::tuple({Literal(scalar)})});
  std::set<uint64_t> hashes;
  for (const Attrs& attrs : all) {
    const Attrs copy = attrs;
    EXPECT_EQ(copy, attrs);
    EXPECT_EQ(hash(copy), hash(attrs));
    hashes.insert(hash(attrs));
  }
  EXPECT_EQ(hashes.size(), all.size());
  EXPECT_EQ(hash(BatchNormAttrs{0.0}), hash(BatchNormAttrs{-0.0}));  // equal values
}

}  // namespace
}  // namespace heddle::hlo
