#include "program/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <random>

#include "base/hash.h"
#include "program/encode.h"
#include "program/file.h"
#include "program/text.h"
#include "program/verify.h"

namespace heddle::program {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

Shape vector_shape(int64_t n) { return Shape::array(Type::f32, {n}); }

Literal numbers(int64_t n, float first) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[i] = first + static_cast<float>(i);
  return Literal::from<float>(vector_shape(n), values);
}

constexpr int64_t kN = 32;  // 128 bytes

BufferId add_buffer(Program& p, Buffer buffer, Literal value = {}) {
  p.buffers.push_back(std::move(buffer));
  p.constants.push_back(std::move(value));
  return BufferId(p.buffers.size() - 1);
}

View whole(const Program& p, BufferId id) {
  return {id, 0, vector_shape(p.buffers[id.index()].bytes / 4)};
}

// once: packed = pack(weight)
// run:  t0 = add(x, packed); t1 = scale(t0); y = add(t1, bias); second output: x itself
struct Example {
  Program p;
  BufferId x, y, weight, bias, packed, t0, t1;

  Example() {
    p.name = "example";
    p.target = R"({"name": "avx2", "features": ["avx2", "fma"]})";
    p.build_id = "build-17";
    p.options = "level=O2";
    p.notes = {"online_softmax"};
    p.object = {1, 2, 3, 4, 5};
    p.kernels = {{"pack", {}, {{"pack_p0", 4, false}}, 0, 10, 20, {}, "s", "t"},
                 {"add", {}, {{"add_p0", 2, false}, {"add_p1", 1, true}}, 256, 1, 2, {}, "", ""},
                 {"scale", {}, {{"scale_p0", 1, true}}, 0, 1, 2, {}, "", ""}};
    x = add_buffer(p, {"x", BufferKind::input, 128, 0, 0});
    y = add_buffer(p, {"y", BufferKind::output, 128, 0, 0});
    weight = add_buffer(p, {"weight", BufferKind::constant, 128, 0}, numbers(kN, 1));
    bias = add_buffer(p, {"bias", BufferKind::constant, 128, 128}, numbers(kN, 100));
    packed = add_buffer(p, {"packed", BufferKind::once, 128, 0});
    t0 = add_buffer(p, {"t0", BufferKind::temporary, 128, 0, -1, {}, 1, 2});
    t1 = add_buffer(p, {"t1", BufferKind::temporary, 128, 128, -1, {}, 2, 3});
    p.once_bytes = 128;
    p.memory = {256, 256, 256};
    p.inputs = {{"x", "arg0", vector_shape(kN), x, {}}};
    p.outputs = {{"y", "", vector_shape(kN), y, {}}, {"x2", "", vector_shape(kN), {}, whole(p, x)}};
    p.once = {Launch{KernelId(0), {whole(p, weight), whole(p, packed)}, {}, 1, 1}};
    p.once_info = {{"pack.1", "transpose"}};
    p.commands = {launch(1, {x, packed, t0}, 2), launch(2, {t0, t1}, 1),
                  launch(1, {t1, bias, y}, 2)};
    p.command_info = {{"add.1", "add"}, {"scale.1", "multiply"}, {"add.2", "add"}};
  }
  Launch launch(size_t kernel, const std::vector<BufferId>& buffers, int64_t inputs) {
    Launch result{KernelId(kernel), {}, {}, inputs, 1};
    for (BufferId b : buffers) result.arguments.push_back(whole(p, b));
    return result;
  }
  Launch& command(size_t i) { return std::get<Launch>(p.commands[i]); }
};

TEST(verify, AcceptsTheExample) {
  Example e;
  Status status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message;
}

