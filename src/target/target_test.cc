#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace heddle::target {
namespace {

using tensor::Type;
using testing::ElementsAre;
using testing::HasSubstr;

Target get(const std::string& name) {
  Result<Target> target = find_target(name);
  EXPECT_TRUE(target.has_value()) << name;
  return target ? *target : Target();
}

std::string error_of(std::string_view json) {
  Result<Target> target = parse_target(json);
  return target ? "no error" : target.error().message;
}

TEST(Target, ShipsTheseDevices) {
  EXPECT_THAT(shipped_targets(), ElementsAre("avx2", "icelake", "portable", "sm_80", "sm_90", "spr",
                                             "spr_amx", "zen4", "zen5"));
}

TEST(Target, ParseAndPrintAreInverse) {
  for (const std::string& name : shipped_targets()) {
    Target target = get(name);
    EXPECT_EQ(target.name, name);
    Result<Target> again = parse_target(to_string(target));
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(*again, target) << name;
    EXPECT_EQ(to_string(*again), to_string(target)) << name;
  }
}

TEST(Target, FilesAreInPrintedForm) {
  for (const std::string& name : shipped_targets()) {
    std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/src/target/data/" + name + ".json");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), to_string(get(name)) + "\n") << name;
  }
}

TEST(Target, LanesFollowTheRegisterWidth) {
  EXPECT_EQ(get("portable").lanes(Type::f32), 4);
  EXPECT_EQ(get("avx2").lanes(Type::f32), 8);
  EXPECT_EQ(get("avx2").lanes(Type::f64), 4);
  EXPECT_EQ(get("spr").lanes(Type::f32), 16);
  EXPECT_EQ(get("spr").lanes(Type::pred), 64);
  EXPECT_EQ(get("spr").lanes(Type::s4), 64);
}

TEST(Target, PeakCountsTwoAnFmaOnAllCores) {
  Target spr = get("spr");
  EXPECT_DOUBLE_EQ(spr.peak_flops_per_ns(Type::f32), 2 * 2 * 2.9 * 2 * 16);
  EXPECT_DOUBLE_EQ(spr.peak_flops_per_ns(Type::f64), spr.peak_flops_per_ns(Type::f32) / 2);
  EXPECT_DOUBLE_EQ(spr.peak_flops_per_ns(Type::u8), spr.peak_flops_per_ns(Type::f32) * 4);
  // 19.5 and 312 Tflop/s of the A100's data sheet.
  EXPECT_NEAR(get("sm_80").peak_flops_per_ns(Type::f32), 19500, 100);
  EXPECT_NEAR(get("sm_80").peak_flops_per_ns(Type::f16), 312000, 1000);
}

// 40 and 80 GiB, PCIe 4.0 and 5.0 x16: 31.5 and 63 GB/s on the wire, of which copies reach 80 %.
TEST(Target, GpusHaveAMemoryAndALink) {
  EXPECT_EQ(get("sm_80").memory_bytes, int64_t{40} << 30);
  EXPECT_EQ(get("sm_90").memory_bytes, int64_t{80} << 30);
  const double gib = static_cast<double>(1 << 30);
  EXPECT_NEAR(get("sm_90").link_ns(gib), 21.5e6, 0.1e6);
  EXPECT_NEAR(get("sm_80").link_ns(gib), 43e6, 0.1e6);
  EXPECT_GE(get("sm_90").link_ns(4), 1000);
  // The device's memory moves 3350 / 50 times as many bytes in that time.
  EXPECT_NEAR(get("sm_90").memory_bytes_of_link(gib) / gib, 67, 0.1);
  for (const char* cpu : {"portable", "avx2", "spr"}) {
    EXPECT_FALSE(get(cpu).has_link());
    EXPECT_EQ(get(cpu).memory_bytes_of_link(gib), gib);
  }
}

TEST(Target, IsaNames) {
  EXPECT_EQ(isa_name(get("portable")), "portable");
  EXPECT_EQ(isa_name(get("avx2")), "avx2");
  EXPECT_EQ(isa_name(get("icelake")), "avx512_vnni");
  EXPECT_EQ(isa_name(get("spr")), "avx512_fp16");
  EXPECT_EQ(isa_name(get("sm_90")), "sm_90");
}

TEST(Target, FeaturesGrowFromTargetToTarget) {
  const char* order[] = {"portable", "avx2", "icelake", "spr"};
  for (int i = 0; i + 1 < 4; ++i) {
    Target low = get(order[i]), high = get(order[i + 1]);
    for (const std::string& feature : low.features) EXPECT_TRUE(high.has(feature)) << feature;
    EXPECT_GT(high.features.size(), low.features.size());
  }
}

TEST(Target, ErrorsSayWhatAndWhere) {
  EXPECT_THAT(error_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("wanted an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("name"));
  EXPECT_THAT(error_of(R"({"name": 3})"), HasSubstr("target.name: got 3, wanted a string"));
  EXPECT_THAT(error_of(R"({"name": "a", "kind": "tpu"})"), HasSubstr("\"cpu\" or \"gpu\""));
  EXPECT_THAT(error_of(R"({"name": "a", "cores": -1})"), HasSubstr("target.cores: got -1"));
  EXPECT_THAT(error_of(R"({"name": "a", "cores": 1.5})"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(R"({"name": "a", "cores": 1e30})"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(R"({"name": "a", "cores": 0})"), HasSubstr("cores: got 0"));
  EXPECT_THAT(error_of(R"({"name": "a", "simd_bits": 100})"), HasSubstr("power of two"));
  EXPECT_THAT(error_of(R"({"name": "a", "features": ["+avx2"]})"), HasSubstr("without sign"));
  EXPECT_THAT(error_of(R"({"name": "a", "features": ["a,b"]})"), HasSubstr("without sign"));
  EXPECT_THAT(error_of(R"({"name": "a", "caches": [{"size": 1}]})"),
              HasSubstr("target.caches.size"));
  EXPECT_THAT(error_of(R"({"name": "a", "colour": 1})"), HasSubstr("target.colour"));
  EXPECT_THAT(error_of(R"({"name": "a", "mac_rate": {"f32": "x"}})"),
              HasSubstr("target.mac_rate.f32"));
  EXPECT_THAT(error_of(R"({"name": "a", "kind": "gpu"})"), HasSubstr("multiprocessors"));
  EXPECT_THAT(find_target("z80").error().message, HasSubstr("avx2, icelake, portable"));
}

// The host's features vary; these properties must hold on every machine.
TEST(Host, IsSane) {
  unsetenv("HEDDLE_ISA");
  Target host = host_target();
  EXPECT_EQ(host.name, "host");
  EXPECT_GE(host.cores, 1);
  EXPECT_TRUE(std::is_sorted(host.features.begin(), host.features.end()));
  for (const Cache& cache : host.caches) EXPECT_GT(cache.bytes, 1024);
  Result<Target> again = parse_target(to_string(host));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*again, host);
}

TEST(Host, HeddleIsaLowersAndNeverRaises) {
  unsetenv("HEDDLE_ISA");
  Target host = host_target();
  for (const char* isa : {"portable", "avx2", "avx512"}) {
    setenv("HEDDLE_ISA", isa, 1);
    Target lowered = host_target();
    for (const std::string& feature : lowered.features) EXPECT_TRUE(host.has(feature));
    if (std::string_view(isa) == "portable") {
      EXPECT_FALSE(lowered.has("avx2"));
      EXPECT_EQ(lowered.simd_bits, 128);
      EXPECT_EQ(isa_name(lowered), "portable");
    }
    if (std::string_view(isa) == "avx2") {
      EXPECT_FALSE(lowered.has("avx512f"));
      EXPECT_LE(lowered.simd_bits, 256);
    }
    EXPECT_FALSE(lowered.has("avx512vnni"));
    // Byte products are faster only if the instructions exist.
    EXPECT_TRUE(lowered.has("avx2") || !lowered.mac_rate.contains("s8"));
    EXPECT_TRUE(!lowered.mac_rate.contains("s8") || lowered.mac_rate["s8"] < 2);
  }
  setenv("HEDDLE_ISA", "sse9", 1);
  EXPECT_THAT(find_target("host").error().message, HasSubstr("HEDDLE_ISA: got sse9"));
  unsetenv("HEDDLE_ISA");
}

}  // namespace
}  // namespace heddle::target
