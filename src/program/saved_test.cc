// Files with several programs: shared constants, and errors.
#include "program/saved.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <random>

#include "base/hash.h"
#include "program/contract.h"
#include "program/encode.h"
#include "program/file.h"

namespace heddle::program {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

Literal numbers(int64_t n, float first) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = first + static_cast<float>(i);
  return Literal::from<float>(Shape::array(Type::f32, {n}), values);
}

// y [n] = a copy of x, and two constants as outputs of their own.
Program copies(int64_t n, bool told, float second) {
  Program p;
  p.name = "copies";
  p.object = {uint8_t(n), 2, 3};
  p.buffers = {{"x", BufferKind::input, n * 4, 0, 0},
               {"y", BufferKind::output, n * 4, 0, 0},
               {"w", BufferKind::constant, 400, 0},
               {"v", BufferKind::constant, 400, 448}};
  p.constants = {{}, {}, numbers(100, 1), numbers(100, second)};
  const Shape row = Shape::array(Type::f32, {n}), fixed = Shape::array(Type::f32, {100});
  p.inputs = {{"x", "", row, BufferId(0), {}}};
  if (told) {
    p.buffers.push_back({"n", BufferKind::input, 4, 0, 1});
    p.constants.emplace_back();
    p.inputs.push_back({"extent of n", "", Shape::array(Type::s32, {}), BufferId(4), {}});
  }
  p.outputs = {{"y", "", row, BufferId(1), {}},
               {"w", "", fixed, {}, {BufferId(2), 0, fixed}},
               {"v", "", fixed, {}, {BufferId(3), 0, fixed}}};
  p.commands = {Copy{{BufferId(0), 0, row}, {BufferId(1), 0, row}}};
  p.command_info = {{"copy", "copy"}};
  return p;
}

Saved two() {
  Saved saved;
  saved.symbols = {{"n", 8, 1, {}, {{0, 0}}, {{0, 0}}}};
  saved.variants = {{{1}, {4}, {0}, copies(4, true, 50)}, {{5}, {8}, {0}, copies(8, true, 70)}};
  return saved;
}

class SavedFile : public testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string path_ = testing::TempDir() + "/heddle_saved_" + std::to_string(getpid());
};

TEST_F(SavedFile, ConstantsAreThereOnce) {
  const Saved saved = two();
  const Status status = save(saved, path_);
  ASSERT_TRUE(status) << status.error().message;
  const auto loaded = load_saved(path_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->variants.size(), 2u);
  for (size_t v = 0; v < 2; ++v) {
    const Variant &a = saved.variants[v], &b = loaded->variants[v];
    EXPECT_EQ(a.bounds, b.bounds);
    EXPECT_EQ(a.least, b.least);
    EXPECT_EQ(a.told, b.told);
    EXPECT_EQ(a.program.object, b.program.object);
    EXPECT_EQ(a.program.constants, b.program.constants);
  }
  // w is equal in both, v is not.
  const Program &first = loaded->variants[0].program, &second = loaded->variants[1].program;
  EXPECT_EQ(first.constants[2].data(), second.constants[2].data());
  EXPECT_NE(first.constants[3].data(), second.constants[3].data());
  const auto header = read_header(path_);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->dimensions, "n<=8");
  EXPECT_EQ(header->programs, 2);
  EXPECT_EQ(header->object_bytes, 6);
  EXPECT_EQ(header->constant_bytes, 448 * 2 + 400);
  EXPECT_EQ(variant_for(*loaded, {4}), 0);
  EXPECT_EQ(variant_for(*loaded, {5}), 1);
  EXPECT_EQ(variant_for(*loaded, {9}), -1);
  const auto single = load(path_);
  ASSERT_FALSE(single);
  EXPECT_NE(single.error().message.find("n<=8"), std::string::npos);
}

TEST_F(SavedFile, AllProgramsHaveTheSameStates) {
  Saved saved = two();
  for (Variant& variant : saved.variants) {
    Program& p = variant.program;
    const BufferId in(p.buffers.size()), out(p.buffers.size() + 1);
    const Shape shape = Shape::array(Type::u64, {1});
    p.buffers.push_back({"in", BufferKind::input, 8, 0, 2});
    p.buffers.push_back({"out", BufferKind::output, 8, 0, 3, in});
    p.constants.resize(p.buffers.size());
    p.inputs.push_back({"in", "", shape, in, {}});
    p.outputs.push_back({"out", "", shape, out, {}});
    p.states = {{std::vector<uint8_t>(8, 1)}};
  }
  const Status good = verify(saved);
  EXPECT_TRUE(good) << good.error().message;
  saved.variants[1].program.states[0].start[0] = 2;
  EXPECT_FALSE(verify(saved));
}

