// Loops, branches and updates in a program: messages of the verifier, text, file, fold_once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "program/encode.h"
#include "program/file.h"
#include "program/text.h"
#include "program/verify.h"
#include "program/views.h"

namespace heddle::program {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

Shape vector_shape(int64_t n) { return Shape::array(Type::f32, {n}); }

// once: table = make(seed)
// run:  count0 = 0; array0 = x; loop while count < limit:
//         box = half(array); array = array with box at count; other = mix(array, table) (swapped);
//         count = next(count)
//       y = branch on which: array, twice(array)
struct Example {
  Program p;
  BufferId x, which, y, zero, seed, table, count0, count, count1, again, array0, array, array1, box,
      mixed0, mixed, mixed1, twice;

  BufferId add(const char* name, BufferKind kind, int64_t bytes, int64_t at, int64_t first = 0,
               int64_t last = 0) {
    Buffer b{name, kind, bytes, at, -1, {}, first, last};
    if (kind == BufferKind::temporary) end = std::max(end, at + bytes);
    p.buffers.push_back(b);
    p.constants.emplace_back();
    return BufferId(p.buffers.size() - 1);
  }
  View view(BufferId id) const {
    const int64_t bytes = p.buffers[id.index()].bytes;
    if (bytes == 1) return {id, 0, Shape::scalar(Type::pred)};
    return {id, 0, bytes == 4 ? Shape::scalar(Type::s32) : vector_shape(bytes / 4)};
  }
  Command launch(size_t kernel, std::vector<BufferId> inputs, BufferId output, int64_t in_place) {
    Launch made{KernelId(kernel), {}, {}, std::ssize(inputs), 1, {in_place}};
    for (BufferId id : inputs) made.arguments.push_back(view(id));
    made.arguments.push_back(view(output));
    return made;
  }
  static std::vector<CommandInfo> names(size_t count, const char* name) {
    return std::vector<CommandInfo>(count, {name, name});
  }

