#include "runtime/pool.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/address_device.h"

namespace heddle::runtime {
namespace {

char* get(Pool& pool, int64_t bytes) {
  auto memory = pool.allocate(bytes);
  EXPECT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(pool.fault(), "");
  return memory ? *memory : nullptr;
}

TEST(pool, SplitsMergesAndTakesTheBestFit) {
  AddressDevice memory(1 << 20);
  Pool pool(memory.device());
  char* const all = get(pool, 1024);
  pool.release(all);
  char* const a = get(pool, 100);  // 128
  char* const b = get(pool, 256);
  char* const c = get(pool, 64);
  EXPECT_EQ(a, all);
  EXPECT_EQ(b, all + 128);
  EXPECT_EQ(c, all + 384);
  pool.release(a);
  EXPECT_EQ(get(pool, 128), a);  // the hole, not the large rest
  pool.release(b);
  pool.release(a);
  EXPECT_EQ(pool.numbers().largest_free_bytes, 1024 - 384 - 64);
  EXPECT_EQ(get(pool, 384), a);  // both holes are one
  EXPECT_EQ(pool.numbers().held_bytes, 1024);
  EXPECT_EQ(pool.numbers().extended, 1);
  EXPECT_EQ(get(pool, 0), nullptr);
}

TEST(pool, ScatteredBlocksComeBackAsOne) {
  AddressDevice memory(1024);
  Pool pool(memory.device());
  char *const a = get(pool, 256), *const b = get(pool, 256), *const c = get(pool, 256);
  pool.release(a);
  pool.release(c);
  // 512 are free in two blocks, and the device has only 256 left.
  char* const d = get(pool, 512);
  EXPECT_EQ(pool.numbers().defragmented, 1);
  EXPECT_EQ(pool.numbers().held_bytes, 768);
  EXPECT_EQ(memory.left_bytes, 256);
  pool.release(b);
  pool.release(d);
  pool.consolidate();
  EXPECT_EQ(pool.fault(), "");
  EXPECT_EQ(memory.given.size(), 1u);
  EXPECT_EQ(pool.numbers().held_bytes, 768);
  EXPECT_EQ(pool.numbers().peak_used_bytes, 768);
  pool.trim();
  EXPECT_EQ(memory.left_bytes, 1024);
}

TEST(pool, NoMemorySaysWhatThereIs) {
  AddressDevice memory(1024);
  Pool pool(memory.device());
  char* const a = get(pool, 512);
  EXPECT_FALSE(pool.allocate(1024));
  const auto refused = pool.allocate(576);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "no memory for 576 bytes: the pool has 512 in use and 0 free, 0 in one piece "
            "(device addresses: cannot allocate: out of memory)");
  EXPECT_EQ(pool.fault(), "");
  pool.release(a);
  // The pool's block is too small and must be returned before the device can allocate a larger one.
  get(pool, 1024);
  EXPECT_EQ(pool.numbers().held_bytes, 1024);
}

TEST(pool, LimitHoldsOverAllBlocks) {
  AddressDevice memory(1 << 20);
  Pool pool(memory.device(), 1024);
  char* const a = get(pool, 512);
  EXPECT_FALSE(pool.allocate(576));
  EXPECT_TRUE(pool.allocate(512));
  pool.release(a);
  EXPECT_EQ(pool.fault(), "");
  EXPECT_FALSE(pool.allocate(1024));
  EXPECT_LE(pool.numbers().peak_held_bytes, 1024);
}

// Random requests on 1 MiB with injected failures, compared with a map of allocated pieces.
TEST(pool, RandomRequestsAgainstAMap) {
  int64_t refused = 0, defragmented = 0, trimmed = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    AddressDevice memory(1 << 20);
    {
      Pool pool(memory.device(), seed % 3 == 0 ? 700'000 : -1);
      std::map<char*, int64_t> given;
      for (int step = 0; step < 2000; ++step) {
        if (random() % 50 == 0) memory.failures = static_cast<int64_t>(random() % 3);
        const bool take = given.empty() || random() % 100 < (step % 400 < 200 ? 60u : 40u);
        if (take) {
          const int64_t bytes = static_cast<int64_t>(1 + random() % (1u << (4 + random() % 14)));
          const auto got = pool.allocate(bytes);
          if (!got) {
            ++refused;
          } else {
            ASSERT_EQ(reinterpret_cast<uintptr_t>(*got) % 64, 0u);
            const auto above = given.lower_bound(*got);
            ASSERT_TRUE(above == given.end() || *got + bytes <= above->first);
            if (above != given.begin()) {
              const auto below = std::prev(above);
              ASSERT_LE(below->first + below->second, *got);
            }
            const auto block = std::prev(memory.given.upper_bound(*got));
            ASSERT_LE(*got + bytes, block->first + block->second);
            given[*got] = bytes;
          }
        } else {
          auto one = given.begin();
          std::advance(one, static_cast<int64_t>(random() % given.size()));
          pool.release(one->first);
          given.erase(one);
        }
        ASSERT_EQ(pool.fault(), "") << "seed " << seed << " step " << step;
        int64_t held = 0;
        for (const auto& [at, bytes] : memory.given) held += bytes;
        ASSERT_EQ(held, pool.numbers().held_bytes);
      }
      defragmented += pool.numbers().defragmented;
      trimmed += pool.numbers().trimmed;
    }
    ASSERT_TRUE(memory.given.empty());
    ASSERT_EQ(memory.left_bytes, 1 << 20);
  }
  // The test covers the cases that it is meant for.
  EXPECT_GT(refused, 100);
  EXPECT_GT(defragmented, 20);
  EXPECT_GT(trimmed, 100);
}

TEST(pool, OnStreamsWhatIsKnownToBeOverComesFirst) {
  AddressDevice memory(1 << 20);
  Pool pool(memory.device());
  const Pool::Clock nothing = {0, 0}, second = {0, 7}, first = {2, 0};
  Pool::Clock behind;
  pool.release(get(pool, 256));
  char *const a = get(pool, 64), *const b = get(pool, 64), *const c = get(pool, 128);
  pool.release(a, {3, 0});
  pool.release(c, {0, 7});
  EXPECT_EQ(*pool.allocate(64, &nothing, &behind), a);  // neither has run: the smaller one
  EXPECT_EQ(behind, (Pool::Clock{3, 0}));
  pool.release(a, {3, 0});
  EXPECT_EQ(*pool.allocate(64, &second, &behind), c);  // the other one has run
  EXPECT_TRUE(behind.empty());
  EXPECT_EQ(*pool.allocate(64, &nothing, &behind), a);
  EXPECT_EQ(behind, (Pool::Clock{3, 0}));
  // Merged and split pieces wait for all their last uses.
  pool.release(b, {1, 1});
  pool.release(c, {2, 2});
  EXPECT_EQ(pool.fault(), "");
  EXPECT_EQ(*pool.allocate(128, &first, &behind), b);
  EXPECT_EQ(behind, (Pool::Clock{2, 7}));
  EXPECT_EQ(*pool.allocate(64, &first, &behind), c + 64);
  EXPECT_EQ(behind, (Pool::Clock{2, 7}));
  pool.release(c + 64, {9, 9});
  pool.forget_clocks();
  EXPECT_EQ(*pool.allocate(64, &nothing, &behind), c + 64);
  EXPECT_TRUE(behind.empty());
  EXPECT_EQ(pool.numbers().extended, 1);
}

}  // namespace
}  // namespace heddle::runtime