// Each fault breaks one rule; the message must name it.
TEST(verify, NamesEveryFault) {
  struct Fault {
    const char* message;
    std::function<void(Example&)> damage;
  };
  const std::vector<Fault> faults = {
      {"a view of no buffer", [](Example& e) { e.command(0).arguments[0].buffer = BufferId(99); }},
      {"which has 128", [](Example& e) { e.command(0).arguments[0].shape = vector_shape(33); }},
      {"which has 128", [](Example& e) { e.command(0).arguments[0].offset_bytes = 64; }},
      {"which has 128", [](Example& e) { e.command(0).arguments[0].offset_bytes = -64; }},
      {"where it was not written", [](Example& e) { std::swap(e.p.commands[0], e.p.commands[1]); }},
      {"reads t0 where it was not written or is overwritten",  // by t1, while t0 is live
       [](Example& e) {
         e.p.buffers[e.t1.index()].offset_bytes = 0;
         e.p.commands[1] = e.launch(2, {e.x, e.t1}, 1);
         e.p.commands[2] = e.launch(1, {e.t0, e.bias, e.y}, 2);
       }},
      {"t1 and t0 overlap", [](Example& e) { e.p.buffers[e.t1.index()].offset_bytes = 64; }},
      {"t1 and t0 overlap", [](Example& e) { e.p.buffers[e.t1.index()].offset_bytes = 0; }},
      {"lives in", [](Example& e) { e.p.buffers[e.t1.index()].last_command = 1; }},
      {"arena of 192",
       [](Example& e) { e.p.memory.plan_bytes = e.p.memory.lower_bound_bytes = 192; }},
      {"memory numbers", [](Example& e) { e.p.memory.lower_bound_bytes = 257; }},
      {"writes x", [](Example& e) { e.p.commands[1] = e.launch(2, {e.t0, e.x}, 1); }},
      {"writes bias", [](Example& e) { e.p.commands[1] = e.launch(2, {e.t0, e.bias}, 1); }},
      {"writes packed", [](Example& e) { e.p.commands[1] = e.launch(2, {e.t0, e.packed}, 1); }},
      {"reads packed where it was not written",
       [](Example& e) {
         e.p.once.clear();
         e.p.once_info.clear();
       }},
      {"the once section reads x",
       [](Example& e) { std::get<Launch>(e.p.once[0]).arguments[0] = whole(e.p, e.x); }},
      {"of a block of 64", [](Example& e) { e.p.once_bytes = 64; }},
      {"weight and bias overlap",
       [](Example& e) { e.p.buffers[e.bias.index()].offset_bytes = 64; }},
      {"its constant has 64", [](Example& e) { e.p.constants[e.bias.index()] = numbers(16, 0); }},
      {"not a multiple of 64", [](Example& e) { e.p.buffers[e.t1.index()].offset_bytes = 132; }},
      {"no kernel", [](Example& e) { e.command(0).kernel = KernelId(7); }},
      {"has no phase", [](Example& e) { e.p.kernels[1].phases.clear(); }},
      {"bytes of scratch", [](Example& e) { e.p.kernels[1].scratch_bytes = -1; }},
      {"phase ''", [](Example& e) { e.p.kernels[1].phases[0].symbol.clear(); }},
      {"differ from those of another launch of add",
       [](Example& e) { e.command(2).arguments[1].shape = vector_shape(16); }},
      {"inputs and 1 outputs of 3", [](Example& e) { e.command(0).inputs = 3; }},
      {"commands with 2 names", [](Example& e) { e.p.command_info.pop_back(); }},
      {"output y: reads y",
       [](Example& e) {
         e.p.commands.pop_back();
         e.p.command_info.pop_back();
       }},
      {"its source is a temporary", [](Example& e) { e.p.outputs[1].source = whole(e.p, e.t0); }},
      {"its source has 64", [](Example& e) { e.p.outputs[1].source.shape = vector_shape(16); }},
      {"copies 128 bytes to 64",
       [](Example& e) { e.p.commands[1] = Copy{whole(e.p, e.t0), {e.t1, 0, vector_shape(16)}}; }},
      {"host call of no function",
       [](Example& e) { e.p.commands[1] = HostCall{"", "", {whole(e.p, e.t0)}, {}}; }},
      {"only an output may alias", [](Example& e) { e.p.buffers[e.t0.index()].alias = e.x; }},
      {"where it was not written or is overwritten",  // x2 reads x, which y overwrote
       [](Example& e) { e.p.buffers[e.y.index()].alias = e.x; }},
      {"port x has no buffer", [](Example& e) { e.p.inputs[0].buffer = {}; }},
      {"is not its own", [](Example& e) { e.p.buffers[e.x.index()].number = 1; }},
      {"constants for", [](Example& e) { e.p.constants.pop_back(); }},
  };
  for (const Fault& fault : faults) {
    Example e;
    fault.damage(e);
    Status status = verify(e.p);
    ASSERT_FALSE(status) << fault.message;
    const std::string& message = status.error().message;
    EXPECT_NE(message.find(fault.message), std::string::npos)
        << message << "\n wanted " << fault.message;
  }
}

