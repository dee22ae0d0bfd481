#include "cache/object_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "cache/build_id.h"

namespace heddle::cache {
namespace {

namespace fs = std::filesystem;

Hash128 key_of(std::string_view text) {
  const std::string_view texts[] = {text};
  return object_key(texts, "target", "build");
}

std::vector<uint8_t> object_of(int n, size_t bytes = 100) {
  std::vector<uint8_t> object(bytes);
  for (size_t i = 0; i < bytes; ++i)
    object[i] = static_cast<uint8_t>(i * 31 + static_cast<size_t>(n));
  return object;
}

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/heddle_cache_" + std::to_string(getpid()) + "_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  ObjectCache open(int64_t max_bytes = ObjectCache::kDefaultMaxBytes) {
    auto cache = ObjectCache::open(directory_, max_bytes);
    EXPECT_TRUE(cache) << cache.error().message;
    return std::move(*cache);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    for (const auto& entry : fs::recursive_directory_iterator(directory_))
      if (entry.is_regular_file()) result.push_back(entry.path());
    return result;
  }
  std::string directory_;
};

TEST(object_key, EveryPartCounts) {
  auto key = [](std::vector<std::string_view> texts, std::string_view target,
                std::string_view build) { return object_key(texts, target, build); };
  const Hash128 base = key({"ab", "c"}, "t", "b");
  EXPECT_EQ(base, key({"ab", "c"}, "t", "b"));
  EXPECT_NE(base, key({"a", "bc"}, "t", "b"));
  EXPECT_NE(base, key({"abc"}, "t", "b"));
  EXPECT_NE(base, key({"c", "ab"}, "t", "b"));
  EXPECT_NE(base, key({"ab", "c"}, "tb", ""));
  EXPECT_NE(base, key({"ab", "c"}, "t", "b2"));
  EXPECT_EQ(base, make_key({"b", "t", "ab", "c"}));
}

TEST_F(CacheTest, FindsWhatWasStored) {
  ObjectCache cache = open();
  EXPECT_FALSE(cache.find(key_of("a")));
  ASSERT_TRUE(cache.store(key_of("a"), object_of(1)));
  ASSERT_TRUE(cache.store(key_of("empty"), {}));
  EXPECT_EQ(cache.find(key_of("a")), object_of(1));
  EXPECT_EQ(cache.find(key_of("empty")), std::vector<uint8_t>());
  EXPECT_FALSE(cache.find(key_of("b")));
  ASSERT_TRUE(cache.store(key_of("a"), object_of(2)));  // replaced
  EXPECT_EQ(open().find(key_of("a")), object_of(2));    // by another process, too
  const ObjectCacheStats stats = cache.stats();
  EXPECT_EQ(stats.hits, 2);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.stores, 3);
  EXPECT_EQ(stats.entries, 2);
  EXPECT_GT(stats.bytes, 100);
}

