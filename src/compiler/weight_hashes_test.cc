#include "compiler/weight_hashes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace heddle::compiler {
namespace {

using tensor::Literal;
using File = std::shared_ptr<const char>;

constexpr int64_t kBytes = int64_t{5} << 20;

class WeightHashes : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + fmt::format("/heddle_weight_hashes_{}", getpid());
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/weights";
    std::string bytes(static_cast<size_t>(kBytes) + 1, 'w');
    for (size_t i = 0; i < bytes.size(); i += 97) bytes[i] = static_cast<char>(i);
    std::ofstream(path_, std::ios::binary) << bytes;
    cache_.emplace(std::move(*cache::ObjectCache::open(folder_ + "/cache")));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  File open() const {
    const int descriptor = ::open(path_.c_str(), O_RDONLY);
    void* data = mmap(nullptr, kBytes + 1, PROT_READ, MAP_PRIVATE, descriptor, 0);
    EXPECT_NE(data, MAP_FAILED);
    close(descriptor);
    return {static_cast<const char*>(data),
            [](const char* at) { munmap(const_cast<char*>(at), kBytes + 1); }};
  }
  // Two arrays of the file, the second at an odd address, and one that is not in it.
  std::vector<Literal> weights(const File& file) const {
    const char* data = file.get();
    const tensor::Shape half = tensor::Shape::array(tensor::Type::u8, {kBytes / 2});
    return {Literal::view(half, data, file), Literal::view(half, data + kBytes / 2 + 1, file),
            Literal::from<float>(tensor::Shape::array(tensor::Type::f32, {2}),
                                 std::vector<float>{1, 2})};
  }
  Hash128 hash(const File& file, int threads = 1, int settled_seconds = 0) {
    return hash_of_weights(weights(file), threads, *cache_, settled_seconds);
  }
  void change_one_byte() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // file times are no finer
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(kBytes / 3);
    file.put('!');
  }

  std::string folder_, path_;
  std::optional<cache::ObjectCache> cache_;
};

TEST_F(WeightHashes, AreRememberedByFile) {
  const Hash128 first = hash(open());
  EXPECT_EQ(cache_->stats().stores, 1);
  EXPECT_EQ(cache_->stats().hits, 0);
  EXPECT_EQ(hash(open(), 3), first);
  EXPECT_EQ(cache_->stats().stores, 1);
  EXPECT_EQ(cache_->stats().hits, 1);
}

TEST_F(WeightHashes, AreOfTheContentNotOfThePlace) {
  const File file = open();
  std::vector<Literal> copies;
  for (const Literal& weight : weights(file)) {
    Literal copy(weight.shape());
    std::memcpy(copy.mutable_data(), weight.data(), static_cast<size_t>(weight.bytes()));
    copies.push_back(copy);
  }
  EXPECT_EQ(hash_of_weights(copies, 2, *cache_), hash(file));
}

TEST_F(WeightHashes, AWeightChangedInPlaceIsNoticed) {
  const Hash128 first = hash(open());
  change_one_byte();
  const Hash128 second = hash(open());
  EXPECT_NE(second, first);
  EXPECT_EQ(cache_->stats().hits, 0);
  // The modification time is restored: the change time still differs.
  struct stat before{};
  ASSERT_EQ(stat(path_.c_str(), &before), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::ofstream(path_, std::ios::binary | std::ios::in | std::ios::out) << "other";
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_NE(hash(open()), second);
  EXPECT_EQ(cache_->stats().hits, 0);
}

TEST_F(WeightHashes, AFreshFileIsRead) {
  const Hash128 first = hash(open(), 1, kSettledSeconds);
  EXPECT_EQ(cache_->stats().stores, 0);
  change_one_byte();
  EXPECT_NE(hash(open(), 1, kSettledSeconds), first);
}

TEST_F(WeightHashes, ADamagedRecordIsReadAgain) {
  const Hash128 first = hash(open());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/cache"))
    if (entry.path().extension() == ".o") std::filesystem::resize_file(entry.path(), 50);
  EXPECT_EQ(hash(open()), first);
  EXPECT_EQ(cache_->stats().hits, 0);
}

}  // namespace
}  // namespace heddle::compiler
