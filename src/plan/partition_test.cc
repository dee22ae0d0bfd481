// Tests the side that nodes are on, and that the fewest values cross.
#include "plan/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "plan/fake_run.h"
#include "program/spaces.h"
#include "program/text.h"

namespace heddle::plan {
namespace {

using hlo::Instr;
using hlo::Opcode;
using program::Program;
using tensor::Shape;
using tensor::Type;

// Every fusion has a fake kernel.
Program planned(const std::string& text, bool own_memory = true,
                const target::Target& target = target::Target()) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  Kernels kernels;
  for (const auto& computation : (*module)->computations())
    for (const Instr* instr : computation->instrs())
      if (instr->is(Opcode::fusion)) kernels.emplace(instr, fake_kernel(*instr));
  Options options;
  options.own_memory = own_memory;
  auto program = plan(**module, kernels, {}, target, options);
  EXPECT_TRUE(program) << program.error().message;
  return std::move(*program);
}

int64_t count(const Program& p, size_t kind) {
  return std::count_if(p.commands.begin(), p.commands.end(),
                       [&](const program::Command& c) { return c.index() == kind; });
}

constexpr const char* kFused = R"(
big { p = f32[100] parameter(0) ROOT n = f32[100] negate(p) }
two { p = f32[100] parameter(0) q = f32[100] parameter(1) ROOT n = f32[100] add(p, q) }
small { p = s32[] parameter(0) ROOT n = s32[] add(p, p) }
)";

TEST(partition, HostNodesFeedEachOtherWithoutTheDevice) {
  const Program p = planned(std::string("HloModule m\n") + kFused + R"(
ENTRY main {
  x = f32[100] parameter(0)
  k = f32[100] fusion(x), kind=kLoop, calls=big
  a = f32[100] sine(k)
  b = f32[100] cosine(a)
  c = f32[100] add(a, b)
  ROOT r = f32[100] fusion(c), kind=kLoop, calls=big
})");
  const program::Crossings crossings = program::count_crossings(p);
  EXPECT_EQ(crossings.host_calls, 3);
  EXPECT_EQ(crossings.to_device, 2) << program::to_string(p);  // x and c
  EXPECT_EQ(crossings.to_host, 2);                             // k and the result
  EXPECT_EQ(crossings.to_device_bytes, 800);
  EXPECT_GT(p.host_memory.plan_bytes, 0);
  EXPECT_LE(p.host_memory.lower_bound_bytes, p.host_memory.plan_bytes);
}

TEST(partition, AValueOfTwoHostReadersCrossesOnce) {
  const Program p = planned(std::string("HloModule m\n") + kFused + R"(
ENTRY main {
  x = f32[100] parameter(0)
  k = f32[100] fusion(x), kind=kLoop, calls=big
  a = f32[100] sine(k)
  b = f32[100] cosine(k)
  ROOT t = (f32[100], f32[100], f32[100]) tuple(a, b, k)
})");
  const program::Crossings crossings = program::count_crossings(p);
  EXPECT_EQ(crossings.to_device, 1) << program::to_string(p);
  EXPECT_EQ(crossings.to_host, 1);  // k, which is an output, too
}

TEST(partition, ConstantsAreOnBothSides) {
  const Program p = planned(std::string("HloModule m\n") + kFused + R"(
ENTRY main {
  x = f32[100] parameter(0)
  c = f32[] constant(2)
  b = f32[100] broadcast(c), dimensions={}
  s = f32[100] sine(x)
  a = f32[100] add(s, b)
  ROOT r = f32[100] fusion(a, b), kind=kLoop, calls=two
})");
  // The broadcast is computed on the host and copied once.
  const program::Crossings crossings = program::count_crossings(p);
  EXPECT_EQ(crossings.to_device, 1) << program::to_string(p);
  EXPECT_EQ(crossings.to_host, 1);
  EXPECT_GT(p.host_once_bytes, 0);
  EXPECT_GT(p.once_bytes, 0);
}

// A counter and the predicate that depends on it stay on the host; the large state is on the
// device.
TEST(partition, CountersOfLoopsStayOnTheHost) {
  const Program p = planned(std::string("HloModule m\n") + kFused + R"(
less { p = s32[] parameter(0) c = s32[] constant(5) ROOT n = pred[] compare(p, c), direction=LT }
condition {
  t = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ROOT l = pred[] fusion(i), kind=kLoop, calls=less
}
body {
  t = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[100] get-tuple-element(t), index=1
  j = s32[] fusion(i), kind=kLoop, calls=small
  w = f32[100] fusion(v), kind=kLoop, calls=big
  ROOT r = (s32[], f32[100]) tuple(j, w)
}
ENTRY main {
  i = s32[] parameter(0)
  v = f32[100] parameter(1)
  t = (s32[], f32[100]) tuple(i, v)
  ROOT w = (s32[], f32[100]) while(t), condition=condition, body=body
})");
  const program::Crossings crossings = program::count_crossings(p);
  EXPECT_EQ(crossings.in_loops, 0) << program::to_string(p);
  EXPECT_EQ(crossings.to_device, 1);
  EXPECT_EQ(crossings.to_host, 1);
  EXPECT_EQ(crossings.host_calls, 2);
}