TEST_F(CacheTest, DirectoriesArePrivate) {
  ObjectCache cache = open();
  ASSERT_TRUE(cache.store(key_of("a"), object_of(1)));
  for (const fs::path& path : {fs::path(directory_), files()[0].parent_path()})
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all) << path;
  EXPECT_EQ(fs::status(files()[0]).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CacheTest, DamageIsAMissAndIsRemoved) {
  ObjectCache cache = open();
  ASSERT_TRUE(cache.store(key_of("a"), object_of(1)));
  const fs::path path = files()[0];
  std::ifstream file(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  std::mt19937_64 random(9);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    if (round % 3 == 0) {
      bad.resize(random() % good.size());
    } else {
      bad[random() % good.size()] ^= static_cast<char>(1 + random() % 255);
    }
    std::ofstream(path, std::ios::binary) << bad;
    ASSERT_FALSE(cache.find(key_of("a"))) << "round " << round;
    ASSERT_FALSE(fs::exists(path));
  }
  std::ofstream(path, std::ios::binary) << good << "x";
  EXPECT_FALSE(cache.find(key_of("a")));
  EXPECT_EQ(cache.stats().damaged, 301);
  // An entry under another key's name is foreign.
  std::ofstream(path, std::ios::binary) << good;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(cache.find(key_of("a")));
  ASSERT_TRUE(cache.store(key_of("b"), object_of(2)));
  for (const fs::path& other : files())
    if (other != path) fs::copy_file(path, other, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(cache.find(key_of("b")));
}

TEST_F(CacheTest, WhatOthersCanWriteIsNotRead) {
  ObjectCache cache = open();
  ASSERT_TRUE(cache.store(key_of("a"), object_of(1)));
  fs::permissions(files()[0], fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.find(key_of("a")));
  fs::permissions(directory_, fs::perms::group_write, fs::perm_options::add);
  auto refused = ObjectCache::open(directory_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::machine);
  EXPECT_NE(refused.error().message.find("--cache"), std::string::npos);
  EXPECT_FALSE(ObjectCache::open("/proc/nothing/here"));
}

TEST_F(CacheTest, EvictsWhatWasUsedLongestAgo) {
  ObjectCache cache = open(10'000);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(cache.store(key_of(std::to_string(i)), object_of(i, 1000)));
    // Clocks of file systems are coarse.
    for (const fs::path& path : files())
      if (path.string().find(key_of(std::to_string(i)).hex()) != std::string::npos)
        fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(20 - i));
  }
  EXPECT_EQ(cache.stats().entries, 9);
  EXPECT_TRUE(cache.find(key_of("0")));  // the oldest is used again
  ASSERT_TRUE(cache.store(key_of("big"), object_of(7, 1000)));
  const ObjectCacheStats stats = cache.stats();
  EXPECT_LE(stats.bytes, 10'000);
  EXPECT_GT(stats.evictions, 0);
  EXPECT_TRUE(cache.find(key_of("0")));
  EXPECT_TRUE(cache.find(key_of("big")));
  EXPECT_TRUE(cache.find(key_of("8")));
  EXPECT_FALSE(cache.find(key_of("1")));
}

TEST_F(CacheTest, WeightsAreMapped) {
  ObjectCache cache = open(4'000'000);
  const std::vector<uint8_t> weights = object_of(3, 1'000'000);
  EXPECT_FALSE(cache.map_weights(key_of("a"), 1));
  ASSERT_TRUE(cache.store_weights(key_of("a"), weights));
  EXPECT_FALSE(cache.find(key_of("a")));  // separate keys
  auto mapped = cache.map_weights(key_of("a"), 3);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->bytes.data()) % 64, 0u);
  EXPECT_EQ(cache.stats().weight_entries, 1);
  EXPECT_GT(cache.stats().weight_bytes, 1'000'000);
  ASSERT_TRUE(cache.store_weights(key_of("a"), object_of(4, 1'000'000)));  // unchanged
  // More than a quarter of the bound is not kept.
  ASSERT_TRUE(cache.store_weights(key_of("b"), object_of(5, 1'000'001)));
  EXPECT_FALSE(cache.map_weights(key_of("b"), 1));
  // Four more evict it; the mapping stays valid.
  for (const char* name : {"c", "d", "e", "f"})
    ASSERT_TRUE(cache.store_weights(key_of(name), object_of(6, 999'000)));
  EXPECT_LE(cache.stats().bytes, 4'000'000);
  ASSERT_TRUE(cache.clear());
  EXPECT_TRUE(std::equal(weights.begin(), weights.end(), mapped->bytes.begin()));
}

TEST_F(CacheTest, DamagedWeightsAreAMiss) {
  ObjectCache cache = open();
  const Hash128 key = key_of("a");
  const size_t bytes = 3'000'000;  // of several pieces
  ASSERT_TRUE(cache.store_weights(key, object_of(3, bytes)));
  const fs::path path = files()[0];
  std::ifstream file(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    // The header is small: every other round damages it.
    const size_t at = random() % (round % 2 == 0 ? 64 : good.size());
    if (round % 3 == 0) {
      bad.resize(at);
    } else {
      bad[at] ^= static_cast<char>(1 + random() % 255);
    }
    std::ofstream(path, std::ios::binary) << bad;
    ASSERT_FALSE(cache.map_weights(key, 2)) << "round " << round;
    ASSERT_FALSE(fs::exists(path));
  }
  ASSERT_TRUE(cache.store_weights(key, object_of(3, bytes)));
  EXPECT_TRUE(cache.map_weights(key, 1));
}

TEST_F(CacheTest, Clear) {
  ObjectCache cache = open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cache.store(key_of(std::to_string(i)), object_of(i)));
  ASSERT_TRUE(cache.clear());
  EXPECT_EQ(cache.stats().entries, 0);
  EXPECT_FALSE(cache.find(key_of("1")));
  fs::remove_all(directory_);
  ASSERT_TRUE(cache.store(key_of("1"), object_of(1)));  // the folders are created again
  EXPECT_TRUE(cache.find(key_of("1")));
}

TEST_F(CacheTest, ThreadsAndProcessesShareIt) {
  ObjectCache cache = open(50'000);
  auto work = [&](ObjectCache& mine, uint64_t seed) {
    std::mt19937_64 random(seed);
    MappedEntry held;
    for (int i = 0; i < 200; ++i) {
      const int n = static_cast<int>(random() % 40);
      const std::string name = std::to_string(n);
      if (i % 4 == 0) {  // weights; mappings stay valid while others evict them
        if (auto mapped = mine.map_weights(key_of(name), 1))
          held = std::move(*mapped);
        else if (!mine.store_weights(key_of(name), object_of(n, 5000)))
          return false;
        if (held.bytes.empty()) continue;
        const std::vector<uint8_t> want = object_of(held.bytes[0], 5000);
        if (!std::equal(want.begin(), want.end(), held.bytes.begin(), held.bytes.end()))
          return false;
      } else if (auto found = mine.find(key_of(name))) {
        if (*found != object_of(n, 2000)) return false;
      } else if (!mine.store(key_of(name), object_of(n, 2000))) {
        return false;
      }
    }
    return true;
  };
  const pid_t child = fork();
  if (child == 0) {
    auto mine = ObjectCache::open(directory_, 50'000);
    _exit(mine && work(*mine, 1) ? 0 : 1);
  }
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) threads.emplace_back([&, t] { failed += !work(cache, 10 + t); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // A process that finds another one evicting does not evict; a later store restores the bound.
  ObjectCache later = open(50'000);
  ASSERT_TRUE(later.store(key_of("later"), object_of(1, 2000)));
  EXPECT_LE(later.stats().bytes, 50'000);
}

// Eight processes with three threads each look up four keys at the same time: each entry is made
// once.
TEST_F(CacheTest, OneOfManyMakesAnEntry) {
  ObjectCache cache = open();
  constexpr int kProcesses = 8, kThreads = 3, kKeys = 4;
  const std::string made = testing::TempDir() + "/heddle_made_" + std::to_string(getpid());
  std::ofstream(made).close();
  auto ask = [&](ObjectCache& mine, int first) {
    for (int i = 0; i < kKeys; ++i) {
      const int n = (first + i) % kKeys;
      Lookup lookup = mine.find_or_make(key_of(std::to_string(n)));
      if (lookup.object ? *lookup.object != object_of(n) : !lookup.making) return false;
      if (lookup.object) continue;
      std::ofstream(made, std::ios::app) << n << std::flush;
      usleep(20'000);  // of compiling
      if (!mine.store(key_of(std::to_string(n)), object_of(n))) return false;
    }
    return true;
  };
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      auto mine = ObjectCache::open(directory_);
      std::atomic<bool> good{mine.has_value()};
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads && good; ++t)
        threads.emplace_back([&, t] {
          if (!ask(*mine, p + t)) good = false;
        });
      for (std::thread& thread : threads) thread.join();
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(fs::file_size(made), static_cast<uintmax_t>(kKeys));
  fs::remove(made);
  EXPECT_EQ(files().size(), static_cast<size_t>(kKeys));  // no locks are left
}

TEST_F(CacheTest, AKilledMakerBlocksNobody) {
  ObjectCache cache = open();
  ASSERT_TRUE(cache.store(key_of("other"), object_of(1)));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto mine = ObjectCache::open(directory_);
    const Lookup lookup = mine->find_or_make(key_of("a"));
    if (write(ready[1], lookup.making ? "m" : "x", 1) != 1) _exit(1);
    pause();
  }
  char said = 0;
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'm');
  close(ready[0]);
  close(ready[1]);
  const auto nobody = cache.find_or_make(key_of("a"), std::chrono::milliseconds(20));
  EXPECT_FALSE(nobody.object);
  EXPECT_FALSE(nobody.making);  // the other process is still making it, and the wait is over
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const auto begin = std::chrono::steady_clock::now();
  {
    const Lookup mine = cache.find_or_make(key_of("a"));
    EXPECT_TRUE(mine.making);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    ASSERT_TRUE(cache.store(key_of("a"), object_of(2)));
  }
  EXPECT_EQ(cache.find_or_make(key_of("a")).object, object_of(2));
  EXPECT_EQ(files().size(), 2u);
}

TEST(chosen_directory, NamedThenTheEnvironmentThenTheUsers) {
  ASSERT_EQ(setenv("HEDDLE_CACHE", "/of/environment", 1), 0);
  EXPECT_EQ(chosen_directory("/named"), "/named");
  EXPECT_EQ(chosen_directory("off"), "");
  EXPECT_EQ(chosen_directory(""), "/of/environment");
  ASSERT_EQ(setenv("HEDDLE_CACHE", "off", 1), 0);
  EXPECT_EQ(chosen_directory(""), "");
  EXPECT_EQ(chosen_directory("/named"), "/named");
  ASSERT_EQ(unsetenv("HEDDLE_CACHE"), 0);
  EXPECT_EQ(chosen_directory(""), default_directory());
}

TEST(default_directory, FollowsTheEnvironment) {
  const char* old = std::getenv("XDG_CACHE_HOME");
  const std::string saved = old == nullptr ? "" : old;
  setenv("XDG_CACHE_HOME", "/some/where", 1);
  EXPECT_EQ(default_directory(), "/some/where/heddle");
  unsetenv("XDG_CACHE_HOME");
  if (std::getenv("HOME") != nullptr) {
    EXPECT_EQ(default_directory(), std::string(std::getenv("HOME")) + "/.cache/heddle");
  }
  if (old != nullptr) setenv("XDG_CACHE_HOME", saved.c_str(), 1);
}

TEST(build_id, OfThisBinaryAndOfALibrary) {
  const std::string own = build_id(reinterpret_cast<const void*>(&object_of));
  EXPECT_GE(own.size(), 16u);
  EXPECT_EQ(own.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(own, build_id(reinterpret_cast<const void*>(&key_of)));
  EXPECT_EQ(build_id(nullptr), "");
  EXPECT_EQ(file_build_id("/proc/self/exe"), own);
  EXPECT_EQ(file_build_id("/no/such/file"), "");
  // Without a note: a hash of the file.
  const std::string path = testing::TempDir() + "/heddle_build_id_" + std::to_string(getpid());
  std::ofstream(path) << "one";
  const std::string one = file_build_id(path);
  std::ofstream(path) << "two";
  EXPECT_EQ(one.size(), 32u);
  EXPECT_NE(one, file_build_id(path));
  fs::remove(path);
}

}  // namespace
}  // namespace heddle::cache
