#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

#include "base/check.h"
#include "base/decision.h"
#include "base/hash.h"
#include "base/ids.h"

namespace heddle {
namespace {

TEST(decision, YesHasNoReason) {
  Decision yes = Decision::yes();
  EXPECT_TRUE(static_cast<bool>(yes));
  EXPECT_EQ(yes.code(), "");
  EXPECT_EQ(yes.reason(), "");
}

TEST(decision, NoSaysWhy) {
  Decision no = Decision::no("space-full", "scratch needs {} bytes, only {} fit", 70000, 65536);
  EXPECT_FALSE(static_cast<bool>(no));
  EXPECT_EQ(no.code(), "space-full");
  EXPECT_EQ(no.reason(), "scratch needs 70000 bytes, only 65536 fit");
}

// The published values of XXH3 for the empty input: cache keys must never change.
TEST(hash, KnownValues) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2u);
  EXPECT_EQ(hash128("").hex(), "99aa06d3014798d86001c324468d497f");
}

// Long texts may use a different implementation.
TEST(hash, IsTheSameOnEveryProcessor) {
  std::string text(4096, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  EXPECT_EQ(hash64(text, 5), 0x8f076a883381abf7u);
  EXPECT_EQ(hash128(text).hex(), "e0ef0909b1bdd88b8fb047a89e810965");
}

TEST(hash, DependsOnEveryByteAndTheSeed) {
  std::string text(300, 'a');
  std::unordered_set<uint64_t> seen = {hash64(text), hash64(text, 1)};
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = 'b';
    seen.insert(hash64(changed));
  }
  EXPECT_EQ(seen.size(), 302u);
  EXPECT_NE(hash128("a"), hash128("b"));
  EXPECT_EQ(hash128(text), hash128(std::string(300, 'a')));
}

TEST(hash, HexHasLeadingZeros) {
  EXPECT_EQ((Hash128{1, 0xab}).hex(), "000000000000000100000000000000ab");
}

struct StageTag;
struct LoopTag;
using StageId = Id<StageTag>;

TEST(ids, AreTypedAndOrdered) {
  EXPECT_FALSE(StageId().valid());
  EXPECT_EQ(StageId(3).index(), 3u);
  EXPECT_LT(StageId(2), StageId(3));
  static_assert(!std::is_convertible_v<StageId, Id<LoopTag>>);
  static_assert(!std::is_convertible_v<int, StageId>);
  std::unordered_set<StageId> set = {StageId(1), StageId(1), StageId(2)};
  EXPECT_EQ(set.size(), 2u);
}

TEST(check_death, SaysWhereAndWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int a = 1;
  HEDDLE_CHECK(a == 1);
  HEDDLE_CHECK(a == 1, "never formatted");
  EXPECT_DEATH(HEDDLE_CHECK(a == 2, "a is {}", a),
               "base_test.cc:[0-9]+: check failed: a == 2: a is 1");
  EXPECT_DEATH(HEDDLE_UNREACHABLE("kind {}", 7), "unreachable: kind 7");
}

}  // namespace
}  // namespace heddle