// The pieces a, b, c are on the host, the large k is on the device. The fewest copies bring k to
// the host and the result back; by the link's times three small copies are cheaper.
TEST(partition, TheLinkPricesWhatCrosses) {
  const std::string text = R"(HloModule m
big { p = f32[4000000] parameter(0) ROOT n = f32[4000000] negate(p) }
all { p = f32[4000030] parameter(0) ROOT n = f32[4000030] negate(p) }
ENTRY main {
  x = f32[4000000] parameter(0)
  y = f32[10] parameter(1)
  k = f32[4000000] fusion(x), kind=kLoop, calls=big
  a = f32[10] sine(y)
  b = f32[10] cosine(y)
  c = f32[10] tan(y)
  d = f32[4000030] concatenate(a, k, b, c), dimensions={0}
  ROOT r = f32[4000030] fusion(d), kind=kLoop, calls=all
})";
  const program::Crossings fewest = program::count_crossings(planned(text));
  EXPECT_EQ(fewest.to_device + fewest.to_host, 4);  // x, k, d, r
  target::Target linked;
  linked.link_bytes_per_ns = 50;
  linked.link_latency_ns = 5000;
  const program::Crossings cheapest = program::count_crossings(planned(text, true, linked));
  EXPECT_EQ(cheapest.to_device, 4);  // x, a, b, c
  EXPECT_EQ(cheapest.to_host, 1);
  EXPECT_LT(cheapest.to_device_bytes, fewest.to_device_bytes);
  linked.link_latency_ns = 1e9;  // then copies count as they did
  const program::Crossings slow = program::count_crossings(planned(text, true, linked));
  EXPECT_EQ(slow.to_device + slow.to_host, 4);
}

// Small integer operators, independent and in sequence; a device value between two others keeps
// these in separate calls.
TEST(partition, ShapeArithmeticIsPacked) {
  const Program p = planned(std::string("HloModule m\n") + kFused + R"(
ENTRY main {
  i = s32[] parameter(0)
  j = s32[] parameter(1)
  a = s32[] fusion(i), kind=kLoop, calls=small
  b = s32[] negate(j)
  c = s32[] add(a, b)
  d = s32[1] reshape(c)
  e = s32[1] negate(d)
  ROOT t = (s32[], s32[1]) tuple(c, e)
})");
  EXPECT_EQ(program::count_crossings(p).host_calls, 1) << program::to_string(p);
  EXPECT_EQ(p.commands.size(), 1u);
  const auto& call = std::get<program::HostCall>(p.commands[0]);
  EXPECT_EQ(call.arguments.size(), 2u);
  EXPECT_EQ(call.results.size(), 2u);
  const Program apart = planned(R"(HloModule m
huge { p = s32[] parameter(0) ROOT n = s32[100] broadcast(p), dimensions={} }
tiny { p = s32[100] parameter(0) ROOT n = s32[] constant(1) }
ENTRY main {
  i = s32[] parameter(0)
  a = s32[] negate(i)
  k = s32[100] fusion(a), kind=kLoop, calls=huge
  n = s32[] fusion(k), kind=kLoop, calls=tiny
  b = s32[] add(a, n)
  ROOT c = s32[] negate(b)
})");
  EXPECT_EQ(program::count_crossings(apart).host_calls, 2) << program::to_string(apart);
}

TEST(partition, SharedMemoryHasNoSpaces) {
  const Program p = planned(
      "HloModule m\nENTRY main { x = f32[100] parameter(0)\n"
      " ROOT a = f32[100] sine(x) }",
      false);
  EXPECT_FALSE(p.own_memory);
  EXPECT_EQ(count(p, 1), 0);
  for (const program::Buffer& buffer : p.buffers) EXPECT_EQ(buffer.space, program::Space::device);
}

