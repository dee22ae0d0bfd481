#include "runtime/loader.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

namespace heddle::runtime {
namespace {

using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*);

std::vector<uint8_t> read_object(const std::string& name) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/src/runtime/testdata/" + name, std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

std::string error_of(std::span<const uint8_t> bytes) {
  auto object = Object::load(bytes);
  if (object) return "";
  EXPECT_EQ(object.error().kind, ErrorKind::user);
  return object.error().message;
}

class LoadedKernels : public testing::Test {
 protected:
  void SetUp() override {
    auto object = Object::load(read_object("kernels.o"));
    ASSERT_TRUE(object) << object.error().message;
    object_ = std::move(*object);
  }
  Kernel kernel(const char* name) {
    return reinterpret_cast<Kernel>(const_cast<void*>(object_->find(name)));
  }
  std::unique_ptr<Object> object_;
};

TEST_F(LoadedKernels, FindsGlobalFunctionsOnly) {
  for (const char* name : {"add_p0", "scale_p0", "total_p0", "total_p1", "move_p0", "table_p0"})
    EXPECT_NE(object_->find(name), nullptr) << name;
  EXPECT_EQ(object_->find("one"), nullptr);     // local
  EXPECT_EQ(object_->find("memcpy"), nullptr);  // not defined here
  EXPECT_EQ(object_->find("add_p"), nullptr);
}

TEST_F(LoadedKernels, RunsCodeWithConstants) {
  std::vector<float> a(32), b(32), out(32);
  for (int i = 0; i < 32; ++i) a[i] = static_cast<float>(i), b[i] = static_cast<float>(100 * i);
  void* buffers[] = {a.data(), b.data(), out.data()};
  kernel("add_p0")(buffers, nullptr, 0, 2, nullptr);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], static_cast<float>(101 * i));
  void* two[] = {a.data(), out.data()};
  kernel("scale_p0")(two, nullptr, 1, 2, nullptr);
  EXPECT_EQ(out[15], 1515.0f);
  EXPECT_EQ(out[16], 40.0f);
}

TEST_F(LoadedKernels, ReachesTablesAndOutsideFunctions) {
  std::vector<float> a(16), out(16);
  for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i);
  void* buffers[] = {a.data(), out.data()};
  const int64_t dims[] = {1};
  kernel("table_p0")(buffers, dims, 0, 1, nullptr);
  const float table[] = {1, 10, 100, 1000, 10000};
  for (int i = 0; i < 16; ++i) EXPECT_EQ(out[i], 3 * static_cast<float>(i) + table[(i + 1) % 5]);
  kernel("move_p0")(buffers, nullptr, 0, 1, nullptr);
  std::vector<char> want(64);
  std::memcpy(want.data(), a.data(), 64);
  std::memmove(want.data() + 1, want.data(), 63);
  EXPECT_EQ(std::memcmp(out.data(), want.data(), 64), 0);
}

// Permissions of the mapping that holds `address`, from /proc/self/maps: "r-xp".
std::string permissions(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char mode[8] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &begin, &end, mode) == 3 && begin <= wanted &&
        wanted < end)
      return mode;
  }
  return "";
}

TEST_F(LoadedKernels, CodeIsNeverWritable) {
  const char* code = static_cast<const char*>(object_->find("add_p0"));
  EXPECT_EQ(permissions(code), "r-xp");
  const auto page = reinterpret_cast<uintptr_t>(code) / 4096 * 4096;
  const auto last = page + static_cast<uintptr_t>(object_->mapped_bytes()) - 4096;
  EXPECT_EQ(permissions(reinterpret_cast<const void*>(last)), "r--p");  // constants
}

TEST(loader, NamesTheOutsideSymbolItRefuses) {
  EXPECT_NE(error_of(read_object("outside.o")).find("external symbol 'expf'"), std::string::npos);
}

TEST(loader, RefusesWritableData) {
  EXPECT_NE(error_of(read_object("state.o")).find(".data is writable"), std::string::npos);
}

TEST(loader, NamesTheRelocationItRefuses) {
  std::vector<uint8_t> bytes = read_object("kernels.o");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_RELA) continue;
    const uint32_t type = R_X86_64_GOTPCREL;  // low half of r_info, after r_offset
    std::memcpy(bytes.data() + section.sh_offset + 8, &type, sizeof(type));
    break;
  }
  EXPECT_NE(error_of(bytes).find("R_X86_64_GOTPCREL"), std::string::npos);
}

TEST(loader, TakesSeveralObjectsInARow) {
  const std::vector<uint8_t> one = read_object("kernels.o");
  std::vector<uint8_t> both = one;
  both.resize((one.size() + 63) / 64 * 64);
  both.insert(both.end(), one.begin(), one.end());
  // The second one defines another name: `add_p0` becomes `Add_p0` in its string table.
  const std::string_view name("\0add_p0", 7);
  auto found = std::search(both.end() - static_cast<ptrdiff_t>(one.size()), both.end(),
                           name.begin(), name.end());
  ASSERT_NE(found, both.end());
  found[1] = 'A';
  auto object = Object::load(both);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_NE((*object)->find("add_p0"), nullptr);
  ASSERT_NE((*object)->find("Add_p0"), nullptr);
  EXPECT_NE((*object)->find("add_p0"), (*object)->find("Add_p0"));
  EXPECT_EQ(std::memcmp((*object)->find("add_p0"), (*object)->find("Add_p0"), 16), 0);
  both.resize(both.size() - 100);
  EXPECT_NE(error_of(both), "");
  std::vector<uint8_t> behind = one;
  behind.resize((one.size() + 63) / 64 * 64 + 10);
  EXPECT_NE(error_of(behind).find("only 10 bytes"), std::string::npos);
}

TEST(loader, RefusesWhatIsNoObject) {
  EXPECT_NE(error_of({}).find("only 0 bytes"), std::string::npos);
  EXPECT_NE(error_of(std::vector<uint8_t>(4096, 7)).find("not a relocatable"), std::string::npos);
  std::vector<uint8_t> arm = read_object("kernels.o");
  arm[18] = 183;
  EXPECT_NE(error_of(arm).find("x86-64"), std::string::npos);
}

// Damages headers, tables and relocations, but not code and constants, which are not executed here.
TEST(loader, DamageNeverCrashes) {
  const std::vector<uint8_t> good = read_object("kernels.o");
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof(header));
  std::mt19937_64 random(3);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<uint8_t> bad = good;
    if (round % 10 == 0) bad.resize(random() % good.size());
    for (int flips = 0; flips <= round % 3 && !bad.empty(); ++flips) {
      size_t at = random() % bad.size();
      if (round % 2 == 0 && bad.size() == good.size())  // in the section table
        at = header.e_shoff + random() % (good.size() - header.e_shoff);
      if (round % 5 == 0) at %= 64;  // in the header
      bad[at] = static_cast<uint8_t>(round % 7 == 0 ? 0xff : random());
    }
    auto object = Object::load(bad);
    if (!object) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace heddle::runtime
