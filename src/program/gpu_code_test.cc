#include "program/gpu_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::program {
namespace {

using ::testing::HasSubstr;

TEST(GpuCode, ReadsWhatItWrites) {
  const GpuCode code{
      "sm_90", {{"k0_p0", 12, 128, 0, 3, 0}, {"k0_p1", 1, 256, 65536, 3, 1}}, {1, 10, 0}};
  const std::vector<uint8_t> bytes = encode_gpu_code(code);
  const auto read = decode_gpu_code(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->architecture, code.architecture);
  EXPECT_EQ(read->functions, code.functions);
  EXPECT_EQ(read->cubin, code.cubin);
}

TEST(GpuCode, DamageIsAnError) {
  const GpuCode code{"sm_90", {{"k0_p0", 12, 128, 0, 3, 0}}, {1, 2, 3}};
  const std::vector<uint8_t> good = encode_gpu_code(code);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode_gpu_code({good.data(), size})) << size;
  const std::string threads = "heddle.cubin 1 sm_90 1 0\nk 1 4096 0 0 0\n";
  const auto read =
      decode_gpu_code({reinterpret_cast<const uint8_t*>(threads.data()), threads.size()});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("function 0 is damaged"));
}

}  // namespace
}  // namespace heddle::program