// Straight-line modules of a few operators: the number of copies is that of the best labelling,
// found by enumeration on the module's graph.
class SmallModule {
 public:
  explicit SmallModule(uint64_t seed) : random_(seed) {
    hlo::Computation* fused = module.add_computation("fused");
    fused->set_root(fused->add(Opcode::constant, Shape::scalar(Type::u8), {},
                               hlo::ConstantAttrs{tensor::Literal(Shape::scalar(Type::u8))}));
    hlo::Computation* entry = module.add_computation("main");
    module.set_entry(entry);
    for (int64_t p = 0; p < 1 + pick(2); ++p)
      values_.push_back(entry->add(Opcode::parameter, shape(), {}, hlo::ParameterAttrs{p}));
    const int nodes = 2 + pick(9);
    for (int n = 0; n < nodes; ++n) {
      Instr* first = any();
      if (pick(3) == 0) {
        values_.push_back(entry->add(Opcode::negate, first->shape(), {first}));
      } else {
        Instr* fusion =
            entry->add(Opcode::fusion, shape(), {first, any()}, hlo::FusionAttrs{}, {fused}, "f");
        kernels.emplace(fusion, fake_kernel(*fusion));
        values_.push_back(fusion);
      }
    }
    std::vector<Instr*> outputs{values_.back(), any()};
    entry->set_root(entry->add(
        Opcode::tuple, Shape::make_tuple({outputs[0]->shape(), outputs[1]->shape()}), outputs));
    entry->remove_dead();
  }

  // True: on the host.
  int64_t least_copies() const {
    std::vector<const Instr*> free;
    std::map<const Instr*, bool> host;
    const auto& instrs = module.entry()->instrs();
    for (const Instr* instr : instrs) {
      if (instr->is(Opcode::fusion)) {
        bool small = instr->shape().bytes() <= 64;
        for (const Instr* operand : instr->operands())
          small = small && operand->shape().bytes() <= 64;
        if (small) free.push_back(instr);
      }
      host[instr] = !instr->is(Opcode::fusion);
    }
    EXPECT_LE(free.size(), 10u);
    int64_t least = INT64_MAX;
    for (uint64_t mask = 0; mask < uint64_t{1} << free.size(); ++mask) {
      for (size_t i = 0; i < free.size(); ++i) host[free[i]] = (mask >> i & 1) != 0;
      std::set<const Instr*> crossing;
      for (const Instr* instr : instrs)
        for (const Instr* operand : instr->operands())
          if (host[operand] != host[instr]) crossing.insert(operand);
      least = std::min(least, std::ssize(crossing));
    }
    return least;
  }

  hlo::Module module{"random"};
  Kernels kernels;

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  Shape shape() { return Shape::array(Type::u8, {pick(3) == 0 ? int64_t{100} : int64_t{8}}); }
  Instr* any() { return values_[static_cast<size_t>(pick(static_cast<int>(values_.size())))]; }
  std::mt19937_64 random_;
  std::vector<Instr*> values_;
};

TEST(partition, AsFewCopiesAsTheBestOfAllLabellings) {
  int64_t copies = 0, host_kernels = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SmallModule m(seed);
    Options options;
    options.own_memory = true;
    auto program = plan(m.module, m.kernels, {}, target::Target(), options);
    ASSERT_TRUE(program) << program.error().message;
    const program::Crossings crossings = program::count_crossings(*program);
    ASSERT_EQ(crossings.to_device + crossings.to_host, m.least_copies())
        << "seed " << seed << "\n"
        << hlo::to_string(m.module) << program::to_string(*program);
    copies += crossings.to_device + crossings.to_host;
    for (const program::Command& command : program->commands)
      if (const auto* call = std::get_if<program::HostCall>(&command))
        host_kernels += call->text.find("fusion") != std::string::npos;
  }
  EXPECT_GT(copies, 1000);
  EXPECT_GT(host_kernels, 100);
}

// The parts of every region of random flows: each node is in one part, parts have one label, the
// graph has no cycle.
TEST(partition, PartsHaveNoCycle) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SmallModule m(seed);
    auto flow = make_flow(m.module, m.kernels);
    ASSERT_TRUE(flow);
    partition(*flow, target::Target());
    const std::vector<Part> parts = parts_of(*flow, RegionId(0));
    std::vector<size_t> part_of(flow->nodes.size(), SIZE_MAX);
    for (size_t p = 0; p < parts.size(); ++p)
      for (NodeId id : parts[p].nodes) {
        ASSERT_EQ(part_of[id.index()], SIZE_MAX);
        part_of[id.index()] = p;
      }
    for (size_t n = 0; n < flow->nodes.size(); ++n) {
      ASSERT_NE(part_of[n], SIZE_MAX);
      for (NodeId before : flow->nodes[n].after) ASSERT_LE(part_of[before.index()], part_of[n]);
    }
  }
}

}  // namespace
}  // namespace heddle::plan
