// Tables as machine code: the same bits as the interpreter, in however many parts the tasks come.
#include "emit/llvm/table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "emit/llvm/test_code.h"
#include "kernel/interp.h"
#include "kernel/text.h"

namespace heddle::emit {
namespace {

struct Memory {
  std::vector<float> a = std::vector<float>(5), b = std::vector<float>(40), a_out = a, b_out = b,
                     sums = std::vector<float>(1), others = sums, scale = sums;
  Memory() {
    for (size_t i = 0; i < 5; ++i) a[i] = static_cast<float>(i) / 3;
    for (size_t i = 0; i < 40; ++i) b[i] = static_cast<float>(i) / 7;
  }
  std::vector<void*> pointers() {
    return {a.data(),    b.data(),      a_out.data(), b_out.data(),
            sums.data(), others.data(), scale.data()};
  }
};

TEST(Table, IsCompiled) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/src/kernel/testdata/table.kernel");
  std::stringstream text;
  text << file.rdbuf();
  auto kernel = kernel::parse_kernel(text.str());
  ASSERT_TRUE(kernel) << kernel.error().message;
  Memory want;
  ASSERT_TRUE(kernel::interpret(*kernel, want.pointers()).faults.empty());
  for (const target::Target& target : runnable_targets()) {
    auto code = TestCode::make(*kernel, target);
    ASSERT_TRUE(code) << code.error().message;
    for (int parts : {1, 2, 3, 4, 7}) {
      Memory got;
      (*code)->run(got.pointers(), {}, parts);
      EXPECT_EQ(got.a_out, want.a_out) << target.name << ", " << parts;
      EXPECT_EQ(got.b_out, want.b_out) << target.name << ", " << parts;
      EXPECT_EQ(got.scale, want.scale) << target.name << ", " << parts;
    }
  }
}

}  // namespace
}  // namespace heddle::emit
