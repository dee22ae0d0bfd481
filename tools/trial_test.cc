#include "trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::tools {
namespace {

using Kind = Failure::Kind;
using testing::HasSubstr;

Failure of_shell(const char* script, double seconds = 20) {
  auto outcome = run_trial({"/bin/sh", "-c", script}, {seconds, int64_t{4} << 30});
  EXPECT_TRUE(outcome);
  return failure_of(*outcome);
}

TEST(trial, KindsAreToldApart) {
  EXPECT_EQ(of_shell("exit 0").kind, Kind::none);
  EXPECT_EQ(of_shell("exit 1").kind, Kind::wrong);
  const Failure user = of_shell("echo 'error: %a.3: shape f32[2] is too large' >&2; exit 2");
  EXPECT_EQ(user.kind, Kind::error);
  EXPECT_EQ(user.message, "%a.3: shape f32[2] is too large");
  EXPECT_EQ(user, of_shell("echo 'error: %b: shape f32[7,9] is too large' >&2; exit 2"));
  EXPECT_NE(user, of_shell("echo 'error: %b: shape f32[7,9] is too large' >&2; exit 3"));
  EXPECT_NE(user, of_shell("echo 'error: no such operator' >&2; exit 2"));
  EXPECT_EQ(of_shell("sleep 60", 0.05).kind, Kind::hang);
}

TEST(trial, CrashesByPlace) {
  const Failure check =
      of_shell("echo 'heddle bug: a.cc:7: check failed: x: 12' >&2; echo later >&2; kill -ABRT $$");
  EXPECT_EQ(check.kind, Kind::crash);
  EXPECT_EQ(check.what, "heddle bug: a.cc:7");
  EXPECT_EQ(check, of_shell("echo 'heddle bug: a.cc:7: check failed: x: 13' >&2; kill -ABRT $$"));
  EXPECT_NE(check, of_shell("echo 'heddle bug: a.cc:9: check failed: y' >&2; kill -ABRT $$"));
  const Failure signal = of_shell("kill -SEGV $$");
  EXPECT_EQ(signal.kind, Kind::crash);
  EXPECT_THAT(signal.what, HasSubstr("signal 11"));
  EXPECT_NE(signal, of_shell("kill -FPE $$"));
  EXPECT_NE(signal, of_shell("exit 77"));
}

TEST(trial, WrongNumbersByFiniteness) {
  const char* finite =
      R"(echo '{"outputs": [{"name": "out0", "shape": "f32[2]", "equal": true},
           {"name": "out1", "shape": "f32[2]", "equal": false, "mismatches": 2,
            "worst": {"index": [0], "got": 1.5, "want": 2}}]}'; exit 1)";
  const char* nan =
      R"(echo '{"outputs": [{"name": "out0", "shape": "f32[2]", "equal": false, "mismatches": 2,
            "worst": {"index": [0], "got": null, "want": 2}}]}'; exit 1)";
  EXPECT_EQ(of_shell(finite).what, "finite");
  EXPECT_EQ(of_shell(finite).message, "out1 f32[2]: 2 elements differ");
  EXPECT_EQ(of_shell(nan).what, "not finite");
}

TEST(trial, LimitsMemory) {
  auto outcome = run_trial({"/bin/sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' a)"},
                           {20, int64_t{100} << 20});
  ASSERT_TRUE(outcome);
  EXPECT_NE(outcome->status, 0);
  auto missing = run_trial({"/no/such/program"}, {});
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->status, 127);
}

}  // namespace
}  // namespace heddle::tools