TEST(verify, InPlaceIsAllowedWhereItIsDeclared) {
  Example e;
  e.p.buffers[e.t1.index()].offset_bytes = 0;  // t1 on t0
  EXPECT_FALSE(verify(e.p));
  e.command(1).in_place = {0};
  Status status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message;
  e.p.commands[2] = e.launch(1, {e.t0, e.bias, e.y}, 2);  // the overwritten value
  status = verify(e.p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("reads t0 where it was not written or is overwritten"),
            std::string::npos);
  // Only its declared operand may be overwritten.
  Example twice;
  twice.p.kernels.push_back({"twice", {}, {{"twice_p0", 1, true}}});
  twice.p.commands[1] = twice.launch(3, {twice.t0, twice.t0, twice.t1}, 2);
  twice.command(1).in_place = {0};
  EXPECT_TRUE(verify(twice.p));
  twice.p.buffers[twice.t1.index()].offset_bytes = 0;
  EXPECT_FALSE(verify(twice.p));
}

TEST(verify, WhatIsWrittenInPartLiesOnItsInput) {
  Example e;
  e.command(1).in_place = {0};
  e.command(1).in_part = {1};
  Status status = verify(e.p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("are not one memory"), std::string::npos);
  e.p.buffers[e.t1.index()].offset_bytes = 0;  // t1 on t0
  status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message;
  e.command(1).in_place = {};
  status = verify(e.p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("lies on no input"), std::string::npos);
}

TEST(verify, AnOutputsMemoryMayHoldEarlierValues) {
  Example e;
  Buffer& t1 = e.p.buffers[e.t1.index()];
  t1.kind = BufferKind::output;
  t1.number = 0;
  t1.offset_bytes = 0;
  EXPECT_FALSE(verify(e.p));  // add overwrites its operand
  e.command(2).in_place = {0};
  Status status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message;
}

TEST(verify, AnInputIsTheMemoryOfOneOutputOnly) {
  Example e;
  e.p.outputs[1] = {"z", "", vector_shape(kN), {}, {}};
  e.p.outputs[1].buffer = add_buffer(e.p, {"z", BufferKind::output, 128, 0, 1});
  e.p.buffers[e.y.index()].alias = e.x;
  e.p.buffers[e.p.outputs[1].buffer.index()].alias = e.x;
  e.p.commands.clear();
  e.p.command_info.clear();
  const Status status = verify(e.p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("both alias x"), std::string::npos)
      << status.error().message;
}

TEST(verify, AliasedOutputMayStayUnwritten) {
  Example e;
  e.p.outputs.resize(1);
  e.p.buffers[e.y.index()].alias = e.x;
  e.p.commands.clear();
  e.p.command_info.clear();
  Status status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message;
}

// The example with a second output that is the next run's input.
Example with_state() {
  Example e;
  const BufferId in = add_buffer(e.p, {"in", BufferKind::input, 8, 0, 1});
  const BufferId out = add_buffer(e.p, {"out", BufferKind::output, 8, 0, 2, in});
  e.p.inputs.push_back({"in", "", vector_shape(2), in, {}});
  e.p.outputs.push_back({"out", "", vector_shape(2), out, {}});
  e.p.states = {{{1, 2, 3, 4, 5, 6, 7, 255}}};
  return e;
}

TEST(states, AreHiddenPortsWithStartValues) {
  const Example e = with_state();
  const Status status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(shown_inputs(e.p), 1u);
  EXPECT_EQ(shown_outputs(e.p), 2u);
  EXPECT_NE(to_string(e.p).find("state input in, output out: 01 02 03 04 05 06 07 ff\n"),
            std::string::npos);
  const auto decoded = decode(encode(e.p));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->program.states, e.p.states);
  EXPECT_NE(encode(e.p), encode([] {
              Example other = with_state();
              other.p.states[0].start[0] = 9;
              return other.p;
            }()));
}

TEST(states, ThatDoNotFitAreFaults) {
  const std::pair<const char*, std::function<void(Program&)>> faults[] = {
      {"state 0 of 7 bytes is f32[2]", [](Program& p) { p.states[0].start.pop_back(); }},
      {"3 states, 2 inputs", [](Program& p) { p.states.resize(3); }},
      {"state 0 of 0 bytes is f32[32] before a run and f32[32] after it",
       [](Program& p) { p.states.insert(p.states.begin(), StateArray{}); }},
      {"after it", [](Program& p) { p.outputs.back().shape = Shape::array(Type::s32, {2}); }},
      {"the check of n does not fit",
       [](Program& p) { p.index_checks = {{"n", {{0, 1}}, 1, {}, {}}}; }}};
  for (const auto& [message, damage] : faults) {
    Example e = with_state();
    damage(e.p);
    const Status status = verify(e.p);
    ASSERT_FALSE(status) << message;
    EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
  }
}

