// Damaged HLO protos: whatever the file contains, the reader quickly gives a module or an error.
#include <gmock/gmock.h>

#include <chrono>
#include <random>

#include "export/hlo_proto.h"
#include "export/proto_writer.h"
#include "hlo/text_test_util.h"
#include "hlo/verify.h"
#include "import/hlo_proto.h"

namespace heddle::exports {
namespace {

using ::testing::HasSubstr;

Result<import::HloFile> read(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return import::read_hlo_proto(*owner, owner);
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string damage(std::string bytes) {
    // Often one change: two mostly break the lengths of messages.
    for (size_t n = below(2) == 0 ? 1 : 1 + below(4); n > 0 && !bytes.empty(); --n) once(bytes);
    return bytes;
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }

  void once(std::string& bytes) {
    const size_t at = below(bytes.size());
    const size_t length = std::min(bytes.size() - at, 1 + below(16));
    constexpr unsigned char kTelling[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes[at] = static_cast<char>(kTelling[below(std::size(kTelling))]);
        break;
      case 3:  // enclosing lengths stay: later bytes shift
        bytes.erase(at, length);
        break;
      case 4: {  // the same, but as long as before
        const std::string other = bytes.substr(below(bytes.size()), length);
        bytes.replace(at, other.size(), other);
        break;
      }
      case 5:  // a large number where a small one was
        bytes.replace(at, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
        break;
      default:
        bytes.resize(at);
    }
  }

  std::mt19937_64 random_;
};

TEST(HloProtoFuzz, DamagedFilesReturn) {
  std::vector<std::string> seeds;
  for (const char* name :
       {"ops_control.hlo", "ops_data.hlo", "ops_elementwise.hlo", "literals.hlo", "syntax.hlo"}) {
    const std::string path = std::string(HEDDLE_SOURCE_DIR "/src/hlo/testdata/") + name;
    auto modules = hlo::parse_modules(hlo::read_file(path));
    ASSERT_TRUE(modules) << path;
    for (const auto& module : *modules) {
      std::vector<std::string> notes;
      if (Result<std::string> made = to_hlo_proto(*module, &notes)) seeds.push_back(*made);
    }
  }
  ASSERT_GT(seeds.size(), 5u);
  int64_t whole = 0, valid = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const std::string bytes = Mutator(i).damage(seeds[i % seeds.size()]);
    const auto begin = std::chrono::steady_clock::now();
    Result<import::HloFile> file = read(bytes);
    if (file) {
      ++whole;
      // Whatever was read is checked and printed without harm.
      const Status verified = hlo::verify(*file->module);
      valid += verified ? 1 : 0;
      EXPECT_FALSE(hlo::to_string(*file->module).empty());
      const auto owner = std::make_shared<const std::string>(bytes);
      import::Options options;
      options.random_constants = true;
      if (const auto imported = import::import_hlo_proto(*owner, owner, options); !imported) {
        EXPECT_EQ(imported.error().message.find('\n'), std::string::npos);
      }
    } else {
      EXPECT_FALSE(file.error().message.empty());
      EXPECT_EQ(file.error().message.find('\n'), std::string::npos) << file.error().message;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(taken.count(), 20) << "variant " << i;
  }
  EXPECT_GT(whole, 100);
  EXPECT_GT(valid, 50);
  EXPECT_LT(whole, 1900);
}

// Fields appended to a message override earlier ones.
std::string field(int number, int64_t value) {
  std::string out;
  ProtoWriter(&out).put_number(number, value);
  return out;
}

std::string module_of(const std::string& instructions, int64_t root, const std::string& more = "") {
  std::string out;
  ProtoWriter writer(&out);
  writer.put_bytes(1, "m");
  writer.put_message(3, [&](ProtoWriter& computation) {
    computation.put_bytes(1, "e");
    computation.put_raw(instructions);
    computation.put_number(6, root);
  });
  return out + more;
}

// `shape`: fields of ShapeProto; `more`: of the instruction.
std::string instruction(const std::string& opcode, const std::string& shape,
                        const std::string& more = "") {
  std::string out;
  ProtoWriter(&out).put_message(2, [&](ProtoWriter& m) {
    m.put_bytes(1, opcode);
    m.put_bytes(2, opcode);
    m.put_bytes(3, shape);
    m.put_raw(more);
  });
  return out;
}

std::string array(int64_t type, std::initializer_list<int64_t> dims) {
  std::string out;
  ProtoWriter writer(&out);
  writer.put_number(2, type);
  writer.put_packed(3, dims);
  return out;
}

std::string error_of(const std::string& bytes) {
  const Result<import::HloFile> file = read(bytes);
  EXPECT_FALSE(file);
  return file ? "" : file.error().message;
}

// A snapshot whose module is there twice; the last one counts.
TEST(HloProtoFuzz, ASecondModuleMayBeNone) {
  const std::string module = module_of(instruction("parameter", array(11, {2})), 0);
  std::string bytes;
  ProtoWriter writer(&bytes);
  writer.put_message(1, [&](ProtoWriter& wrapped) { wrapped.put_bytes(1, module); });
  ASSERT_TRUE(read(bytes));
  writer.put_bytes(1, "");
  EXPECT_THAT(error_of(bytes), HasSubstr("no module"));
}

TEST(HloProtoFuzz, AbsurdNumbersAreErrors) {
  const int64_t f32 = 11;
  const std::string scalar = array(f32, {});
  ASSERT_TRUE(read(module_of(instruction("parameter", array(f32, {2})), 0)));
  EXPECT_THAT(error_of(module_of(instruction("parameter", array(f32, {-5})), 0)),
              HasSubstr("dimension -5 is negative"));
  EXPECT_THAT(
      error_of(module_of(instruction("parameter", array(f32, {int64_t{1} << 40, 1 << 20})), 0)),
      HasSubstr("2^46 bytes"));
  EXPECT_THAT(error_of(module_of(instruction("constant", array(f32, {1 << 29})), 0)),
              HasSubstr("constants without values"));
  EXPECT_THAT(error_of(module_of(instruction("parameter", array(99, {})), 0)),
              HasSubstr("unknown element type 99"));
  EXPECT_THAT(error_of(module_of(instruction("parameter", scalar, field(9, INT64_MAX)), 0)),
              HasSubstr("parameter 0 is missing"));
  EXPECT_THAT(error_of(module_of(instruction("negate", scalar, field(36, 7)), 0)),
              HasSubstr("operand 7 does not stand before its use"));
  EXPECT_THAT(error_of(module_of(instruction("negate", scalar, field(36, 0)), 0)),
              HasSubstr("operand 0 does not stand before its use"));
  EXPECT_THAT(error_of(module_of(instruction("parameter", scalar), 5)),
              HasSubstr("no instruction of id 5"));
  EXPECT_THAT(error_of(module_of(instruction("parameter", scalar), 0, field(6, 3))),
              HasSubstr("no computation of id 3"));
  // A computation that calls itself.
  EXPECT_THAT(error_of(module_of(instruction("call", scalar, field(38, 0)), 0)),
              HasSubstr("computation 0 does not stand before its use"));
  EXPECT_THAT(
      error_of(module_of(instruction("parameter", scalar) + instruction("parameter", scalar), 0)),
      HasSubstr("a second instruction of id 0"));
  EXPECT_THAT(
      error_of(module_of(instruction("frobnicate", scalar) + instruction("parameter", scalar), 0)),
      HasSubstr("not an HLO proto"));
  std::string deep = scalar;
  for (int i = 0; i < 5000; ++i) {
    std::string outer;
    ProtoWriter writer(&outer);
    writer.put_number(2, 13);
    writer.put_bytes(4, deep);
    deep = outer;
  }
  EXPECT_THAT(error_of(module_of(instruction("parameter", deep), 0)),
              HasSubstr("nested more than"));
}

}  // namespace
}  // namespace heddle::exports
