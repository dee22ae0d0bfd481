// place() gives the same for instructions inside a computation, with similar readers and producers
// around them, as for a fusion of them.
#include <gtest/gtest.h>

#include <sstream>

#include "fuse/groups.h"
#include "hlo/text.h"
#include "schedule/place.h"

namespace heddle::fuse {
namespace {

struct Case {
  const char* members;  // their names, in order; the last one is the output
  const char* around;   // the entry, without its parameter x
  const char* fusion;   // the same kernel, its parameters numbered as they are met
};

constexpr const char* kModule = R"(HloModule m
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
candidate {{
{}
}}
ENTRY e {{
  x = f32[64,128] parameter(0)
  zero = f32[] constant(0)
{}
}})";

const Case kCases[] = {
    // A value inside that two operators outside read, one of them a broadcast.
    {"r wide y",
     R"(  e1 = f32[64,128] exponential(x)
  r = f32[64] reduce(e1, zero), dimensions={1}, to_apply=sum
  wide = f32[64,128] broadcast(r), dimensions={0}
  y = f32[64,128] divide(e1, wide)
  other = f32[64,32] broadcast(r), dimensions={0}
  many = f32[64] exponential(r)
  ROOT t = (f32[64,128], f32[64,32], f32[64]) tuple(y, other, many))",
     R"(  e1 = f32[64,128] parameter(0)
  zero = f32[] constant(0)
  r = f32[64] reduce(e1, zero), dimensions={1}, to_apply=sum
  wide = f32[64,128] broadcast(r), dimensions={0}
  ROOT y = f32[64,128] divide(e1, wide))"},
    // A reduction outside, and a broadcast of it outside, are arrays like others.
    {"d y",
     R"(  r = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum
  wide = f32[64,128] broadcast(r), dimensions={0}
  back = f32[128,64] transpose(x), dimensions={1,0}
  d = f32[64,64] dot(wide, back), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[64,64] tanh(d))",
     R"(  p0 = f32[64,128] parameter(0)
  p1 = f32[128,64] parameter(1)
  d = f32[64,64] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[64,64] tanh(d))"},
    // Two slices outside are two arrays, not the array that they are slices of.
    {"c y",
     R"(  high = f32[32,128] slice(x), slice={[32:64], [0:128]}
  low = f32[32,128] slice(x), slice={[0:32], [0:128]}
  c = f32[64,128] concatenate(high, low), dimensions={0}
  ROOT y = f32[64,128] negate(c))",
     R"(  p0 = f32[32,128] parameter(0)
  p1 = f32[32,128] parameter(1)
  c = f32[64,128] concatenate(p0, p1), dimensions={0}
  ROOT y = f32[64,128] negate(c))"},
    // The other result of the same top-k, outside.
    {"v y",
     R"(  p = s32[64,8] custom-call(x), custom_call_target="heddle.largest.places"
  v = f32[64,8] custom-call(x), custom_call_target="heddle.largest.values"
  y = f32[64,8] negate(v)
  ROOT t = (s32[64,8], f32[64,8]) tuple(p, y))",
     R"(  x = f32[64,128] parameter(0)
  v = f32[64,8] custom-call(x), custom_call_target="heddle.largest.values"
  ROOT y = f32[64,8] negate(v))"},
    // An element of a tuple outside.
    {"y",
     R"(  pair = (f32[64,128], f32[64,128]) tuple(x, x)
  w = f32[64,128] get-tuple-element(pair), index=1
  ROOT y = f32[64,128] negate(w))",
     R"(  w = f32[64,128] parameter(0)
  ROOT y = f32[64,128] negate(w))"},
    // A member that the output does not need, and one of which the output is a view.
    {"unneeded n y",
     R"(  unneeded = f32[64,128] exponential(x)
  n = f32[64,128] negate(x)
  y = f32[128,64] reshape(n)
  ROOT t = (f32[64,128], f32[128,64]) tuple(unneeded, y))",
     R"(  x = f32[64,128] parameter(0)
  n = f32[64,128] negate(x)
  ROOT y = f32[128,64] reshape(n))"},
};

TEST(members, ArePlacedAsTheirFusionIs) {
  for (const Case& one : kCases) {
    const auto module = hlo::parse_module(fmt::format(kModule, one.fusion, one.around));
    ASSERT_TRUE(module) << module.error().message;
    const Computation* entry = (*module)->entry();
    std::vector<Instr*> members;
    for (std::istringstream names(one.members); !names.eof();) {
      std::string name;
      names >> name;
      members.push_back(entry->find(name));
      ASSERT_NE(members.back(), nullptr) << name;
    }
    const auto is_last = [&](const Instr* member) { return member == members.back(); };
    for (const char* name : {"icelake", "sm_90"}) {
      const target::Target target = *target::find_target(name);
      const stage::PlacedFusion found = schedule::place(members_of(members, is_last), target);
      const stage::PlacedFusion wanted = schedule::place(*(*module)->find("candidate"), target);
      EXPECT_EQ(found.decision.reason(), wanted.decision.reason());
      EXPECT_EQ(to_string(found.graph), to_string(wanted.graph)) << one.members;
      EXPECT_EQ(to_string(found.schedule, found.graph), to_string(wanted.schedule, wanted.graph));
    }
  }
}

}  // namespace
}  // namespace heddle::fuse
