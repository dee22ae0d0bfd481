// No exception leaves a C function.
#include "api/c_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::api {
namespace {

using ::testing::HasSubstr;

template <typename Exception>
std::pair<int, std::string> thrown(Exception exception) {
  heddle_status* status = guarded("heddle_thing", [&](const Call&) -> Status { throw exception; });
  std::pair<int, std::string> result(heddle_status_kind(status), heddle_status_message(status));
  EXPECT_EQ(result.second, heddle_last_error());
  heddle_status_free(status);
  return result;
}

TEST(Guarded, EveryExceptionBecomesAStatus) {
  const auto memory = std::pair<int, std::string>(HEDDLE_MACHINE_ERROR, "out of memory");
  EXPECT_EQ(thrown(std::bad_alloc()), memory);
  EXPECT_EQ(thrown(std::length_error("too long")), memory);
  const auto of_system =
      thrown(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(of_system.first, HEDDLE_MACHINE_ERROR);
  EXPECT_THAT(of_system.second, HasSubstr("unavailable"));
  const auto bug = thrown(std::logic_error("construction from null is not valid"));
  EXPECT_EQ(bug.first, HEDDLE_MACHINE_ERROR);
  EXPECT_THAT(bug.second, HasSubstr("heddle_thing: a bug in heddle: construction from null"));
  EXPECT_THAT(thrown(42).second, HasSubstr("heddle_thing: a bug in heddle"));
}

TEST(Guarded, AStatusTellsMoreThanItsKind) {
  const auto code_of = [](ErrorKind kind) {
    heddle_status* status = make_status({kind, "why"});
    const std::pair<int, int> result(heddle_status_kind(status), heddle_status_code(status));
    heddle_status_free(status);
    return result;
  };
  using Pair = std::pair<int, int>;
  EXPECT_EQ(code_of(ErrorKind::user), Pair(HEDDLE_USER_ERROR, HEDDLE_CODE_NONE));
  EXPECT_EQ(code_of(ErrorKind::machine), Pair(HEDDLE_MACHINE_ERROR, HEDDLE_CODE_NONE));
  EXPECT_EQ(code_of(ErrorKind::cancelled), Pair(HEDDLE_CANCELLED, HEDDLE_CODE_NONE));
  EXPECT_EQ(code_of(ErrorKind::unsupported), Pair(HEDDLE_USER_ERROR, HEDDLE_CODE_UNSUPPORTED));
  EXPECT_EQ(code_of(ErrorKind::shape), Pair(HEDDLE_USER_ERROR, HEDDLE_CODE_SHAPE));
  EXPECT_EQ(code_of(ErrorKind::value), Pair(HEDDLE_USER_ERROR, HEDDLE_CODE_VALUE));
  EXPECT_EQ(code_of(ErrorKind::memory), Pair(HEDDLE_MACHINE_ERROR, HEDDLE_CODE_MEMORY));
  EXPECT_EQ(code_of(ErrorKind::device), Pair(HEDDLE_MACHINE_ERROR, HEDDLE_CODE_DEVICE));
}

TEST(Guarded, FunctionsWithoutAStatusTellTheirErrors) {
  const int answer = answered<int>("heddle_thing", -1, [](const Call& call) -> Result<int> {
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", 7, 0, 3));
    return 1;
  });
  EXPECT_EQ(answer, -1);
  EXPECT_STREQ(heddle_last_error(), "heddle_thing: number is 7; wanted 0 to 3");
  EXPECT_EQ(answered<int>("heddle_thing", -1, [](const Call&) -> Result<int> { return 5; }), 5);
  EXPECT_EQ(answered<int>("heddle_thing", -1, [](const Call&) -> Result<int> { throw 1; }), -1);
}

}  // namespace
}  // namespace heddle::api