TEST(text, ShowsEverything) {
  Example e;
  const std::string text = to_string(e.p);
  for (const char* part :
       {"program example", "option", "note online_softmax", "input x (arg0): f32[32] = b0",
        "output x2: f32[32] from b0:f32[32]", "pack_p0[4]", "add_p1[1] serial",
        "b5 temporary t0 128 bytes at 0 live [1, 2]",
        "0 launch add(b0:f32[32], b4:f32[32]) -> (b5:f32[32])  // add.1: add"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(stored_bytes, FollowsPaddingAndBounds) {
  EXPECT_EQ(stored_bytes(Shape::array(Type::f32, {3, 5})), 60);
  EXPECT_EQ(stored_bytes(Shape::make_token()), 0);
  Shape tiled = Shape::array(Type::f32, {3, 5});
  tensor::Layout layout = tensor::Layout::row_major(2);
  layout.tiles = {{{2, 4}}};
  tiled.set_layout(layout);
  EXPECT_EQ(stored_bytes(tiled), 4 * 8 * 4);
  Shape unbounded = Shape::array(Type::f32, {3, 5});
  tensor::Dim dim;
  dim.size = tensor::Dim::kUnbounded;
  dim.dynamic = true;
  unbounded.set_dim(0, dim);
  EXPECT_EQ(stored_bytes(unbounded), INT64_MAX);
}

TEST(fold_once, DropsWhatOnlyTheOnceSectionUsed) {
  Example e;
  std::vector<Literal> values(e.p.buffers.size());
  values[e.packed.index()] = numbers(kN, 7);
  const Program folded = fold_once(e.p, values);
  Status status = verify(folded);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_TRUE(folded.once.empty());
  EXPECT_EQ(folded.buffers.size(), e.p.buffers.size() - 1);  // the weight is gone
  for (const Buffer& b : folded.buffers) EXPECT_NE(b.name, "weight");
  const auto& arguments = std::get<Launch>(folded.commands[0]).arguments;
  EXPECT_EQ(folded.buffers[arguments[1].buffer.index()].name, "packed");
  EXPECT_EQ(folded.constants[arguments[1].buffer.index()], numbers(kN, 7));
}

// Equality of programs, through the encoder and the bytes of the constants.
void expect_equal(const Program& a, const Program& b) {
  EXPECT_EQ(encode(a), encode(b));
  EXPECT_EQ(a.object, b.object);
  EXPECT_EQ(a.constants, b.constants);
}

std::string temp_path(const char* name) {
  return testing::TempDir() + "/heddle_program_" + std::to_string(getpid()) + "_" + name;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<int64_t>(bytes.size()));
}

TEST(file, SavesAndLoads) {
  Example e;
  Shape odd = Shape::array(Type::f32, {4, 8});
  tensor::Layout layout = tensor::Layout::row_major(2);
  std::swap(layout.minor_to_major[0], layout.minor_to_major[1]);
  odd.set_layout(layout);
  e.p.inputs[0].shape = odd;
  const std::string path = temp_path("save");
  Status saved = save(e.p, path);
  ASSERT_TRUE(saved) << saved.error().message;
  Result<Program> loaded = load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  expect_equal(e.p, *loaded);
  const void* data = loaded->constants[e.bias.index()].data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kAlignmentBytes, 0u);

  Result<FileHeader> header = read_header(path);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->name, "example");
  EXPECT_EQ(header->target_name, "avx2");
  EXPECT_EQ(header->features, "avx2,fma");
  EXPECT_EQ(header->build_id, "build-17");
  EXPECT_EQ(header->constant_bytes, 256);
  EXPECT_EQ(header->object_bytes, 5);
  EXPECT_EQ(header->file_bytes, static_cast<int64_t>(read_file(path).size()));

  // Same program, same bytes; and the mapped program outlives the file.
  const std::string again = temp_path("again");
  ASSERT_TRUE(save(*loaded, again));
  EXPECT_EQ(read_file(path), read_file(again));
  unlink(path.c_str());
  expect_equal(e.p, *loaded);
  unlink(again.c_str());
}

