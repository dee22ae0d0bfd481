#include "cache/tuning_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace heddle::cache {
namespace {

using testing::HasSubstr;

class TuningStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/tuning_store_" + std::to_string(getpid());
    std::filesystem::remove_all(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string directory_;
};

TuningRecord record(const std::string& key, const std::string& text) {
  return {"spr-1", key, text, 12.5, 20, "a: 12.5; b: 20"};
}

TEST_F(TuningStoreTest, KeepsRecordsByDeviceAndKey) {
  EXPECT_TRUE(TuningStore::load(directory_, "spr-1")->empty());  // and makes nothing
  EXPECT_FALSE(std::filesystem::exists(directory_));
  {
    auto store = TuningStore::open(directory_);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->put(record("dot 1x2x3", "gemm 8x3")));
    ASSERT_TRUE(store->put(record("dot 4x5x6", "gemm 6x4")));
    ASSERT_TRUE(store->put(record("dot 1x2x3", "gemm 14x2")));
    EXPECT_EQ(store->records("")->size(), 2u);
    EXPECT_TRUE(store->records("avx2-1")->empty());
  }
  auto loaded = TuningStore::load(directory_, "spr-1");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(*loaded, (std::map<std::string, std::string>{{"dot 1x2x3", "gemm 14x2"},
                                                         {"dot 4x5x6", "gemm 6x4"}}));
}

TEST_F(TuningStoreTest, APipeIsRefused) {
  ASSERT_TRUE(TuningStore::open(directory_)->put(record("k", "r")));
  std::filesystem::remove(directory_ + "/tuning.db");
  ASSERT_EQ(mkfifo((directory_ + "/tuning.db").c_str(), 0600), 0);
  const auto loaded = TuningStore::load(directory_, "spr-1");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("not a regular file"));
  EXPECT_FALSE(TuningStore::open(directory_));
}

TEST_F(TuningStoreTest, DamagedFilesAreBegunAnew) {
  ASSERT_TRUE(TuningStore::open(directory_)->put(record("k", "r")));
  std::ofstream(directory_ + "/tuning.db") << std::string(5000, 'x');
  EXPECT_TRUE(TuningStore::load(directory_, "spr-1")->empty());
  auto store = TuningStore::open(directory_);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE(store->records("")->empty());
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/tuning.db.damaged"));
}

TEST_F(TuningStoreTest, TextIsReadBack) {
  const std::vector<TuningRecord> records{record("a", "gemm 8x3"), record("b", "gemm 6x4")};
  auto parsed = parse_tuning_text(to_text(records));
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ(to_text(*parsed), to_text(records));
}

TEST_F(TuningStoreTest, TextThatIsNoneIsTold) {
  EXPECT_THAT(parse_tuning_text("").error().message, HasSubstr("empty"));
  EXPECT_THAT(parse_tuning_text("nothing\n").error().message, HasSubstr("line 1"));
  EXPECT_THAT(parse_tuning_text("heddle tuning records 1\na\tb\n").error().message,
              HasSubstr("line 2"));
  EXPECT_THAT(parse_tuning_text("heddle tuning records 1\na\tb\tc\tx\t1\td\n").error().message,
              HasSubstr("line 2"));
}

}  // namespace
}  // namespace heddle::cache
