#include "base/trace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/parallel.h"

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

TEST(trace, RowsAndCountersHaveNames) {
  start();
  std::thread([] {
    name_thread("loader");
    Span span("read");
  }).join();
  add_counter("temporaries", now_ns(), 4096);
  stop();
  const std::string json = to_json();
  EXPECT_EQ(count(json, "\"name\":\"process_name\""), 1);
  EXPECT_EQ(count(json, "\"name\":\"thread_name\",\"args\":{\"name\":\"loader\"}"), 1);
  EXPECT_NE(json.find("\"ph\":\"C\",\"pid\":1,\"name\":\"temporaries\""), std::string::npos);
  EXPECT_NE(json.find("\"args\":{\"bytes\":4096}"), std::string::npos);
}

// Each part waits for the other, so that the worker must run its own.
TEST(trace, WorkersHaveRowsOfTheirOwn) {
  struct Meeting {
    std::atomic<int> there{0};
    static void wait(void* context, int64_t, int64_t, int) {
      auto& meeting = *static_cast<Meeting*>(context);
      ++meeting.there;
      while (meeting.there < 2) std::this_thread::yield();
    }
  };
  Workers workers(2);
  const auto meet = [&] {
    Meeting meeting;
    workers.parallel(2, &Meeting::wait, &meeting);
  };
  set_work("softmax");
  meet();  // off
  start();
  meet();
  stop();
  set_work({});
  const std::string json = to_json();
  EXPECT_EQ(count(json, "{\"name\":\"worker 1\"}"), 1);
  EXPECT_EQ(count(json, "\"ph\":\"X\",\"pid\":1,\"name\":\"softmax\""), 1);
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