TEST(file, ConstantsBeyondAChunk) {
  Example e;
  const int64_t n = 700'001;
  e.p.buffers[e.bias.index()].bytes = n * 4;
  e.p.constants[e.bias.index()] = numbers(n, 3);
  e.p.buffers[e.y.index()].bytes = n * 4;
  e.p.outputs[0].shape = vector_shape(n);
  e.p.commands[2] = Copy{whole(e.p, e.bias), whole(e.p, e.y)};
  const std::string path = temp_path("chunk");
  ASSERT_TRUE(save(e.p, path));
  Result<Program> loaded = load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->constants[e.bias.index()], numbers(n, 3));
  unlink(path.c_str());
}

TEST(file, SavingIsAtomicAndReportsWhere) {
  Example e;
  Status status = save(e.p, "/nowhere/at/all.heddle");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::machine);
  EXPECT_NE(status.error().message.find("/nowhere/at/all.heddle"), std::string::npos);
  Result<Program> missing = load("/nowhere/at/all.heddle");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::user);
  Result<Program> directory = load("/tmp");
  EXPECT_FALSE(directory);
}

TEST(file, NewerVersionSaysSo) {
  Example e;
  const std::string path = temp_path("newer");
  ASSERT_TRUE(save(e.p, path));
  std::string bytes = read_file(path);
  bytes[8] = kFileVersion + 1;
  write_file(path, bytes);
  Result<Program> loaded = load(path);
  ASSERT_FALSE(loaded);  // the checksum covers the version
  EXPECT_NE(loaded.error().message.find("damaged"), std::string::npos);
  const std::string_view all = bytes;  // the header block is one page
  const uint64_t hash = hash64(all.substr(32, 4096 - 32), hash64(all.substr(0, 24)));
  std::memcpy(bytes.data() + 24, &hash, sizeof(hash));
  write_file(path, bytes);
  loaded = load(path);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("format version " + std::to_string(kFileVersion + 1)),
            std::string::npos);
  unlink(path.c_str());
}

TEST(file, EveryDamageIsAUserError) {
  Example e;
  const std::string path = temp_path("damage");
  ASSERT_TRUE(save(e.p, path));
  const std::string good = read_file(path);
  std::mt19937_64 random(42);
  for (int round = 0; round < 1000; ++round) {
    std::string bad = good;
    if (round % 4 == 3) {
      bad.resize(random() % good.size());
    } else {
      // Half of the flips in the header and the first bytes of sections, where things are.
      size_t at = random() % good.size();
      if (round % 2 == 0) at = at / 4096 * 4096 + random() % 128;
      bad[at] = static_cast<char>(bad[at] ^ (1 + random() % 255));
    }
    write_file(path, bad);
    Result<Program> loaded = load(path);
    ASSERT_FALSE(loaded) << "round " << round;
    EXPECT_EQ(loaded.error().kind, ErrorKind::user);
    EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos);
    (void)read_header(path);  // must not crash; it does not read the sections
  }
  write_file(path, good + std::string(4096, '\0'));
  EXPECT_FALSE(load(path));
  write_file(path, good);
  EXPECT_TRUE(load(path));
  unlink(path.c_str());
}

// The decoder alone, without the checksum.
TEST(encode, AnyBytesDecodeOrFail) {
  Example e;
  const std::vector<uint8_t> good = encode(e.p);
  ASSERT_TRUE(decode(good));
  std::mt19937_64 random(7);
  int decoded = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> bad = good;
    if (round % 5 == 0) bad.resize(random() % good.size());
    for (int flips = 0; flips <= round % 3 && !bad.empty(); ++flips)
      bad[random() % bad.size()] = static_cast<uint8_t>(random());
    Result<Decoded> result = decode(bad);
    if (!result) continue;
    ++decoded;
    // A decoded program may still be invalid: the verifier must not crash on it, with any
    // constants.
    for (size_t i = 0; i < result->program.buffers.size(); ++i) {
      const Shape& shape = result->constant_shapes[i];
      if (result->program.buffers[i].kind == BufferKind::constant && shape.is_array() &&
          shape.is_static() && shape.bytes() < 4096)
        result->program.constants[i] = Literal(shape);
    }
    (void)verify(result->program);
    (void)to_string(result->program);
  }
  EXPECT_GT(decoded, 100);
  EXPECT_LT(decoded, 2900);
}

}  // namespace
}  // namespace heddle::program
