#include "tensor/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace heddle::tensor {
namespace {

using Index = std::vector<int64_t>;

Layout plain(Index minor_to_major) {
  Layout layout;
  layout.minor_to_major = std::move(minor_to_major);
  return layout;
}

Layout tiled(Index minor_to_major, std::vector<Tile> tiles) {
  Layout layout = plain(std::move(minor_to_major));
  layout.tiles = std::move(tiles);
  return layout;
}

int64_t product(const Index& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// All indices, row-major.
std::vector<Index> indices(const Index& dims) {
  std::vector<Index> result;
  Index index(dims.size(), 0);
  for (int64_t i = 0; i < product(dims); ++i) {
    result.push_back(index);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return result;
}

// `letters` of a row-major array in memory order; '0' is padding.
std::string memory_of(const Layout& layout, const Index& dims, const std::string& letters) {
  std::string memory(static_cast<size_t>(padded_elems(layout, dims)), '0');
  auto all = indices(dims);
  for (size_t i = 0; i < all.size(); ++i) memory[linear_index(layout, dims, all[i])] = letters[i];
  return memory;
}

// Every element has a distinct position and is recovered from it; every other position is padding.
void expect_injective(const Layout& layout, const Index& dims) {
  int64_t places = padded_elems(layout, dims);
  std::map<int64_t, Index> taken;
  for (const Index& index : indices(dims)) {
    int64_t at = linear_index(layout, dims, index);
    ASSERT_GE(at, 0);
    ASSERT_LT(at, places) << to_string(layout);
    ASSERT_TRUE(taken.emplace(at, index).second) << to_string(layout) << " at " << at;
  }
  for (int64_t at = 0; at < places; ++at) {
    auto found = taken.find(at);
    ASSERT_EQ(multi_index(layout, dims, at), found == taken.end() ? Index{} : found->second)
        << to_string(layout) << " at " << at;
  }
}

TEST(layout, SeedExamples) {
  Index dims = {2, 3};
  EXPECT_EQ(memory_of(plain({0, 1}), dims, "abcdef"), "adbecf");
  EXPECT_EQ(memory_of(plain({1, 0}), dims, "abcdef"), "abcdef");
  EXPECT_EQ(Layout::row_major(2), plain({1, 0}));
  EXPECT_TRUE(plain({1, 0}).is_row_major());
  EXPECT_FALSE(plain({0, 1}).is_row_major());
}

TEST(layout, PaddedSeedExample) {
  Layout layout = plain({0, 1});
  layout.padded_dimensions = {3, 5};
  EXPECT_EQ(memory_of(layout, Index{2, 3}, "abcdef"), "ad0be0cf0000000");
  layout.minor_to_major = {1, 0};
  EXPECT_EQ(memory_of(layout, Index{2, 3}, "abcdef"), "abc00def0000000");
  EXPECT_FALSE(layout.is_row_major());
  expect_injective(layout, {2, 3});
}

TEST(layout, AllPermutationsOfRank4AreBijections) {
  Index order = {0, 1, 2, 3};
  std::set<std::string> seen;
  do {
    Layout layout = plain(order);
    Index dims = {2, 3, 4, 5};
    EXPECT_EQ(padded_elems(layout, dims), 120);
    expect_injective(layout, dims);
    // The linear index is the dot product of the index and the strides given by the order.
    Index strides(4);
    int64_t stride = 1;
    for (int64_t d : order) {
      strides[d] = stride;
      stride *= dims[d];
    }
    for (const Index& index : indices(dims)) {
      ASSERT_EQ(linear_index(layout, dims, index),
                std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}));
    }
    Layout padded = layout;
    padded.padded_dimensions = {3, 3, 6, 5};
    EXPECT_EQ(padded_elems(padded, dims), 270);
    expect_injective(padded, dims);
    expect_injective(tiled(order, {Tile{{2, 2}}}), dims);
    expect_injective(tiled(order, {Tile{{Tile::kCombine, 4, 2}}, Tile{{2, 1}}}), dims);
    seen.insert(to_string(layout));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(seen.size(), 24u);
}

// F32[3,5] in tiles of 2 by 2: 2 x 3 tiles of four, the last ones partly padding.
TEST(layout, TilesOfTwoByTwo) {
  Layout layout = tiled({1, 0}, {Tile{{2, 2}}});
  EXPECT_EQ(padded_elems(layout, Index{3, 5}), 24);
  EXPECT_EQ(memory_of(layout, {3, 5}, "abcdefghijklmno"), "abfgcdhie0j0kl00mn00o000");
  // Element (2,3): tile (1,1), inside it (0,1).
  EXPECT_EQ(linear_index(layout, Index{3, 5}, Index{2, 3}), (1 * 3 + 1) * 4 + 1);
}

TEST(layout, RepeatedTilesSplitTheFirstTile) {
  // bf16 in (8,128)(2,1): within a tile of 8 x 128, pairs of rows interleave.
  Layout layout = tiled({1, 0}, {Tile{{8, 128}}, Tile{{2, 1}}});
  Index dims = {16, 256};
  EXPECT_EQ(padded_elems(layout, dims), 16 * 256);
  EXPECT_EQ(linear_index(layout, dims, Index{0, 0}), 0);
  EXPECT_EQ(linear_index(layout, dims, Index{1, 0}), 1);
  EXPECT_EQ(linear_index(layout, dims, Index{0, 1}), 2);
  EXPECT_EQ(linear_index(layout, dims, Index{2, 0}), 256);
  EXPECT_EQ(linear_index(layout, dims, Index{0, 128}), 1024);
  EXPECT_EQ(linear_index(layout, dims, Index{8, 0}), 2048);
  EXPECT_EQ(to_string(layout), "{1,0:T(8,128)(2,1)}");
}

TEST(layout, CombinedDimensions) {
  // [2,7,8,11,10] under (*,*,2,*,3) is [112,110] in tiles of 2 by 3.
  Layout layout =
      tiled({4, 3, 2, 1, 0}, {Tile{{Tile::kCombine, Tile::kCombine, 2, Tile::kCombine, 3}}});
  Layout flat = tiled({1, 0}, {Tile{{2, 3}}});
  Index dims = {2, 7, 8, 11, 10}, flat_dims = {112, 110};
  EXPECT_EQ(padded_elems(layout, dims), 56 * 37 * 6);
  for (const Index& i : indices(dims)) {
    Index merged = {(i[0] * 7 + i[1]) * 8 + i[2], i[3] * 10 + i[4]};
    ASSERT_EQ(linear_index(layout, dims, i), linear_index(flat, flat_dims, merged));
  }
  EXPECT_EQ(to_string(layout), "{4,3,2,1,0:T(*,*,2,*,3)}");
}

TEST(layout, TilesOfMoreDimensionsThanTheArray) {
  EXPECT_EQ(padded_elems(tiled({}, {Tile{{128}}}), Index{}), 128);
  EXPECT_EQ(linear_index(tiled({}, {Tile{{128}}}), Index{}, Index{}), 0);
  expect_injective(tiled({0}, {Tile{{2, 4}}}), {6});
  EXPECT_EQ(padded_elems(tiled({0}, {Tile{{2, 4}}}), Index{6}), 16);
}

TEST(layout, RandomTilesAreInjective) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    size_t rank = 1 + random() % 4;
    Index dims, order;
    for (size_t d = 0; d < rank; ++d) {
      dims.push_back(1 + random() % 5);
      order.push_back(static_cast<int64_t>(d));
    }
    std::shuffle(order.begin(), order.end(), random);
    Layout layout = plain(order);
    if (random() % 2) {
      for (int64_t dim : dims) layout.padded_dimensions.push_back(dim + random() % 3);
    }
    for (size_t t = random() % 3; t-- > 0;) {
      Tile tile;
      size_t tile_rank = 1 + random() % 3;
      for (size_t d = 0; d < tile_rank; ++d) {
        bool combine = d + 1 < tile_rank && random() % 4 == 0;
        tile.dims.push_back(combine ? Tile::kCombine : 1 + random() % 4);
      }
      layout.tiles.push_back(tile);
    }
    expect_injective(layout, dims);
  }
}