  Example() {
    p.name = "example";
    for (const char* kernel : {"make", "less", "half", "mix", "next", "twice"})
      p.kernels.push_back({kernel, {}, {{std::string(kernel) + "_p0", 1, true}}});
    x = add("x", BufferKind::input, 128, 0);
    which = add("which", BufferKind::input, 1, 0);
    y = add("y", BufferKind::output, 128, 0);
    p.inputs = {{"x", "", vector_shape(32), x, {}},
                {"which", "", Shape::scalar(Type::pred), which, {}}};
    p.outputs = {{"y", "", vector_shape(32), y, {}}};
    p.buffers[x.index()].number = 0;
    p.buffers[which.index()].number = 1;
    p.buffers[y.index()].number = 0;
    zero = add("zero", BufferKind::constant, 4, 0);
    p.constants[zero.index()] = Literal(Shape::scalar(Type::s32));
    seed = add("seed", BufferKind::constant, 128, 64);
    p.constants[seed.index()] = Literal(vector_shape(32));
    table = add("table", BufferKind::once, 128, 0);
    p.once_bytes = 128;
    count0 = add("count0", BufferKind::temporary, 4, 0, 1, 4);
    count = add("count", BufferKind::temporary, 4, 0, 4, 9);
    count1 = add("count1", BufferKind::temporary, 4, 0, 9, 9);
    again = add("again", BufferKind::temporary, 1, 64, 5, 5);
    array0 = add("array0", BufferKind::temporary, 128, 128, 2, 4);
    array = add("array", BufferKind::temporary, 128, 128, 4, 12);
    array1 = add("array1", BufferKind::temporary, 128, 128, 7, 9);
    box = add("box", BufferKind::temporary, 64, 256, 6, 7);
    mixed0 = add("mixed0", BufferKind::temporary, 128, 384, 3, 4);
    mixed = add("mixed", BufferKind::temporary, 128, 384, 4, 12);
    mixed1 = add("mixed1", BufferKind::temporary, 128, 512, 4, 9);
    p.memory = {0, end, end};
    p.once = {launch(0, {seed}, table, -1)};
    p.once_info = names(1, "make");
    const View half{box, 0, vector_shape(16)};
    Launch first{KernelId(2), {view(array), half}, {}, 1, 1, {-1}};
    p.regions.resize(4);
    p.regions[0].commands = {launch(1, {count}, again, -1)};
    p.regions[1].commands = {first, Update{view(array), half, view(array1), {view(count)}},
                             launch(3, {array1, table, mixed}, mixed1, -1),
                             launch(4, {count}, count1, 0)};
    p.regions[2].commands = {Copy{view(mixed), view(y)}};
    p.regions[3].commands = {launch(5, {mixed}, y, -1)};
    for (Region& region : p.regions) region.info = names(region.commands.size(), "inner");
    Loop loop{RegionId(0), RegionId(1), view(again), {}};
    loop.carried = {{view(count0), view(count), view(count1)},
                    {view(array0), view(array), view(array1)},
                    {view(mixed0), view(mixed), view(mixed1), /*swapped=*/true}};
    p.commands = {Copy{view(zero), view(count0)}, Copy{view(x), view(array0)},
                  Copy{view(x), view(mixed0)}, loop,
                  Branch{view(which), {RegionId(2), RegionId(3)}}};
    p.command_info = names(5, "outer");
  }
  Loop& loop() { return std::get<Loop>(p.commands[3]); }
  Branch& branch() { return std::get<Branch>(p.commands[4]); }
  template <typename T>
  T& inner(size_t region, size_t i) {
    return std::get<T>(p.regions[region].commands[i]);
  }
  int64_t end = 0;
};

TEST(control, TheExampleIsFine) {
  const Example e;
  const Status status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message << "\n" << to_string(e.p);
  EXPECT_EQ(command_count(e.p, e.p.commands), 12);
}

TEST(control, NamesEveryFault) {
  struct Fault {
    const char* message;
    std::function<void(Example&)> damage;
  };
  const std::vector<Fault> faults = {
      {"no region 9", [](Example& e) { e.loop().body = RegionId(9); }},
      {"belongs to two commands", [](Example& e) { e.loop().body = RegionId(2); }},
      {"belongs to no command", [](Example& e) { e.p.regions.emplace_back(); }},
      {"is not pred", [](Example& e) { e.loop().predicate = e.view(e.count); }},
      {"reads again where it was not written",
       [](Example& e) {
         e.p.regions[0].commands.clear();
         e.p.regions[0].info.clear();
       }},
      {"are not one memory", [](Example& e) { e.loop().carried[0].init = e.view(e.array0); }},
      {"are not one memory", [](Example& e) { e.loop().carried[2].swapped = false; }},
      {"reads count1 where it was not written",
       [](Example& e) {
         e.p.regions[1].commands.pop_back();
         e.p.regions[1].info.pop_back();
       }},
      // The old state after the next one has taken its memory.
      {"reads array where",
       [](Example& e) { e.inner<Launch>(1, 2).arguments[0].buffer = e.array; }},
      // A value from outside that exists in the first trip, but not in the second.
      {"reads x_copy where",
       [](Example& e) {
         const BufferId copy = e.add("x_copy", BufferKind::temporary, 128, 640, 0, 13);
         const BufferId late = e.add("late", BufferKind::temporary, 128, 640, 0, 13);
         e.p.memory = {0, e.end, e.end};
         std::get<Copy>(e.p.commands[2]).to = e.view(copy);
         e.loop().carried.pop_back();
         e.branch().regions = {RegionId(2), RegionId(3)};
         e.inner<Copy>(2, 0).from = e.inner<Launch>(3, 0).arguments[0] = e.view(e.array);
         e.p.regions[1].commands[2] = e.launch(3, {copy, e.table}, e.mixed1, -1);
         e.p.regions[1].commands.push_back(e.launch(3, {e.mixed1, e.table}, late, -1));
         e.p.regions[1].info = Example::names(5, "inner");
         for (BufferId id : {e.array, e.mixed1}) e.p.buffers[id.index()].last_command = 13;
       }},
      {"lies where mixed is swapped",
       [](Example& e) { e.p.buffers[e.box.index()].offset_bytes = 576; }},
      {"swapped by two loops", [](Example& e) { e.loop().carried[1] = e.loop().carried[2]; }},
      {"cannot put", [](Example& e) { e.inner<Update>(1, 1).starts.clear(); }},
      {"cannot put", [](Example& e) { e.inner<Update>(1, 1).starts[0] = e.view(e.again); }},
      {"cannot put",
       [](Example& e) {
         e.inner<Update>(1, 1).update = e.view(e.table);
         e.inner<Update>(1, 1).operand.shape = vector_shape(16);
         e.inner<Update>(1, 1).result.shape = vector_shape(16);
       }},
      {"do not make f32[32]",
       [](Example& e) {
         e.p.commands[2] = Concatenate{{e.view(e.x), e.view(e.x)}, e.view(e.mixed0), 0};
       }},
      {"do not make f32[32]",
       [](Example& e) { e.p.commands[2] = Concatenate{{e.view(e.x)}, e.view(e.mixed0), 1}; }},
      {"are not one memory", [](Example& e) { e.inner<Update>(1, 1).result = e.view(e.mixed1); }},
      {"its selector is not a number", [](Example& e) { e.branch().selector = e.view(e.array); }},
      {"1 regions",
       [](Example& e) {
         e.branch().regions.pop_back();
         e.p.regions.pop_back();
       }},
      {"reads y where it was not written",  // in one of the two
       [](Example& e) {
         e.p.regions[3].commands.clear();
         e.p.regions[3].info.clear();
       }},
      {"sources of 2 regions",
       [](Example& e) { e.branch().joined = {{{e.view(e.mixed)}, e.view(e.mixed)}}; }},
      {"commands with 0 names", [](Example& e) { e.p.regions[1].info.clear(); }},
  };
  for (const Fault& fault : faults) {
    Example e;
    fault.damage(e);
    const Status status = verify(e.p);
    ASSERT_FALSE(status) << fault.message;
    EXPECT_NE(status.error().message.find(fault.message), std::string::npos)
        << status.error().message << "\n wanted " << fault.message;
  }
}

TEST(control, PiecesMakeAWhole) {
  Example e;
  const View first{e.x, 0, vector_shape(8)}, second{e.x, 32, vector_shape(24)};
  e.p.commands[2] = Concatenate{{second, first}, e.view(e.mixed0), 0};
  const Status status = verify(e.p);
  EXPECT_TRUE(status) << status.error().message;
  Result<Decoded> decoded = decode(encode(e.p));
  ASSERT_TRUE(decoded);
  decoded->program.constants = e.p.constants;
  EXPECT_EQ(encode(decoded->program), encode(e.p));
  EXPECT_NE(to_string(e.p).find("concatenate b0+32:f32[24], b0:f32[8] along 0 -> "),
            std::string::npos);
}

TEST(control, DepthIsBounded) {
  Program p;
  p.name = "deep";
  const int64_t depth = 3 * Program::kMaxNesting;
  p.regions.resize(static_cast<size_t>(depth));
  auto branch = [](size_t region) { return Branch{{}, {RegionId(region)}, {}}; };
  p.commands = {branch(0)};
  for (size_t i = 0; i + 1 < p.regions.size(); ++i) p.regions[i].commands = {branch(i + 1)};
  const Status status = verify(p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("nested more than"), std::string::npos);
  p.regions.resize(1);
  p.regions[0].commands = {branch(0)};  // itself
  EXPECT_FALSE(verify(p));
}

TEST(control, TextShowsRegions) {
  const Example e;
  const std::string text = to_string(e.p);
  for (const char* part :
       {"  3 loop while b9:pred[], b7:s32[] from b6:s32[] then b8:s32[]", "swap b16:f32[32]",
        "    condition:\n      4 launch less", "    body:\n      5 launch half",
        "6 update b11:f32[32] with b13:f32[16] at (b7:s32[]) -> b12:f32[32]",
        "  9 branch on b1:pred[]", "    branch 1:\n      11 launch twice"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(control, SavesAndFoldsRegions) {
  const Example e;
  const std::string path =
      testing::TempDir() + "/heddle_control_" + std::to_string(getpid()) + ".heddle";
  ASSERT_TRUE(save(e.p, path));
  Result<Program> loaded = load(path);
  unlink(path.c_str());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(encode(*loaded), encode(e.p));
  std::vector<Literal> values(e.p.buffers.size());
  values[e.table.index()] = Literal(vector_shape(32));
  const Program folded = fold_once(e.p, values);
  const Status status = verify(folded);
  ASSERT_TRUE(status) << status.error().message << "\n" << to_string(folded);
  EXPECT_EQ(folded.regions.size(), 4u);
  for (const Buffer& b : folded.buffers) EXPECT_NE(b.name, "seed");
}

}  // namespace
}  // namespace heddle::program
