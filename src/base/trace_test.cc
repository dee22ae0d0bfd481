#include "base/trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

namespace heddle::trace {
namespace {

int64_t count(const std::string& text, const std::string& what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(trace, OffRecordsNothing) {
  start();
  stop();
  {
    Span span("unseen");
  }
  EXPECT_EQ(count(to_json(), "unseen"), 0);
}

TEST(trace, SpansNestAndThreadsHaveRows) {
  start();
  {
    Span outer("outer", "with \"quotes\"\n");
    Span inner("inner");
  }
  std::thread([] { Span span("elsewhere"); }).join();
  add("measured", 5, 10);
  stop();
  const std::string json = to_json();
  EXPECT_EQ(count(json, "\"ph\":\"X\""), 4);
  EXPECT_LT(json.find("\"outer\""), json.find("\"inner\""));  // begin order
  EXPECT_NE(json.find("with \\\"quotes\\\"\\u000a"), std::string::npos);
  EXPECT_NE(json.find("\"name\":\"measured\",\"tid\":0,\"ts\":0.000,\"dur\":0.005"),
            std::string::npos);
  EXPECT_NE(json.find("\"name\":\"elsewhere\",\"tid\":1"), std::string::npos);
}

TEST(trace, StartForgetsAndEventsAreBounded) {
  start();
  for (int64_t i = 0; i < kMaxEvents + 3; ++i) add("e", i, i + 1);
  stop();
  const std::string json = to_json();
  EXPECT_NE(json.find("\"dropped_events\":\"3\""), std::string::npos);
  start();
  stop();
  EXPECT_EQ(count(to_json(), "\"ph\""), 0);
}

TEST(trace, WriteReportsTheFileItCannotWrite) {
  start();
  {
    Span span("written");
  }
  stop();
  const std::string path = testing::TempDir() + "/heddle_trace_test.json";
  ASSERT_TRUE(write(path));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), to_json());
  std::remove(path.c_str());
  Status status = write("/nowhere/at/all.json");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::machine);
  EXPECT_NE(status.error().message.find("/nowhere/at/all.json"), std::string::npos);
}

}  // namespace
}  // namespace heddle::trace