TEST(layout, Text) {
  Layout layout = tiled({1, 0}, {Tile{{8, 128}}});
  layout.memory_space = 1;
  EXPECT_EQ(to_string(layout), "{1,0:T(8,128)S(1)}");
  layout.element_size_bits = 4;
  layout.rest = "SC(0:2,4)L(2)#(u32)M(3)";
  EXPECT_EQ(to_string(layout), "{1,0:T(8,128)L(2)#(u32)E(4)S(1)SC(0:2,4)M(3)}");
  layout = plain({0});
  layout.rest = "D(C)";
  EXPECT_EQ(to_string(layout), "{0:D(C)}");
  EXPECT_EQ(to_string(plain({})), "{}");
  EXPECT_EQ(to_string(tiled({}, {Tile{{128}}})), "{:T(128)}");
}

TEST(layout, TextReadsBack) {
  for (const char* text :
       {"{}", "{0}", "{1,0}", "{:T(128)}", "{1,0:T(8,128)(2,1)}", "{2,1,0:T(*,4,*,2)E(4)S(5)}",
        "{0:D(C,S~)}", "{1,0:T(8,128)L(2)#(u32)*(u64)E(4)S(1)SC(0:2,4)P(f32[2]{0})M(3)}",
        "{0,1:PD(3,5)}"}) {
    auto layout = parse_layout(text);
    ASSERT_TRUE(layout) << layout.error().message;
    EXPECT_EQ(to_string(*layout), text);
  }
  EXPECT_EQ(*parse_layout(" { 1 , 0 : T ( 8,128 ) S(1) } "), *parse_layout("{1,0:T(8,128)S(1)}"));
  EXPECT_EQ(parse_layout("{0,1:PD(3,5)}")->padded_dimensions, (Index{3, 5}));
}

