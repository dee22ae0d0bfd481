#include "library/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

namespace heddle::library {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Values = std::vector<float>;

Values random_values(int64_t count, uint32_t seed) {
  Values values(static_cast<size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(seed >> 8) - (1 << 23)) / (1 << 23);
  }
  return values;
}

// Calls visit for every index within the extents.
void for_each_point(const Ints& extents, const std::function<void(const Ints&)>& visit) {
  Ints at(extents.size(), 0);
  for (;;) {
    visit(at);
    size_t d = extents.size();
    while (d > 0 && ++at[d - 1] == extents[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

int64_t place(const Ints& at, const Ints& strides) {
  int64_t sum = 0;
  for (size_t d = 0; d < at.size(); ++d) sum += at[d] * strides[d];
  return sum;
}

void product(const Operation& o, const float* a, const float* b, const float* bias, float* c) {
  for_each_point({o.batch, o.m, o.n}, [&](const Ints& at) {
    double sum = o.bias ? bias[at[2]] : 0;
    const float *row = a + at[0] * o.a[0] + at[1] * o.a[1],
                *column = b + at[0] * o.b[0] + at[2] * o.b[2];
    for (int64_t k = 0; k < o.k; ++k) sum += double{row[k * o.a[2]]} * column[k * o.b[1]];
    c[place(at, o.c)] = static_cast<float>(sum);
  });
}

void convolution(const Operation& o, const float* a, const float* b, const float* bias, float* c) {
  const int64_t in = o.in / o.groups;
  for_each_point({o.images, o.out, o.output[0], o.output[1]}, [&](const Ints& at) {
    double sum = o.bias ? bias[at[1]] : 0;
    const float* x = a + at[0] * o.a[0] + at[1] / (o.out / o.groups) * in * o.a[1];
    for (int64_t kh = 0; kh < o.kernel[0]; ++kh) {
      for (int64_t kw = 0; kw < o.kernel[1]; ++kw) {
        const int64_t h = at[2] * o.stride[0] + kh * o.dilation[0] - o.low[0];
        const int64_t w = at[3] * o.stride[1] + kw * o.dilation[1] - o.low[1];
        if (h < 0 || h >= o.input[0] || w < 0 || w >= o.input[1]) continue;
        const float* pixel = x + h * o.a[2] + w * o.a[3];
        const float* weight = b + at[1] * o.b[0] + kh * o.b[2] + kw * o.b[3];
        for (int64_t i = 0; i < in; ++i) sum += double{pixel[i * o.a[1]]} * weight[i * o.b[1]];
      }
    }
    c[place(at, o.c)] = static_cast<float>(sum);
  });
}

void evaluate(const Operation& o, const float* a, const float* b, const float* bias, float* c) {
  (o.kind == Operation::Kind::product ? product : convolution)(o, a, b, bias, c);
}

Operation matmul(int64_t batch, int64_t m, int64_t n, int64_t k) {
  Operation o;
  o.batch = batch;
  o.m = m;
  o.n = n;
  o.k = k;
  o.a = {m * k, k, 1};
  o.b = {k * n, n, 1};
  o.c = {m * n, n, 1};
  return o;
}

Ints dense(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

struct Window {
  int64_t kernel = 3, stride = 1, dilation = 1, low = 1, high = 1;
};

// Two spatial dimensions, h x w. `last`: features last ([n,h,w,c], kernel [h,w,i,o]).
Operation image(int64_t images, int64_t in, int64_t out, int64_t h, int64_t w, const Window& window,
                int64_t groups = 1, bool last = true) {
  Operation o;
  o.kind = Operation::Kind::convolution;
  o.images = images;
  o.in = in;
  o.out = out;
  o.groups = groups;
  o.input = {h, w};
  o.kernel = {window.kernel, window.kernel};
  o.stride = {window.stride, window.stride};
  o.dilation = {window.dilation, window.dilation};
  o.low = {window.low, window.low};
  o.high = {window.high, window.high};
  for (size_t d = 0; d < 2; ++d)
    o.output.push_back(
        (o.input[d] + o.low[d] + o.high[d] - window.dilation * (window.kernel - 1) - 1) /
            window.stride +
        1);
  auto activation = [&](int64_t features, const Ints& space) -> Ints {
    if (!last) return dense({images, features, space[0], space[1]});
    const Ints s = dense({images, space[0], space[1], features});
    return {s[0], s[3], s[1], s[2]};
  };
  o.a = activation(in, o.input);
  o.c = activation(out, o.output);
  const Ints s = dense({window.kernel, window.kernel, in / groups, out});
  o.b =
      last ? Ints{s[3], s[2], s[0], s[1]} : dense({out, in / groups, window.kernel, window.kernel});
  return o;
}

std::vector<Operation> examples() {
  std::vector<Operation> all = {matmul(1, 64, 96, 80), matmul(1, 37, 19, 23),
                                matmul(3, 17, 33, 9),  matmul(5, 4, 40, 8),
                                matmul(1, 1, 320, 64), matmul(1, 200, 1, 30)};
  Operation turned = matmul(1, 40, 70, 50);  // A and B are transposed
  turned.a = {2000, 1, 40};
  turned.b = {3500, 1, 50};
  all.push_back(turned);
  Operation shared = matmul(4, 24, 32, 16);  // one B for the whole batch
  shared.b[0] = 0;
  all.push_back(shared);
  Operation spread = matmul(1, 32, 48, 16);  // rows of A and C have gaps
  spread.a = {0, 100, 1};
  spread.c = {0, 64, 1};
  all.push_back(spread);
  all.push_back(image(1, 16, 32, 14, 12, {}));
  all.push_back(image(2, 8, 16, 9, 11, {3, 2, 1, 0, 1}));
  all.push_back(image(1, 16, 16, 15, 15, {3, 1, 2, 2, 2}));
  all.push_back(image(1, 24, 36, 10, 10, {3, 1, 1, 1, 1}, 3));
  all.push_back(image(1, 32, 32, 12, 12, {}, 32));
  all.push_back(image(3, 16, 16, 8, 8, {1, 1, 1, 0, 0}));
  all.push_back(image(1, 3, 16, 30, 30, {7, 2, 1, 3, 3}));
  all.push_back(image(1, 16, 32, 13, 13, {}, 1, false));
  all.push_back(image(2, 16, 16, 9, 9, {5, 2, 1, 2, 2}, 2, false));
  const size_t count = all.size();
  for (size_t i = 0; i < count; ++i) {
    all.push_back(all[i]);
    all.back().bias = true;
  }
  return all;
}

struct Data {
  explicit Data(const Operation& o)
      : size(spans(o)),
        a(random_values(size.a, 1)),
        b(random_values(size.b, 2)),
        bias(random_values(size.bias, 3)),
        c(static_cast<size_t>(size.c), -77.0f),
        expected(c) {
    evaluate(o, a.data(), b.data(), bias.data(), expected.data());
  }
  std::vector<void*> buffers(const Operation& o) {
    std::vector<void*> all = {a.data(), b.data()};
    if (o.bias) all.push_back(bias.data());
    all.push_back(c.data());
    return all;
  }
  // Elements that are not results must be unchanged: gaps between rows are compared, too.
  void compare(const Operation& o) const {
    double worst = 0;
    for (size_t i = 0; i < c.size(); ++i)
      worst = std::max(worst, std::fabs(double{c[i]} - expected[i]));
    const double depth = o.kind == Operation::Kind::product
                             ? static_cast<double>(o.k)
                             : o.flops() / 2 / static_cast<double>(size.c);
    EXPECT_LE(worst, 6e-8 * (depth + 4) * 2) << to_string(o);
  }
  Spans size;
  Values a, b, bias, c, expected;
};

target::Target host() { return target::host_target(); }

TEST(operation, TextIsReadBack) {
  for (const Operation& o : examples()) {
    const auto parsed = parse_operation(to_string(o));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, o);
  }
}

TEST(operation, WrongTextsAreErrors) {
  const std::string right = to_string(image(1, 8, 8, 6, 6, {}));
  auto message = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    const auto parsed = parse_operation(text.replace(at, from.size(), to));
    EXPECT_FALSE(parsed) << text;
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_THAT(message(right, "convolution", "konvolution"), HasSubstr("wanted product"));
  EXPECT_THAT(message(right, "groups=1", "groups=3"), HasSubstr("do not fit"));
  EXPECT_THAT(message(right, "output=6,6", "output=6,7"), HasSubstr("do not fit"));
  EXPECT_THAT(message(right, "output=6,6", "output=6"), HasSubstr("length"));
  EXPECT_THAT(message(right, "low=1,1", "low=-1,1"), HasSubstr("do not fit"));
  EXPECT_THAT(message(right, "low=1,1", "low=1,1,1,1,1,1"), HasSubstr("wanted low="));
  EXPECT_THAT(message(right, "in=8", "in=8x"), HasSubstr("wanted in="));
  EXPECT_THAT(message(right, "in=8 ", ""), HasSubstr("wanted in="));
  EXPECT_THAT(message(right, "c=288,1,48,8", "c=288,1,1,8"), HasSubstr("overlap"));
  EXPECT_THAT(message(right, "a=288", "a=-288"), HasSubstr("negative"));
  EXPECT_THAT(message(right, "bias=0", "bias=0 more=1"), HasSubstr("at the end"));
  EXPECT_THAT(message(right, "bias=0", "bias=2"), HasSubstr("wanted bias="));
  EXPECT_FALSE(parse_operation(""));
}

TEST(operation, KeysLeaveOutWhatHangsOnTheSums) {
  Operation o = matmul(1, 4, 5, 6);
  const std::string key = key_of(o, "onednn 2.6.3");
  EXPECT_THAT(key, StartsWith("library v1 onednn 2.6.3 product batch=1 m=4 n=5 k=6"));
  o.bias = true;
  EXPECT_EQ(key_of(o, "onednn 2.6.3"), key);
  o.b = {0, 1, 6};
  EXPECT_NE(key_of(o, "onednn 2.6.3"), key);
}

TEST(split, PartsMakeTheWhole) {
  for (const Operation& o : examples()) {
    for (int64_t count : {1, 2, 3, 7, 64}) {
      Data data(o);
      int64_t outputs = 0;
      for (const Part& part : split(o, count)) {
        ASSERT_TRUE(check(part.operation)) << to_string(part.operation);
        const Spans size = spans(part.operation);
        EXPECT_LE(part.a + size.a, data.size.a);
        EXPECT_LE(part.b + size.b, data.size.b);
        EXPECT_LE(part.bias + size.bias, data.size.bias);
        EXPECT_LE(part.c + size.c, data.size.c);
        evaluate(part.operation, data.a.data() + part.a, data.b.data() + part.b,
                 data.bias.data() + part.bias, data.c.data() + part.c);
        outputs += static_cast<int64_t>(part.operation.flops());
      }
      EXPECT_EQ(data.c, data.expected) << to_string(o) << " in " << count;
      EXPECT_EQ(outputs, static_cast<int64_t>(o.flops())) << to_string(o) << " in " << count;
    }
  }
}

TEST(split, LargeOperationsAreCutByCores) {
  EXPECT_EQ(part_count(matmul(1, 512, 512, 512), 8), 8);
  EXPECT_EQ(part_count(matmul(1, 16, 16, 16), 8), 1);
  EXPECT_EQ(split(matmul(1, 512, 512, 512), 8).size(), 8u);
  EXPECT_EQ(split(image(1, 64, 64, 56, 56, {}), 2).size(), 2u);
  EXPECT_EQ(split(image(4, 64, 64, 56, 56, {}), 2).size(), 2u);
}

TEST(open, WhatIsNotThereHasACode) {
  EXPECT_EQ(open("mkl", host()).decision.code(), "library-unknown");
  EXPECT_EQ(open(kOneDnn, *target::find_target("sm_80")).decision.code(), "library-device");
  setenv("HEDDLE_ONEDNN", "off", 1);
  const Opened off = open(kOneDnn, host());
  unsetenv("HEDDLE_ONEDNN");
  EXPECT_EQ(off.library, nullptr);
  EXPECT_EQ(off.decision.code(), "library-absent");
}

class OneDnn : public ::testing::Test {
 protected:
  void SetUp() override {
    Opened opened = open(kOneDnn, host());
    if (!opened.library)  // optional: not installed, or of another version
      GTEST_SKIP() << "needs oneDNN: " << opened.decision.reason() << " (" << opened.decision.code()
                   << ")";
    library_ = std::move(opened.library);
  }
  std::shared_ptr<Library> library_;
};

TEST_F(OneDnn, SaysWhatItIs) {
  const Facts& facts = library_->facts();
  EXPECT_EQ(facts.name, "onednn");
  EXPECT_THAT(facts.version, ::testing::MatchesRegex("[23]\\.[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(facts.path.empty());
}

TEST_F(OneDnn, GivesTheReferencesNumbers) {
  int made = 0;
  for (const Operation& o : examples()) {
    for (const bool fixed : {false, true}) {
      for (int64_t tasks : {1, 3}) {
        CallOrNot one = library_->make_call(o, {fixed, fixed}, tasks);
        if (!one.call) {
          // Only reference implementations may be refused.
          EXPECT_THAT(one.decision.code(), ::testing::AnyOf("library-reference", "library-shape"))
              << one.decision.reason();
          continue;
        }
        ++made;
        Data data(o);
        const std::vector<void*> buffers = data.buffers(o);
        for (int run = 0; run < 2; ++run) {
          ASSERT_TRUE(one.call->prepare(buffers.data()));
          for (int64_t task = 0; task < one.call->tasks(); ++task) {
            const Status done = one.call->run(buffers.data(), task, task + 1);
            ASSERT_TRUE(done) << done.error().message;
          }
          data.compare(o);
        }
      }
    }
  }
  EXPECT_GT(made, 100);
}

// Windows and sizes that occur in no network.
TEST_F(OneDnn, RandomShapesGiveTheReferencesNumbers) {
  uint32_t state = 7;
  auto pick = [&](int64_t least, int64_t most) {
    state = state * 1664525u + 1013904223u;
    return least + static_cast<int64_t>(state >> 8) % (most - least + 1);
  };
  int made = 0;
  for (int i = 0; i < 250; ++i) {
    Operation o;
    if (pick(0, 2) == 0) {
      o = matmul(pick(1, 3), pick(1, 40), pick(1, 70), pick(1, 50));
      if (pick(0, 1)) o.a = {o.m * o.k, 1, o.m};
      if (pick(0, 1)) o.b = {o.n * o.k, 1, o.k};
    } else {
      const int64_t groups = pick(0, 2) == 0 ? pick(2, 8) : 1;
      const Window window{pick(1, 5), pick(1, 3), pick(1, 3), pick(0, 6), pick(0, 6)};
      const int64_t h = pick(1, 13), w = pick(1, 13),
                    seen = window.dilation * (window.kernel - 1) + 1;
      if (std::min(h, w) + window.low + window.high < seen) continue;
      o = image(pick(1, 3), groups * pick(1, 9), groups * pick(1, 9), h, w, window, groups,
                pick(0, 3) > 0);
    }
    o.bias = pick(0, 1) == 1;
    ASSERT_TRUE(check(o)) << to_string(o);
    const bool fixed = pick(0, 1) == 1;
    CallOrNot one = library_->make_call(o, {fixed, fixed}, pick(1, 4));
    if (!one.call) {
      EXPECT_NE(one.decision.code(), "library-failed") << one.decision.reason();
      continue;
    }
    ++made;
    Data data(o);
    const std::vector<void*> buffers = data.buffers(o);
    ASSERT_TRUE(one.call->prepare(buffers.data()));
    ASSERT_TRUE(one.call->run(buffers.data(), 0, one.call->tasks())) << to_string(o);
    data.compare(o);
  }
  EXPECT_GT(made, 50);
}

// Number of threads of this process.
int64_t thread_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task"), end;
  return std::distance(tasks, end);
}

TEST_F(OneDnn, RunsOnTheCallingThreadAlone) {
  const int64_t before = thread_count();
  for (const Operation& o : {matmul(1, 256, 256, 256), image(2, 64, 64, 28, 28, {})}) {
    CallOrNot one = library_->make_call(o, {true, true}, 2);
    ASSERT_NE(one.call, nullptr);
    Values a(static_cast<size_t>(spans(o).a)), b(static_cast<size_t>(spans(o).b)),
        c(static_cast<size_t>(spans(o).c));
    void* const buffers[] = {a.data(), b.data(), c.data()};
    ASSERT_TRUE(one.call->prepare(buffers));
    ASSERT_TRUE(one.call->run(buffers, 0, one.call->tasks()));
  }
  EXPECT_EQ(thread_count(), before);
}

TEST_F(OneDnn, FixedWeightsAreReadOnce) {
  const Operation o = matmul(1, 64, 64, 64);
  CallOrNot one = library_->make_call(o, {true, false}, 1);
  ASSERT_NE(one.call, nullptr);
  Data data(o);
  ASSERT_TRUE(one.call->prepare(data.buffers(o).data()));
  // Whether it has copied the weights or not, results are those of the original weights.
  const Values b = data.b;
  ASSERT_TRUE(one.call->run(data.buffers(o).data(), 0, 1));
  data.compare(o);
  EXPECT_EQ(data.b, b);
}

TEST_F(OneDnn, OneCallServesSeveralThreads) {
  const Operation o = image(1, 32, 32, 20, 20, {});
  CallOrNot one = library_->make_call(o, {true, true}, 4);
  ASSERT_NE(one.call, nullptr);
  std::vector<Data> data(4, Data(o));
  std::vector<std::thread> threads;
  for (Data& mine : data)
    threads.emplace_back([&] {
      for (int run = 0; run < 20; ++run) {
        EXPECT_TRUE(one.call->prepare(mine.buffers(o).data()));
        EXPECT_TRUE(one.call->run(mine.buffers(o).data(), 0, one.call->tasks()));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Data& mine : data) {
    mine.compare(o);
    EXPECT_EQ(mine.c, data[0].c);
  }
}

}  // namespace
}  // namespace heddle::library