// The contract covers properties that no table can be checked against.
TEST_F(SavedFile, TheContractCoversWhatCodeReliesOn) {
  Variant good = two().variants[1];
  Program& p = good.program;
  p.kernels.push_back({"k", {}, {{"k_p0", 4, false}}, 128});
  Launch launch;
  launch.kernel = KernelId(0);
  launch.arguments = {{BufferId(0), 0, tensor::Shape::array(tensor::Type::f32, {8})}};
  launch.dims = {3};
  p.commands.push_back(launch);
  p.command_info.push_back({"k", "add"});
  const Hash128 wanted = contract_of(good);
  const std::function<void(Variant&)> changes[] = {
      [](Variant& v) { v.bounds[0] += 1; },
      [](Variant& v) { v.least[0] += 1; },
      [](Variant& v) { v.told.push_back(0); },
      [](Variant& v) { v.program.kernels[0].phases[0].tasks = 5; },
      [](Variant& v) { v.program.kernels[0].phases[0].symbol = "k_p1"; },
      [](Variant& v) { v.program.kernels[0].scratch_bytes = 64; },
      [](Variant& v) { std::get<Launch>(v.program.commands.back()).dims[0] = 4; },
      [](Variant& v) { std::get<Launch>(v.program.commands.back()).inputs = 1; },
      [](Variant& v) { std::get<Launch>(v.program.commands.back()).in_place = {0}; },
      [](Variant& v) {
        std::get<Launch>(v.program.commands.back()).arguments[0].shape =
            tensor::Shape::array(tensor::Type::f32, {7});
      },
      [](Variant& v) { std::get<Launch>(v.program.commands.back()).arguments.pop_back(); }};
  for (size_t i = 0; i < std::size(changes); ++i) {
    Variant changed = good;
    changes[i](changed);
    EXPECT_NE(contract_of(changed), wanted) << i;
  }
  Variant moved = good;  // addresses are checked by the verifier
  moved.program.commands.back() = launch;
  std::get<Launch>(moved.program.commands.back()).arguments[0].offset_bytes = 64;
  EXPECT_EQ(contract_of(moved), wanted);
}

// The test corrects the checksums (layout: see file.cc).
TEST_F(SavedFile, AnotherContractIsRefused) {
  ASSERT_TRUE(save(two(), path_));
  std::string bytes = read();
  const auto word = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  const auto put = [&](size_t at, uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  const size_t offset = word(56), size = word(64), code = two().variants[0].program.object.size();
  bytes[offset + code] ^= 1;
  const std::string_view all = bytes;
  put(72, hash64(all.substr(offset, size)));
  const uint32_t header = static_cast<uint32_t>(word(12));
  put(24, hash64(all.substr(32, header - 32), hash64(all.substr(0, 24))));
  write(bytes);
  const auto loaded = load_saved(path_);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("program 0 was made for other commands"), std::string::npos)
      << loaded.error().message;
}

TEST_F(SavedFile, EveryDamageIsAUserError) {
  ASSERT_TRUE(save(two(), path_));
  const std::string good = read();
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    if (round % 3 == 0) {
      bad.resize(random() % good.size());
    } else {
      const size_t at = random() % good.size();
      bad[round % 2 == 0 ? at : at / 4096 * 4096 + random() % 128] ^=
          static_cast<char>(1 + random() % 255);
    }
    write(bad);
    const auto loaded = load_saved(path_);
    ASSERT_FALSE(loaded) << "round " << round;
    EXPECT_EQ(loaded.error().kind, ErrorKind::user);
  }
}

// Errors that a checksum does not detect: programs of different models.
TEST_F(SavedFile, ProgramsFitOneAnother) {
  ASSERT_TRUE(verify(two()));
  const std::vector<std::pair<const char*, std::function<void(Saved&)>>> faults = {
      {"programs of", [](Saved& s) { s.variants.clear(); }},
      {"programs of", [](Saved& s) { s.symbols.clear(); }},
      {"dimension ''", [](Saved& s) { s.symbols[0].name.clear(); }},
      {"inputs of program 1", [](Saved& s) { s.variants[1].bounds = {9}; }},
      {"'m' is not one of", [](Saved& s) { s.symbols.push_back({"m", 9, 1, {1, {}}, {}, {}}); }},
      {"'m' does not follow",
       [](Saved& s) { s.symbols.push_back({"m", 9, 1, {1, {{1, 1}}}, {}, {}}); }},
      {"'m' does not follow",
       [](Saved& s) { s.symbols.push_back({"m", 9, 1, {1, {{0, 0}}}, {}, {}}); }},
      {"'m' does not follow",
       [](Saved& s) { s.symbols.push_back({"m", 9, 1, {1, {{0, 1 << 17}}}, {}, {}}); }},
      {"do not fit", [](Saved& s) { s.symbols.push_back({"m", 9, 1, {1, {{0, 1}}}, {}, {}}); }},
      {"do not fit", [](Saved& s) { s.variants[1].bounds = {}; }},
      {"do not fit", [](Saved& s) { s.variants[1].least = {-1}; }},
      {"do not fit", [](Saved& s) { s.variants[1].told = {}; }},
      {"do not fit", [](Saved& s) { s.variants[1].told = {1}; }},
      {"do not fit", [](Saved& s) { s.variants[1].told = {0, 0, 0}; }},
      {"do not fit",
       [](Saved& s) { s.variants[1].program.inputs[1].shape = Shape::array(Type::f32, {}); }},
      {"inputs of program 1", [](Saved& s) { s.variants[1].program = copies(7, true, 70); }},
      {"outputs of program 1", [](Saved& s) { s.variants[1].program.outputs[1].name = "z"; }},
      {"outputs of program 0", [](Saved& s) { s.symbols[0].outputs = {{0, 1}}; }},
      {"inputs of program 0", [](Saved& s) { s.symbols[0].inputs = {{1, 0}}; }},
      {"outputs of program 1", [](Saved& s) { s.symbols[0].outputs.clear(); }},
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    Saved saved = two();
    faults[i].second(saved);
    const Status status = verify(saved);
    ASSERT_FALSE(status) << i;
    EXPECT_NE(status.error().message.find(faults[i].first), std::string::npos)
        << i << ": " << status.error().message;
  }
}

TEST_F(SavedFile, AnyBytesDecodeOrFail) {
  const std::vector<uint8_t> good = encode(two());
  ASSERT_TRUE(decode_saved(good));
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bad = good;
    if (round % 5 == 0) bad.resize(random() % good.size());
    for (int flips = 0; flips <= round % 3 && !bad.empty(); ++flips)
      bad[random() % bad.size()] = static_cast<uint8_t>(random());
    if (const auto decoded = decode_saved(bad)) (void)verify(decoded->saved);
  }
}

}  // namespace
}  // namespace heddle::program