TEST(layout, BadTextIsAnError) {
  for (const char* text :
       {"",           "{",        "}",     "{1,",     "{1,0",    "{1 0}",
        "{-1}",       "{a}",      "{0:}x", "{0:T}",   "{0:T()}", "{0:T(2}",
        "{0:S(1,2)}", "{0:S(x)}", "{0:Q}", "{0:(3)}", "{0:M(3}", "{99999999999999999999}",
        "{0:T(2)(}",  "{0:PD()}"}) {
    EXPECT_FALSE(parse_layout(text)) << text;
  }
}

// Random text is an error or prints as text that parses to the same layout, and layouts that
// check_layout accepts can be used for computation.
TEST(layout, RandomTextIsSafe) {
  std::mt19937 random(2);
  const char* pieces[] = {"{",   "}",   "0", "1",          ",",      ":",  "T",  "(",
                          ")",   "*",   "2", "S(1)",       "E(4)",   "PD", "L(", " ",
                          "1,0", "0,1", "-", "9999999999", "T(2,4)", "(3)"};
  Index dims = {3, 2};
  int parsed = 0, checked = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string text = "{1,0";
    if (random() % 2) text += ':';
    for (size_t n = random() % 6; n-- > 0;) text += pieces[random() % std::size(pieces)];
    if (random() % 8) text += '}';
    auto layout = parse_layout(text);
    if (!layout) continue;
    ++parsed;
    auto again = parse_layout(to_string(*layout));
    ASSERT_TRUE(again) << text << " printed as " << to_string(*layout);
    // The printer determines the order of the other parts.
    again->rest.clear();
    layout->rest.clear();
    ASSERT_TRUE(*again == *layout) << text;
    if (!check_layout(*layout, dims)) continue;
    ++checked;
    int64_t places = padded_elems(*layout, dims);
    for (const Index& index : indices(dims)) {
      int64_t at = linear_index(*layout, dims, index);
      ASSERT_TRUE(at >= 0 && at < places) << text;
      ASSERT_EQ(multi_index(*layout, dims, at), index) << text;
    }
  }
  EXPECT_GT(parsed, 1000);
  EXPECT_GT(checked, 500);
}

TEST(layout, CheckFindsWhatDoesNotFit) {
  Index dims = {2, 3};
  auto check = [&](const char* text) { return check_layout(*parse_layout(text), dims); };
  for (const char* good : {"{1,0}", "{0,1}", "{0,1:PD(2,5)}", "{1,0:T(8,128)(2,1)}",
                           "{1,0:T(*,4)E(4)}", "{1,0:T(2,2,2)}"}) {
    EXPECT_TRUE(check(good)) << check(good).error().message;
  }
  for (const char* bad : {"{}", "{0}", "{0,0}", "{0,2}", "{2,1,0}", "{0,1:PD(1,5)}", "{0,1:PD(5)}",
                          "{1,0:T(0)}", "{1,0:T(2,*)}", "{1,0:E(500)}",
                          "{1,0:T(4000000000,4000000000)}", "{1,0:PD(4000000000,4000000000)}"}) {
    EXPECT_FALSE(check(bad)) << bad;
  }
  Layout negative = tiled({1, 0}, {Tile{{-3}}});
  EXPECT_FALSE(check_layout(negative, dims));
  EXPECT_EQ(check("{0,2}").error().message,
            "layout {0,2}: wanted every one of the 2 dimensions once, got 2");
}

}  // namespace
}  // namespace heddle::tensor
