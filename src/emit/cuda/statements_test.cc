#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emit/cuda/cuda_text.h"
#include "kernel/text.h"
#include "target/target.h"

namespace heddle::emit::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const std::string& kernel, bool apart) {
  auto parsed = kernel::parse_kernel(kernel);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  if (!parsed) return "";
  auto made = to_cuda(*parsed, *target::find_target("sm_90"), apart);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? made->kernel : "";
}

// One lane stores, the others read it after the barrier.
constexpr const char* kTold = R"(heddle.kernel 1
kernel told {
  buffer in0: f32[64] global in aligned 64
  buffer out0: f32[64] global out aligned 64
  buffer s: f32[2] global inout aligned 64
  phase {
    group grid (t 2) threads 32 {
      subgroup w 1 {
        s[t] = in0[t]
        barrier
        thread l 32 lanes 32 {
          out0[t*32 + l] = s[t]
        }
      }
    }
  }
}
)";

// With __restrict__ the compiler would read it before the barrier (seen on an H100).
TEST(Restrict, NotWhatALaunchStoresAndReads) {
  EXPECT_THAT(text_of(kTold, true),
              HasSubstr("const float* __restrict__ in0, float* __restrict__ out0, float* s)"));
  EXPECT_THAT(text_of(kTold, false), Not(HasSubstr("__restrict__")));
}

std::string map_of(const std::string& first, const std::string& second) {
  return R"(heddle.kernel 1
kernel wide {
  buffer in0: f32[128] global in aligned 64
  buffer out0: f32[128] global inout aligned 64
  phase {
    group grid (t 1) threads 32 {
      subgroup w 1 {
        thread l 32 lanes 32 {
          out0[)" +
         first + "] = in0[" + first + "]\n          out0[" + second + "] = in0[" + second + R"(]
        }
      }
    }
  }
}
)";
}

TEST(WideAccesses, NeighboursAtAnEvenPlaceAreOne) {
  const std::string text = text_of(map_of("l*2", "l*2 + 1"), false);
  EXPECT_THAT(text, HasSubstr("*(const Pack<float, 2>*)&in0[l * 2]"));
  EXPECT_THAT(text, HasSubstr("*(Pack<float, 2>*)&out0[l * 2] ="));
}

TEST(WideAccesses, NotAtAnOddPlace) {
  EXPECT_THAT(text_of(map_of("l*2 + 1", "l*2 + 2"), false), Not(HasSubstr("Pack")));
  EXPECT_THAT(text_of(map_of("l*3", "l*3 + 1"), false), Not(HasSubstr("Pack")));
}

// The second statement reads what the first one stores.
TEST(WideAccesses, NotAcrossAStoreOfTheSame) {
  const std::string text = text_of(R"(heddle.kernel 1
kernel moved {
  buffer x: f32[128] global inout aligned 64
  phase {
    group grid (t 1) threads 32 {
      subgroup w 1 {
        thread l 32 lanes 32 {
          x[l*2 + 1] = x[l*2]
          x[l*2] = x[l*2 + 1]
        }
      }
    }
  }
}
)",
                                   false);
  EXPECT_THAT(text, Not(HasSubstr("Pack")));
}

}  // namespace
}  // namespace heddle::emit::cuda
