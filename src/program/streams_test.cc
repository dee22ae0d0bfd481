#include "program/streams.h"

#include <gtest/gtest.h>

#include <random>

#include "program/ranges.h"
#include "program/views.h"

namespace heddle::program {
namespace {

// Launches on temporaries of 64 bytes each, at different offsets.
struct Graph {
  Program program;
  std::vector<double> ns;

  Graph() { program.kernels.resize(1); }
  size_t value(int64_t offset = -1) {
    Buffer buffer{"", BufferKind::temporary, 64};
    buffer.offset_bytes = offset >= 0 ? offset : static_cast<int64_t>(program.buffers.size()) * 64;
    program.buffers.push_back(buffer);
    program.constants.emplace_back();
    return program.buffers.size() - 1;
  }
  static View view(size_t buffer) {
    return {BufferId(buffer), 0, tensor::Shape::array(tensor::Type::f32, {16})};
  }
  size_t launch(const std::vector<size_t>& reads, size_t writes, double takes_ns = 1) {
    Launch made;
    made.kernel = KernelId(0);
    for (size_t read : reads) made.arguments.push_back(view(read));
    made.arguments.push_back(view(writes));
    made.inputs = static_cast<int64_t>(reads.size());
    made.outputs = 1;
    program.commands.emplace_back(std::move(made));
    ns.push_back(takes_ns);
    return program.commands.size() - 1;
  }
  StreamPlan plan(StreamOptions options = {}) const {
    return plan_streams(program, program.commands, ns, options);
  }
};

// Whether streams and events alone guarantee that `before` has run when `after` starts.
bool is_ordered(const StreamPlan& plan, size_t before, size_t after) {
  std::vector<bool> over(after + 1, false);
  over[after] = true;
  for (size_t i = after + 1; i-- > 0;) {
    if (!over[i]) continue;
    for (size_t other : plan.waits[i]) over[other] = true;
    for (size_t other = i; other-- > 0;)
      if (plan.stream[other] == plan.stream[i] || plan.alone[i] || plan.alone[other]) {
        over[other] = true;
        if (plan.stream[other] == plan.stream[i]) break;
      }
  }
  return over[before];
}

TEST(streams, IndependentChainsGoSideBySide) {
  Graph graph;
  const size_t x = graph.value(), y = graph.value(), z = graph.value();
  size_t a = x, b = y;
  for (int i = 0; i < 4; ++i) {
    const size_t next_a = graph.value(), next_b = graph.value();
    graph.launch({a}, next_a);
    graph.launch({b}, next_b);
    a = next_a;
    b = next_b;
  }
  graph.launch({a, b}, z);
  const StreamPlan plan = graph.plan();
  EXPECT_EQ(plan.streams, 2);
  EXPECT_EQ(plan.crossing, 1);
  EXPECT_EQ(plan.events, 1);
  EXPECT_EQ(plan.ns, 5);
  EXPECT_EQ(plan.serial_ns, 9);
}

TEST(streams, AChainStaysOnOne) {
  Graph graph;
  size_t last = graph.value();
  for (int i = 0; i < 5; ++i) {
    const size_t next = graph.value();
    graph.launch({last}, next);
    last = next;
  }
  const StreamPlan plan = graph.plan();
  EXPECT_EQ(plan.streams, 1);
  EXPECT_EQ(plan.events, 0);
}

TEST(streams, WaitsThatCostMoreThanTheyGainAreNotTaken) {
  Graph graph;
  const size_t x = graph.value(), a = graph.value(), b = graph.value(), c = graph.value();
  graph.launch({x}, a);
  graph.launch({x}, b);
  graph.launch({a, b}, c);
  EXPECT_EQ(graph.plan().streams, 2);
  StreamOptions slow;
  slow.wait_ns = 10;
  EXPECT_EQ(graph.plan(slow).streams, 1);
}

// Of several numbers of streams with about the same time the smallest is chosen.
TEST(streams, AsFewAsPay) {
  Graph graph;
  const size_t x = graph.value();
  graph.launch({x}, graph.value(), 100);
  graph.launch({x}, graph.value(), 100);
  graph.launch({x}, graph.value(), 1);
  const StreamPlan plan = graph.plan();
  EXPECT_EQ(plan.streams, 2);
  EXPECT_LE(plan.ns, 102);
  EXPECT_EQ(plan.serial_ns, 201);
  graph.launch({x}, graph.value(), 100);
  EXPECT_EQ(graph.plan().streams, 3);
  StreamOptions two;
  two.most_streams = 2;
  EXPECT_EQ(graph.plan(two).streams, 2);
}

// x -> a -> b and x -> b: the second edge is implied.
TEST(streams, TheReductionDropsWhatFollows) {
  Graph graph;
  const size_t x = graph.value(), y = graph.value(), a = graph.value(), b = graph.value();
  graph.launch({y}, x);
  graph.launch({x}, a);
  graph.launch({x, a}, b);
  const StreamPlan plan = graph.plan();
  EXPECT_EQ(plan.dependences, 3);
  EXPECT_EQ(plan.reduced, 2);
}

// Reused bytes order their users, even if no value passes from one to the other.
TEST(streams, MemoryThatIsUsedAgainOrders) {
  Graph graph;
  const size_t x = graph.value(), a = graph.value(1024), b = graph.value(1024), p = graph.value(),
               q = graph.value();
  graph.launch({x}, a);
  graph.launch({a}, p);
  graph.launch({x}, b);  // overlaps a
  graph.launch({b}, q);
  StreamOptions always;
  always.least_gain = -1;
  const StreamPlan plan = graph.plan(always);
  EXPECT_TRUE(is_ordered(plan, 1, 2));
  EXPECT_EQ(plan.dependences, 5);  // also a -> b and a -> q
  EXPECT_EQ(plan.reduced, 3);      // a -> p -> b -> q
}

TEST(streams, RandomGraphsAreOrderedWithoutWasteOfWaits) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Graph graph;
    std::vector<size_t> values = {graph.value()};
    const int count = 3 + static_cast<int>(random() % 25);
    for (int i = 0; i < count; ++i) {
      std::vector<size_t> reads;
      for (size_t k = 0; k < 1 + random() % 3; ++k)
        reads.push_back(values[random() % values.size()]);
      // Sometimes reuses memory.
      const bool again = random() % 4 == 0 && values.size() > 1;
      const size_t made = graph.value(
          again ? graph.program.buffers[values[1 + random() % (values.size() - 1)]].offset_bytes
                : -1);
      graph.launch(reads, made, 1 + random() % 5);
      values.push_back(made);
    }
    StreamOptions options;
    options.most_streams = 1 + static_cast<int64_t>(random() % 4);
    options.least_gain = -1;
    const StreamPlan plan = graph.plan(options);
    EXPECT_LE(plan.streams, options.most_streams);
    const auto conflict = [&](size_t i, size_t j) {
      bool found = false;
      for_each_view(graph.program.commands[i], [&](const View& a, Use use_a) {
        for_each_view(graph.program.commands[j], [&](const View& b, Use use_b) {
          found = found || ((use_a != Use::read || use_b != Use::read) &&
                            range_of(graph.program, a).overlaps(range_of(graph.program, b)));
        });
      });
      return found;
    };
    for (size_t j = 0; j < graph.program.commands.size(); ++j) {
      for (size_t i = 0; i < j; ++i) {
        if (conflict(i, j)) {
          EXPECT_TRUE(is_ordered(plan, i, j)) << seed << ": " << i << ", " << j;
        }
      }
      // Every wait is needed: without it some commands are not ordered.
      for (size_t w = 0; w < plan.waits[j].size(); ++w) {
        StreamPlan less = plan;
        const size_t gone = plan.waits[j][w];
        less.waits[j].erase(less.waits[j].begin() + static_cast<std::ptrdiff_t>(w));
        EXPECT_FALSE(is_ordered(less, gone, j)) << seed << ": " << gone << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::program
